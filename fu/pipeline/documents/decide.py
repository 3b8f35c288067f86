"""What would decide the claims that are undecided or not judged on real data, and what it costs: `make decide`.

For a claim that a kept run left undecided: more seeds of that run, as many as its verdict states for a 50% and a 90%
chance of a decision. For a claim that no run has judged: the fewest seeds that can decide a mean, at an unknown chance.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache
from math import isfinite, isinf, nan
from typing import Any, NamedTuple

from tabulate import tabulate  # type: ignore[import-untyped]

from fu.artefacts.entry import Claim
from fu.claims.testing import LEAST, MOST
from fu.errors import UserError
from fu.pipeline.documents import reproduced
from fu.pipeline.documents.kept import ABOUT, Kept
from fu.pipeline.documents.reproduced import Run
from fu.pipeline.plan.estimates import counted
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import catalogue

SMALL = "smoke"  # on stand-in data, which cannot decide a claim
MORE = 5  # seeds between the two plans from which costs are extrapolated linearly
CHANCES = 0.5, 0.9  # of a decision with the seeds that a verdict states
SECOND = 1 / 3600
NOT_JUDGED = "not judged"


class Option(NamedTuple):
    """A run that may decide a claim."""

    paper: str
    claim: str
    state: str
    command: str
    run: str  # the kept run that takes more seeds; none where the claim was never judged
    seeds: tuple[float, ...]  # for each of `CHANCES`, or one number where the chance is unknown
    hours: tuple[float, ...]  # of a core, for each of these

    @property
    def rate(self) -> float:
        """Claims decided per core hour, with the better number of seeds."""
        costs = zip(CHANCES, self.hours, strict=False)
        return max((chance / max(hours, SECOND) for chance, hours in costs if isfinite(hours)), default=0.0)

    @property
    def row(self) -> list[str]:
        """The line of the table."""
        seeds = dict.fromkeys(
            f"{n:.0f}" if isfinite(n) else f"more than {MOST:,}" if isinf(n) else "unknown" for n in self.seeds
        )
        hours = dict.fromkeys(f"{n:,.1f}" if isfinite(n) else "–" for n in self.hours)
        rate = f"{self.rate:.2g}" if self.rate else "–"
        about = self.state, self.command, self.run, " to ".join(seeds), " to ".join(hours), rate
        return [f"{self.paper}: {self.claim}", *about]


def table(plan: Plan, targets: Iterable[str] = (), runs: Iterable[Run] | None = None) -> str:
    """Return the table of what would decide the claims about targets (none: all), the most per core hour first.

    `runs`: what has judged them (default: the kept runs).
    """
    asked = {(job.paper, job.names.get("artefact")) for job in plan.asked(targets)}
    of_paper = reproduced.by_paper([*(reproduced.runs() if runs is None else runs)])
    preset = "reduced" if plan.config.preset == SMALL else plan.config.preset
    options, number = list[Option](), 0
    for paper in plan.papers:
        every = _plan({"preset": preset, "papers": [paper]}, None).papers[paper].claims
        claims = {name: claim for name, claim in every.items() if (paper, claim.artefact) in asked}
        options += _options(paper, claims, of_paper.get(paper, []), preset)
        number += len(claims)
    options.sort(key=lambda one: (-one.rate, one.paper, one.claim))
    undecided = sum(one.state != NOT_JUDGED for one in options)
    heads = ("claim", "now", "make reproduce", "kept run", "seeds", "core hours", "claims per hour")
    return (
        f"On real data {number - len(options)} of {counted(number, 'claim')} are decided, {undecided} undecided, "
        f"{len(options) - undecided} not judged.\n\n"
        f"{tabulate([one.row for one in options], heads, disable_numparse=True)}\n\n"
        "Seeds and core hours: for a 50% and a 90% chance of a decision in the scenario that needs most, if mean and "
        "standard deviation stay as observed. A claim not judged yet is listed with the fewest seeds that can decide "
        f"a mean ({LEAST}), taken as a 50% chance. Claims about the same table share its jobs. The settings of a kept "
        "run are in docs/measurements/{paper}/{run}/run.yaml. `{paper}_verdicts` judges all tables and figures of the "
        "paper; core hours are those of the named one alone, with overrides: {paper: {artefacts: {verdicts: {judges: "
        "[artefact]}}}}. `make plan` says which jobs are done."
    )


def _options(paper: str, claims: Mapping[str, Claim], runs: list[Run], preset: str) -> Iterator[Option]:
    judged = {str(row["claim"]): row for row in reproduced.judged(runs).to_dict("records")} if runs else {}
    of = {run.of.name: run.of for run in runs}
    for name, claim in claims.items():
        row = judged.get(name)
        if row is None:
            yield _first(paper, name, claim, preset)
        elif row["verdict"] == "undecided":
            yield _again(paper, name, claim, of[row["run"]], row)


def _again(paper: str, name: str, claim: Claim, one: Kept, row: Mapping[Hashable, Any]) -> Option:
    """Return the run that left a claim undecided, with more seeds."""
    needed = tuple(float(row[key] or nan) for key in ("needed", "needed_90"))
    config = {**one.about.config, "preset": one.about.preset, "papers": [paper]}
    own = len(one.about.seeds)  # not fewer: an audit with too few is refused
    try:
        low, high = (_hours(_plan(config, n), claim.artefact) for n in (own, own + MORE))
    except UserError as error:
        raise UserError(f"{one.folder / ABOUT}: these settings can no longer be run: {error}") from None
    hours = tuple(low + (high - low) / MORE * (n - own) for n in needed)
    state, command = f"undecided, {counted(int(row['n']), 'seed')}", _command(one.about.preset, paper, claim.artefact)
    return Option(paper, name, state, command, one.name, needed, hours)


def _first(paper: str, name: str, claim: Claim, preset: str) -> Option:
    """Return the run that judges a claim for the first time."""
    without_noise = {"EXACT", "INTERVAL"} & catalogue.declared("claims", claim.kind).keys()
    plan = _plan({"preset": preset, "papers": [paper]}, None if without_noise else LEAST)
    seeds, hours = len(plan.seeds(paper)), _hours(plan, claim.artefact)
    return Option(paper, name, NOT_JUDGED, _command(preset, paper, claim.artefact), "", (seeds,), (hours,))


def _command(preset: str, paper: str, artefact: str) -> str:
    return f'PRESET={preset} TARGETS="{paper}_{artefact} {paper}_verdicts"'


@cache
def _planned(config: str, seeds: int | None) -> Plan:
    return Plan({**json.loads(config), **({"seeds": [*range(seeds)]} if seeds else {})})


def _plan(config: Mapping[str, Any], seeds: int | None) -> Plan:
    """Return the plan of a paper with so many seeds; None: with its own."""
    return _planned(json.dumps(config, sort_keys=True), seeds)


def _hours(plan: Plan, artefact: str) -> float:
    """Return the core hours of all jobs that an artefact needs; the plan is of one paper."""
    [paper] = plan.papers
    return sum(job.seconds for job in plan.behind(plan.asked([f"{paper}_{artefact}"]))) / 3600
