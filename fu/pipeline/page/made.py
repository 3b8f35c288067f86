"""What lies in a folder of artefacts: those with valid certificates, the others by name, and every job behind them."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fu.contents import checksum
from fu.pipeline import certificate
from fu.pipeline.certificate import Certificate
from fu.pipeline.paths import ARTEFACT, CERTIFIED, certificate_of

BODY = re.compile(r"<main>\n<h1>(.*?)</h1>\n(.*)</main>", re.DOTALL)  # of the page that an artefact has of its own
ENDS = sorted((CERTIFIED, *(f".{suffix}" for suffix in ARTEFACT)), key=len, reverse=True)  # .rows.csv before .csv
UNKNOWN = "without a certificate"  # in place of a job's stage
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


class Chain:
    """Every job behind artefacts: stem, stage, code digest, digests of its files, and the numbers of its inputs."""

    def __init__(self, root: Path) -> None:
        """`root`: the folder of the preset, which is left out of names."""
        self.root = root
        self.jobs: list[tuple[str, str, str, Mapping[str, str], list[int]]] = []
        self._numbers: dict[Path, int] = {}

    def add(self, path: Path) -> int:
        """Return the number of the job with this certificate, after those of all before it were added."""
        if path not in self._numbers:
            self._numbers[path] = len(self.jobs)
            stem = path.relative_to(self.root) if path.is_relative_to(self.root) else path
            name = str(stem).removesuffix(CERTIFIED)
            made = certificate.read(path)
            files, inputs = dict[str, str](), list[int]()
            self.jobs.append((name, made.stage if made else "", made.code if made else "", files, inputs))
            if made:
                files |= {file: content[:DIGITS] for file, (_, content) in made.outputs.items()}
                paths = (certificate_of(Path(file)) for several in made.inputs.values() for file, _ in several)
                inputs += [self.add(path) for path in dict.fromkeys(paths)]
        return self._numbers[path]

    def stages(self, number: int) -> Counter[str]:
        """Return how many jobs of each stage are behind one."""
        seen: set[int] = set()
        waiting = [*self.jobs[number][-1]]
        while waiting:
            job = waiting.pop()
            if job not in seen:
                seen.add(job)
                waiting += self.jobs[job][-1]
        return Counter(self.jobs[job][1] or UNKNOWN for job in seen)
