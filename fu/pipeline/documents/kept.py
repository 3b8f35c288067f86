"""Kept runs: tables and figures of a run on real data, without its models, as part of the repository.

`make keep RUN=mnist TARGETS=...` writes docs/measurements/{paper}/{run}: the numbers, rows, text and picture of each
artefact, and run.yaml, which states what they were made from. What was edited since is named wherever a run is shown.
"""

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel, ValidationError

from fu.contents import checksum
from fu.errors import UserError, first_problem
from fu.pipeline.page.made import Artefact, read
from fu.pipeline.plan.estimates import counted
from fu.pipeline.plan.pending import Pending
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml

FOLDER = ROOT / "docs/measurements"
ABOUT = "run.yaml"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SUFFIXES = ("csv", "rows.csv", "md", "png")
ROWS = "rows.csv"  # kept compressed: those of curves take megabytes
CONFIG = {"preset", "papers", "seeds", "choose_on", "plugins", "overrides"}  # settings that change numbers


class Label(BaseModel, extra="forbid"):
    """What people call a scenario, and its data set."""

    label: str
    data: str


class About(BaseModel, extra="forbid"):
    """What run.yaml states.

    `commits`: of the code that made the artefacts; `edited`: whether it was edited after its commit. `hours`: of
    computation, of one core or device. `files`: the SHA-256 of each. `remark`: written by a person. `seal`: the SHA-256
    of everything else.
    """

    preset: str
    seeds: list[int]
    config: dict[str, Any]
    scenarios: dict[str, Label]
    commits: list[str]
    edited: bool
    hours: float | None
    devices: list[str]
    versions: dict[str, str]
    files: dict[str, str]
    remark: str = ""
    seal: str = ""

    def sealed(self) -> "About":
        """Return the same with its seal."""
        content = self.model_dump(mode="json", exclude={"remark", "seal"})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return self.model_copy(update={"seal": hashlib.sha256(text.encode()).hexdigest()})


class Kept(NamedTuple):
    """A kept run; `wrong`: in words, what was edited, is missing or was added since."""

    paper: str
    name: str
    folder: Path
    about: About
    wrong: list[str]


def kept(folder: Path = FOLDER) -> list[Kept]:
    """Return all runs, by paper and name; `UserError` where a run.yaml is not one."""
    return [_read(path.parent) for path in sorted(folder.glob(f"*/*/{ABOUT}"))]


def _read(folder: Path) -> Kept:
    path = folder / ABOUT
    try:
        about = About.model_validate(read_yaml(path))
    except ValidationError as error:
        raise UserError(first_problem(error, About, str(path))) from None
    files = {file.name for file in folder.iterdir()} - {ABOUT}
    wrong = [f"{ABOUT} was edited"] * (about.sealed().seal != about.seal)
    of = about.config.get("papers", [])
    wrong += [f"it is of {', '.join(map(str, of))}"] * (bool(of) and folder.parent.name not in of)
    wrong += [f"{name} is missing" for name in sorted(about.files.keys() - files)]
    wrong += [f"{name} was added" for name in sorted(files - about.files.keys())]
    wrong += [
        f"{name} was edited"
        for name in sorted(files & about.files.keys())
        if checksum(folder / name) != about.files[name]
    ]
    return Kept(folder.parent.name, folder.name, folder, about, wrong)


