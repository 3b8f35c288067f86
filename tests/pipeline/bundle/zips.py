"""Bundles as they are written, and as somebody has changed them."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

from fu.pipeline.bundle import write
from fu.pipeline.plan import Plan


def bundle(plan: Plan, *targets: str) -> Path:
    """Write a bundle, and return it."""
    *_, said = write.write(plan, targets)
    return Path(said.partition(": ")[0])


def contents(path: Path) -> dict[str, bytes]:
    """Return what is in a zip."""
    with ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def changed(path: Path, changes: Mapping[str, bytes | None]) -> Path:
    """Return a copy of a zip with other files, and without those that are None."""
    copy = path.with_name("changed.zip")
    with ZipFile(copy, "w") as file:
        for name, content in {**contents(path), **changes}.items():
            if content is not None:
                file.writestr(name, content)
    return copy
