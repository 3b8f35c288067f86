"""Open and check a bundle, without recomputing anything and without a project."""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from tqdm import tqdm

from fu.contents import checksum, require_file
from fu.errors import UserError
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.paths import CERTIFIED, OUTPUTS, certificate_of

METADATA = "ro-crate-metadata.json"
Jobs = dict[str, Certificate]  # by the name of the certificate below the folder of the preset


class Bundle(NamedTuple):
    """An unpacked bundle. `names`: of all files; `described`: name -> what its metadata says of a file."""

    folder: Path
    preset: str
    names: set[str]
    described: Mapping[str, Mapping[str, Any]]

    @property
    def root(self) -> Path:
        """The folder of the preset."""
        return self.folder / "results" / self.preset


def jobs_behind(first: Iterable[str], read: Callable[[str], Certificate | None]) -> tuple[Jobs, list[str]]:
    """Return the jobs with these certificates and all before them, and in words each input that none of them made.

    `read`: returns a certificate by its name below the folder of the preset.
    """
    jobs, gaps, waiting = Jobs(), dict[str, None](), [*first]
    while waiting:
        name = waiting.pop()
        made = read(name)
        if made is None:
            gaps[f"{name} is missing or damaged"] = None
        elif name not in jobs:
            jobs[name] = made
            for role, files in made.inputs.items():
                for path, content in files:
                    file = Path(*PurePosixPath(path).parts[2:])  # without results/{preset}
                    waiting.append(str(certificate_of(file)))
                    maker = read(waiting[-1])
                    # Times differ from run to run: where they are measured again, nothing follows.
                    if maker and role != "costs" and maker.outputs.get(file.name, (0, ""))[1] != content:
                        gaps[f"{file} is not the file that {name.removesuffix(CERTIFIED)} was made from"] = None
    return jobs, [*gaps]


@contextmanager
def opened(path: Path, shown: Path | None = None) -> Iterator[Bundle]:
    """Unpack a bundle for as long as it is needed; `UserError` where it is none, or cannot be read whole.

    `shown`: what sentences call it.
    """
    shown = shown or path
    require_file(path)
    with TemporaryDirectory(prefix="fu-bundle-") as name:
        folder = Path(name)
        try:
            with ZipFile(path) as file:
                _check_names(file.namelist(), shown)
                for info in tqdm(file.infolist(), "unpacking", unit=" file", delay=2, disable=None):
                    file.extract(info, folder)
        except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise UserError(f"{shown}: not a zip file, or truncated or damaged ({error}).") from None
        except OSError as error:
            raise UserError(f"{shown}: cannot be unpacked ({error.strerror or error}).") from None
        names = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()}
        presets = {PurePosixPath(name).parts[1] for name in names if name.startswith("results/")}
        try:
            graph = json.loads((folder / METADATA).read_bytes())["@graph"]
            described = {unquote(entity["@id"]): entity for entity in graph if "File" in entity["@type"]}
        except (OSError, ValueError, LookupError, TypeError):
            described = {}
        if len(presets) != 1 or not described:
            raise UserError(
                f"{shown}: not a bundle of fu, or its {METADATA} is damaged; create one with `make bundle`."
            )
        yield Bundle(folder, presets.pop(), names, described)


def _check_names(names: list[str], shown: Path) -> None:
    """Raise `UserError` where a name may lead out of the folder, or is that of two files."""
    for name in names:
        parts = PurePosixPath(name).parts
        if name != "/".join(parts) or ".." in parts or "\\" in name or not name.isprintable():
            raise UserError(f"{shown}: contains an invalid file name, {name!r}; nothing was unpacked.")
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise UserError(f"{shown}: contains two files named {twice[0]!r}; nothing was unpacked.")


def check(path: Path, shown: Path | None = None) -> tuple[list[str], str]:
    """Return a sentence on everything that is wrong in a bundle, and one on what is in it.

    `shown`: what sentences call it. `UserError` where it is none, or cannot be read whole.
    """
    shown = shown or path
    with opened(path, shown) as bundle:
        try:
            problems, summary = _checked(bundle)
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # a seal alone makes no certificate
            raise UserError(f"{shown}: contains a certificate that fu did not write ({error!r}).") from None
    return [f"{shown}: {problem}." for problem in problems], f"{shown}: {summary}."


def _checked(bundle: Bundle) -> tuple[list[str], str]:
    """Return in words what is wrong in a bundle, and what is in it."""
    top = f"results/{bundle.preset}/"
    results = {name.removeprefix(top) for name in bundle.names if name.startswith(top)}
    first = sorted(name for name in results if name.startswith("artefacts/") and name.endswith(CERTIFIED))
    read = cache(lambda name: certificate.read(bundle.root / name) if name in results else None)
    jobs, gaps = jobs_behind(first, read) if first else (Jobs(), ["it contains no table or figure"])
    files = {name: bundle.folder / name for name in bundle.names}
    contents = {name: (str(file.stat().st_size), checksum(file)) for name, file in files.items()}
    wrong = dict[str, str]()  # by file
    for name, entity in bundle.described.items():
        if name not in contents:
            wrong[name] = f"{name!r} is missing"
        elif contents[name] != (entity.get("contentSize"), entity.get("sha256")):
            wrong[name] = f"{name!r} does not match {METADATA}"
    named = {METADATA, *bundle.described, *(f"{top}{name}" for name in jobs)}
    outside = Counter[str]()
    for certified, made in jobs.items():
        for output, (size, content) in made.outputs.items():
            name = str(PurePosixPath(f"{top}{certified}").with_name(output))
            named.add(name)
            if name not in contents:
                outside[made.stage] += 1
                if made.stage == "publish":
                    wrong.setdefault(name, f"{name!r} is missing")
            elif contents[name] != (str(size), content):
                wrong.setdefault(name, f"{name!r} was changed after its job wrote it")
    for name in sorted(bundle.names - named):
        if not (gaps and name.endswith(CERTIFIED)):  # behind a gap nobody knows which there should be
            wrong[name] = f"{name!r} is listed in no certificate and not in {METADATA}"
    others = ", ".join(f"{outside[stage]} of {stage}" for stage in OUTPUTS if outside[stage])
    return [*gaps, *wrong.values()], (
        f"{len(first)} {'tables and figures' if len(first) > 1 else 'table or figure'} at preset {bundle.preset!r}; "
        f"no file was changed, and all inputs of the {len(jobs)} jobs match the outputs of other jobs. "
        f"Not included, only their digests: {others or 'nothing'}"
    )
