"""The format of an archive of oracles: a zip file of plain arrays, a data card, and the SHA-256 of every file."""

import hashlib
import json
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from fu.contents import checksum, require_file
from fu.data.archives import Arrays, load_arrays
from fu.errors import UserError

FORMAT = 1
CARD, SUMS, PROBES, LOGITS = "card.json", "SHA256SUMS", "probes.npz", "logits.npz"
KINDS = ("original", "retrained")  # of models, as `fu.audits.models.Models` names them
DIGEST = "digest"  # in probes.npz, and in predictions on these probes


class Oracles(NamedTuple):
    """What an audit reads of an archive: the probes' labels [n], and the logits [N, n, C] by kind of model and probe.

    `digest`: that of settings and probes.
    """

    digest: str
    labels: dict[str, NDArray[np.int64]]
    logits: dict[str, dict[str, NDArray[np.float32]]]


def digest_of(settings: Mapping[str, Any], probes: Arrays) -> str:
    """Return the SHA-256 of a scenario's settings and of the samples and labels of its probes."""
    found = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(probes):
        array = np.ascontiguousarray(probes[name])
        found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


@contextmanager
def folder_of(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside an archive, for its files; whatever is in it is removed at the end."""
    folder = path.with_name(f".{path.name}.files")
    shutil.rmtree(folder, ignore_errors=True)  # of a killed job: only one job makes each archive
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(path: Path, folder: Path) -> None:
    """Write the files of a folder and their checksums as one archive; equal contents give equal bytes."""
    files = sorted(folder.iterdir())
    (folder / SUMS).write_text("".join(f"{checksum(file)}  {file.name}\n" for file in files))
    with ZipFile(path, "w") as archive:
        for file in (*files, folder / SUMS):
            info = ZipInfo(file.name)  # without a time
            info.external_attr = (stat.S_IFREG | 0o644) << 16  # readable by all
            with file.open("rb") as source, archive.open(info, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target, 1 << 20)


def read(path: Path) -> Oracles:
    """Return what an audit reads, once every file of the archive matches its checksum.

    `UserError` where the archive is damaged, or was not written by `fu` in this format.
    """
    require_file(path)
    with TemporaryDirectory(prefix="fu-oracles-") as name:
        folder = Path(name)
        try:
            with ZipFile(path) as archive:
                _unpack(archive, folder, path)
            card = json.loads((folder / CARD).read_bytes())
            form, settings = card["format"], card["settings"]
        except UserError:
            raise
        except Exception as error:  # zipfile passes on the errors of its decoders, and a card may hold anything
            raise UserError(
                f"{path}: not an archive of oracles, or a damaged one ({type(error).__name__}: {error}); `make "
                "oracles` writes one."
            ) from None
        if form != FORMAT:
            raise UserError(f"{path}: the archive has format {form!r}, but this version of fu reads format {FORMAT}.")
        probes, logits = load_arrays(folder / PROBES), load_arrays(folder / LOGITS)
    stated = str(probes.pop(DIGEST, ""))
    if stated != digest_of(settings, probes):
        raise UserError(f"{path}: its probes and settings are not those of its digest; make or copy the archive again.")
    labels: Any = {name.removeprefix("y."): array for name, array in probes.items() if name.startswith("y.")}
    kinds: Any = {
        kind: {name: logits[f"{kind}.{name}"] for name in labels if f"{kind}.{name}" in logits} for kind in KINDS
    }
    for kind, of in kinds.items():
        if odd := next((name for name, values in of.items() if not np.isfinite(values).all()), None):
            raise UserError(
                f"{path}: {kind} models have logits on {odd!r} that are not finite; leave diverged ones out."
            )
    return Oracles(stated, labels, kinds)


def _unpack(archive: ZipFile, folder: Path, path: Path) -> None:
    """Verify the checksums of all files of an archive, and put those into a folder that an audit reads."""
    infos, sums = archive.infolist(), dict[str, str]()
    if sum(info.file_size for info in infos) > path.stat().st_size:  # no bomb is unpacked
        raise UserError(f"{path}: its files are longer than the archive; pass the file that `make oracles` wrote.")
    for line in archive.read(SUMS).decode().splitlines():
        stated, name = line.split("  ")
        sums[name] = stated
    if odd := Counter(info.filename for info in infos) - Counter([*sums, SUMS]) or {*sums} - {*archive.namelist()}:
        raise UserError(f"{path}: {next(iter(odd))!r} is missing, or not listed in {SUMS}; copy the archive again.")
    for name, stated in sums.items():
        with archive.open(name) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        if found != stated:
            raise UserError(f"{path}: {name!r} does not match {SUMS}: the archive is damaged; copy it again.")
    for name in (CARD, PROBES, LOGITS):
        with archive.open(name) as file, (folder / name).open("wb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
