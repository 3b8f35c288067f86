"""Read a folder of artefacts: those with valid certificates, and a sentence on each of the others."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fu.contents import checksum
from fu.pipeline.provenance import certificate
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import CERTIFIED

BODY = re.compile(r"<main>\n<h1>(.*?)</h1>\n(.*)</main>", re.DOTALL)  # of the page that an artefact has of its own
DIGITS = 12  # of a digest that a person compares
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)  # raised by JSON and CSV of others
SHAPE = {"preset": str, "versions": dict, "devices": list, "threads": list, "costs": dict, "spec": dict}


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

    @property
    def commit(self) -> str:
        """The commit of the code that made it, in words."""
        return f"{(self.about['commit'] or 'unknown')[:DIGITS]}{', edited' * (self.about['clean'] is False)}"

    @property
    def versions(self) -> str:
        """The versions of Python and the libraries that made it."""
        return ", ".join(f"{name} {version}" for name, version in self.about["versions"].items())

    @property
    def has_picture(self) -> bool:
        """Whether it is a figure, or a table with one."""
        return f"{self.path.name}.png" in self.made.outputs

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers."""
        return pd.read_csv(self.file("csv"))

    @cached_property
    def page(self) -> tuple[str, str]:
        """Heading and body of its own page, as HTML."""
        match = BODY.search(self.file("html").read_text(encoding="utf-8"))
        return (match[1], match[2]) if match else ("", "")

    def file(self, suffix: str) -> Path:
        """Return one of its files."""
        return self.path.with_name(f"{self.path.name}.{suffix}")


def read(folder: Path) -> tuple[list[Artefact], dict[str, str]]:
    """Return the artefacts in a folder, sorted; and, by target, a sentence on each that is left out as damaged."""
    ends = [(file, end) for end in (".md", CERTIFIED) for file in folder.glob(f"*/[!.]*{end}")]
    stems = sorted({file.with_name(file.name.removesuffix(end)) for file, end in ends})
    checked = {stem: _checked(stem) for stem in stems}
    wrong = {"_".join(stem.parts[-2:]): one for stem, one in checked.items() if isinstance(one, str)}
    return [one for one in checked.values() if isinstance(one, Artefact)], wrong


def _checked(stem: Path) -> Artefact | str:
    """Return an artefact, or what is wrong with it."""
    target, name = f"{stem.parent.name}_{stem.name}", f"{stem.name}{CERTIFIED}"
    try:
        made = certificate.read(stem.with_name(name))
        if made is None:
            return f"{target}: {name} is missing or damaged."
        for output, (_, content) in made.outputs.items():
            file = stem.with_name(output)
            if not file.is_file() or checksum(file) != content:
                return f"{target}: {output} is {'not as its job wrote it' if file.is_file() else 'missing'}."
        artefact = Artefact(stem, made)
        name = f"{stem.name}.csv"
        assert artefact.frame is not None
        name = f"{stem.name}.json"
        if not all(isinstance(artefact.about[key], kind) for key, kind in SHAPE.items()):
            raise TypeError
    except MALFORMED as error:
        return f"{target}: {name} was not written by fu ({type(error).__name__})."
    return artefact if artefact.page[1] else f"{target}: {stem.name}.html was made by an earlier version of fu."
