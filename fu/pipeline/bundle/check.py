"""Open and check a bundle, without recomputing anything and without a project."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import unquote
from zipfile import ZipFile

from fu.contents import checksum, require_file
from fu.errors import UserError
from fu.pipeline.page.made import MALFORMED, read
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import CERTIFIED, OUTPUTS, certificate_of

METADATA = "ro-crate-metadata.json"
LARGEST = 4e9  # bytes that all files may have together
NAME = re.compile(r"(?:(?!\.{1,2}/)[^/\\]+/){,15}(?!\.{1,2}$)[^/\\]+")  # of a file at most 15 folders deep
Jobs = dict[str, Certificate]  # by the name of the certificate below the folder of the preset
Described = dict[str, tuple[str, str]]


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
            for role, path, content in ((role, *pair) for role, files in made.inputs.items() for pair in files):
                file = Path(*PurePosixPath(path).parts[2:])  # without results/{preset}
                waiting.append(str(certificate_of(file)))
                maker = read(waiting[-1])
                # Times differ from run to run: where they are measured again, nothing follows.
                if maker and role != "costs" and maker.outputs.get(file.name, (0, ""))[1] != content:
                    gaps[f"{file} is not the file that {name.removesuffix(CERTIFIED)} was made from"] = None
    return jobs, [*gaps]


@contextmanager
def opened(path: Path) -> Iterator[tuple[Path, Path, Described]]:
    """Unpack a bundle for as long as it is needed; `UserError` where it is none, or cannot be read whole.

    Yields its folder, the folder of the preset, and size and SHA-256 of each file as its metadata states them.
    """
    require_file(path)
    with TemporaryDirectory(prefix="fu-bundle-") as name:
        folder = Path(name)
        try:
            with ZipFile(path) as file:
                names = Counter(info.filename for info in file.infolist())
                if wrong := [name for name, number in names.items() if number > 1 or not NAME.fullmatch(name)]:
                    raise ValueError(f"a file name is invalid or occurs twice: {wrong[0]!r}")
                if (size := sum(info.file_size for info in file.infolist())) > LARGEST:
                    raise ValueError(f"its files would take {size / 1e9:.0f} GB, more than {LARGEST / 1e9:.0f} GB")
                file.extractall(folder)
        except Exception as error:  # zipfile passes on the errors of all its decoders
            why = f"{type(error).__name__}: {error}"
            raise UserError(f"{path}: cannot be unpacked: not a zip file, or a damaged one ({why}).") from None
        try:
            (preset,) = {name.split("/")[1] for name in names if name.startswith("results/")}
            graph = json.loads((folder / METADATA).read_bytes())["@graph"]
            files = [entity for entity in graph if "File" in entity["@type"]]
            described = {unquote(one["@id"]): (str(one["contentSize"]), str(one["sha256"])) for one in files}
        except (OSError, *MALFORMED):
            raise UserError(
                f"{path}: not a bundle of fu, or its {METADATA} is damaged; create one with `make bundle`."
            ) from None
        yield folder, folder / "results" / preset, described


def check(path: Path) -> tuple[list[str], str]:
    """Return a sentence on everything that is wrong in a bundle, and one on what is in it.

    `UserError` where it is none, or cannot be read whole.
    """
    with opened(path) as (folder, root, described):
        files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
        contents = {name: (str(file.stat().st_size), checksum(file)) for name, file in files.items()}
        artefacts, damaged = read(root / "artefacts")
        first, top = [f"artefacts/{'/'.join(one.key)}{CERTIFIED}" for one in artefacts], f"{root.relative_to(folder)}/"
        # A certificate may name any file: only those of the bundle are read.
        read_once = cache(lambda name: certificate.read(root / name) if top + name in files else None)
        try:
            jobs, gaps = jobs_behind(first, read_once)
        except MALFORMED as error:  # a seal alone makes no certificate
            raise UserError(f"{path}: contains a certificate that fu did not write ({error!r}).") from None
    problems = [*damaged.values()]
    del contents[METADATA]
    for name in sorted(dict(contents.items() ^ described.items())):
        wrong = "does not match" if {name} <= contents.keys() & described.keys() else "is not listed in"
        problems.append(f"{name!r} {wrong} {METADATA}." if name in contents else f"{name!r} is missing.")
    problems += [f"{gap}." for gap in gaps] if first or problems else ["it contains no table or figure."]
    absent = Counter(made.stage for made in jobs.values() for _ in made.outputs if made.stage != "publish")
    what = "table or figure" if len(first) == 1 else "tables and figures"
    return [f"{path}: {problem}" for problem in problems], (
        f"{path}: {len(first)} {what} at preset {root.name!r}; no file was "
        f"changed, and all inputs of the {len(jobs)} jobs match the outputs of other jobs. Not included, only their "
        f"digests: {', '.join(f'{absent[stage]} of {stage}' for stage in OUTPUTS if absent[stage])}."
    )