def keep(plan: Plan, targets: Sequence[str], name: str, below: Path = FOLDER) -> Iterator[str]:
    """Copy tables and figures to a kept run, whole or not at all; yield a summary.

    `UserError` where one of them is not made from today's settings and code with all seeds, or where another run has
    the name.
    """
    if not NAME.fullmatch(name):
        raise UserError(
            f"RUN: a run is named by lower-case letters, digits and '-', as in RUN=mnist-pat50; got {name!r}."
        )
    if not targets:
        raise UserError("TARGETS: name the tables and figures to keep, as in TARGETS=fedosd_table8.")
    jobs = {job.certificate: job for job in plan.asked(targets) if job.stage == "publish"}
    papers = sorted({job.paper for job in jobs.values()})
    if len(papers) != 1:
        raise UserError(f"TARGETS: a run is kept for one paper; these are of {', '.join(papers) or 'none'}.")
    artefacts, folder = _artefacts(plan, list(jobs.values())), below / papers[0] / name
    contents = dict(chain.from_iterable(map(_files, artefacts)))
    about = _about(plan, papers[0], artefacts, contents)
    if folder.exists():
        before = _read(folder)
        _replaces(before, about)
        about = about.model_copy(update={"remark": before.about.remark})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".part-", dir=folder.parent) as part:
        new = Path(part, name)
        new.mkdir()
        for name, content in contents.items():
            (new / name).write_bytes(content)
        text = yaml.safe_dump(about.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
        (new / ABOUT).write_text(text, encoding="utf-8")
        old = Path(part, "old")
        try:
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
        finally:
            if not folder.exists() and old.exists():
                old.rename(folder)
    number = counted(len(artefacts), "table or figure", "tables and figures")
    seeds = counted(len(about.seeds), "seed")
    yield f"{os.path.relpath(folder)}: kept {number} with {seeds}; `make docs` lists the run."


def _artefacts(plan: Plan, jobs: Sequence[Job]) -> list[Artefact]:
    """Return what the jobs have made; `UserError` where one has not, or would make something else today."""
    there, wrong = read(Path(plan.root) / "artefacts")
    made, pending, found = {"_".join(one.key): one for one in there}, Pending(plan), []
    for job in jobs:
        target = f"{job.names['paper']}_{job.names['artefact']}"
        artefact, reason = made.get(target), pending.reason(job)
        lacking = sorted({*plan.seeds(job.paper)} - {*artefact.about["spec"]["seeds"]}) if artefact else []
        if artefact and not reason and not lacking:
            found.append(artefact)
            continue
        if lacking:
            why = f"{target}: made without seeds {', '.join(map(str, lacking))}"
        elif artefact and reason:
            why = f"{target}: out of date ({reason.text})"
        else:
            why = wrong.get(target, f"{target}: not made yet").removesuffix(".")
        raise UserError(f"{why}; run `make reproduce PRESET={plan.config.preset} TARGETS={target}`.")
    pending.remember()
    return found


def _files(artefact: Artefact) -> Iterator[tuple[str, bytes]]:
    """Yield what is kept of an artefact: the name of each file, and its content."""
    for suffix in SUFFIXES:
        file = artefact.file(suffix)
        if file.name in artefact.made.outputs:
            content = file.read_bytes()
            yield (f"{file.name}.gz", gzip.compress(content, mtime=0)) if suffix == ROWS else (file.name, content)


def _about(plan: Plan, paper: str, artefacts: Sequence[Artefact], contents: Mapping[str, bytes]) -> About:
    every = [artefact.about for artefact in artefacts]
    costs = {path: cost["seconds"] for about in every for path, cost in about["costs"].items()}
    scenarios = {one["name"]: one for about in every for one in about["spec"]["scenarios"]}
    config = plan.config.model_dump(mode="json", exclude_unset=True, include=CONFIG)
    return About(
        preset=plan.config.preset,
        seeds=plan.seeds(paper),
        config={key: value for key, value in config.items() if value} | {"papers": [paper]},
        scenarios={name: Label(label=one["label"], data=one["data"]) for name, one in scenarios.items()},
        commits=sorted({about["commit"] or "unknown" for about in every}),
        edited=any(about["clean"] is False for about in every),
        hours=round(sum(costs.values()) / 3600, 3),
        devices=sorted({device for about in every for device in about["devices"]}),
        versions={name: version for about in every for name, version in about["versions"].items()},
        files={name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    ).sealed()


def _replaces(before: Kept, about: About) -> None:
    """Raise `UserError` where a run would replace another one, or lose some of its files."""
    other = [what for what in ("preset", "seeds", "config") if getattr(before.about, what) != getattr(about, what)]
    place = os.path.relpath(before.folder)
    if other:
        raise UserError(f"{place}: keeps a run with another {' and '.join(other)}; choose another name (RUN).")
    if lost := sorted(before.about.files.keys() - about.files.keys()):
        raise UserError(f"{place}: also keeps {', '.join(lost)}; name their tables and figures in TARGETS, too.")
