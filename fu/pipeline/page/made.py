"""Read a folder of artefacts: those with valid certificates, and a sentence on each of the others."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fu.contents import checksum
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.paths import ARTEFACT, CERTIFIED

BODY = re.compile(r"<main>\n<h1>(.*?)</h1>\n(.*)</main>", re.DOTALL)  # of the page that an artefact has of its own
ENDS = sorted((CERTIFIED, *(f".{suffix}" for suffix in ARTEFACT)), key=len, reverse=True)  # .rows.csv before .csv
DIGITS = 12  # of a digest that a person compares


@dataclass(frozen=True)
class Artefact:
    """An artefact whose files are as its job wrote them."""

    path: Path  # of its files, without suffix
    made: Certificate

    @property
    def key(self) -> tuple[str, str]:
        """Paper and name."""
        return self.path.parent.name, self.path.name

    @cached_property
    def about(self) -> dict[str, Any]:
        """The provenance."""
        return dict(json.loads(self.file("json").read_text(encoding="utf-8")))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers."""
        return pd.read_csv(self.file("csv"))

    @cached_property
    def page(self) -> tuple[str, str]:
        """Heading and body of its own page, as HTML."""
        found = BODY.search(self.file("html").read_text(encoding="utf-8"))
        return (found[1], found[2]) if found else ("", "")

    def file(self, suffix: str) -> Path:
        """Return one of its files."""
        return self.path.with_name(f"{self.path.name}.{suffix}")


def read(folder: Path) -> tuple[list[Artefact], list[str]]:
    """Return the artefacts in a folder, sorted, and a sentence on each that is left out, as something is damaged."""
    files = (file for file in folder.glob("*/*") if not file.name.startswith("."))
    ends = ((file, next((end for end in ENDS if file.name.endswith(end)), "")) for file in files)
    stems = {file.with_name(file.name.removesuffix(end)) for file, end in ends if end}
    good, wrong = [], []
    for stem in sorted(stems):
        found = _checked(stem)
        if isinstance(found, str):
            wrong.append(f"{stem.parent.name}_{stem.name}: {found}.")
        else:
            good.append(found)
    return good, wrong


def _checked(stem: Path) -> Artefact | str:
    """Return an artefact, or what is wrong with it."""
    path = stem.with_name(f"{stem.name}{CERTIFIED}")
    made = certificate.read(path)
    if made is None:
        return f"{path.name} is missing or damaged"
    for name, (_, content) in made.outputs.items():
        file = stem.with_name(name)
        if not file.is_file() or checksum(file) != content:
            return f"{name} is {'not as its job wrote it' if file.is_file() else 'missing'}"
    artefact = Artefact(stem, made)
    return artefact if artefact.page[1] else f"{stem.name}.html was made by an earlier version of fu"
