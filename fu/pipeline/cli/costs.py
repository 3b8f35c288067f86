"""What it costs to make the missing tables and figures: jobs, hours, memory, disk space and downloads."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tabulate import SEPARATING_LINE, tabulate  # type: ignore[import-untyped]

from fu.data.dataset import about
from fu.pipeline.engine import groups
from fu.pipeline.plan import estimates
from fu.pipeline.plan.estimates import counted
from fu.pipeline.plan.pending import Pending
from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.provenance import catalogue
from fu.pipeline.stages import data
from fu.pipeline.stages.common import ModelSpec

DOWNLOADED = "downloaded if there is a network"
Jobs = Mapping[str, Job]  # by certificate


class Source(NamedTuple):
    """A file that jobs need from outside: its size and where it comes from."""

    path: str
    mb: float
    origin: str


def table(plan: Plan, targets: Iterable[str]) -> str:
    """Return what it costs to make targets (none: all) as far as they are not made, by artefact and paper."""
    wanted = {job.certificate: job for job in plan.asked(targets)}
    pending = Pending(plan)
    due = {job.certificate: job for job, _ in pending.to_make(wanted.values())}
    pending.remember()
    made = [job for job in plan.behind(wanted.values()) if job.certificate not in due]
    unit = "GPU hours" if plan.config.device == "cuda" else "core hours"
    last = (
        f"Already done: {counted(len(made), 'job')}, {_hours(plan, made)} {unit}.\n"
        "Times are measured where such a job has run here before, else estimated for one core of a server CPU."
    )
    if not due:
        return f"Nothing to do at preset {plan.config.preset!r}.\n{last}"
    papers: dict[str, dict[str, Jobs]] = {}  # paper -> artefact -> due jobs
    for job in wanted.values():
        if behind := {one.certificate: one for one in plan.behind([job]) if one.certificate in due}:
            papers.setdefault(job.paper or "data sets", {})[_name(plan, job)] = behind
    rows: list[list[str] | str] = []
    for paper, artefacts in papers.items():
        rows += [_row(plan, name, jobs) for name, jobs in artefacts.items()]
        every = {path: job for jobs in artefacts.values() for path, job in jobs.items()}
        rows.append(_row(plan, f"all of {paper}", every))
        rows += [SEPARATING_LINE] * (len(papers) > 1)
    if len(papers) > 1:
        rows.append(_row(plan, "all", due))
    headings = ("", "jobs", unit, "peak memory", *(["GPU memory"] if plan.config.device == "cuda" else []), "disk")
    outside = [(one.path, _amount(one.mb), one.origin) for one in sources(plan, due.values())]
    parts = [
        f"Still to make at preset {plan.config.preset!r}; each line includes all jobs it needs, shared ones too.",
        tabulate(rows, headings, disable_numparse=True, colalign=("left", *["right"] * (len(headings) - 1))),
        f"Input files (at most):\n{tabulate(outside, tablefmt='plain', disable_numparse=True)}" if outside else "",
        last,
    ]
    return "\n\n".join(filter(None, parts))


def _row(plan: Plan, label: str, jobs: Jobs) -> list[str]:
    every = jobs.values()
    largest, disk = max(job.mem_mb for job in every), sum(job.disk_mb for job in every)
    on_gpu = [_amount(max(job.gpu_mem_mb for job in every))] if plan.config.device == "cuda" else []
    return [label, f"{len(every):,}", _hours(plan, every), _amount(largest), *on_gpu, _amount(disk)]


def _hours(plan: Plan, jobs: Iterable[Job]) -> str:
    """Return the hours of as many cores as jobs hold, or of a GPU for those that compute with models."""
    gpu, threads = plan.config.device == "cuda", plan.config.threads
    seconds = 0.0
    for job in jobs:
        computes = groups.computes(job.stage)
        seconds += job.seconds * (computes if gpu else threads if computes else 1)
    return f"{seconds / 3600:,.1f}"


def _amount(mb: float) -> str:
    for unit, size in (("TB", 1e6), ("GB", 1e3), ("MB", 1)):
        if mb >= size:
            return f"{mb / size:.1f} {unit}" if size > 1 else f"{mb:.0f} {unit}"
    return "1 MB" if mb else "–"


def _name(plan: Plan, job: Job) -> str:
    if job.stage == "publish":
        return "_".join(job.names.values())
    return job.stem.removeprefix(f"{plan.root}/")


def sources(plan: Plan, jobs: Iterable[Job]) -> list[Source]:
    """Return, sorted, the archives and weights that jobs need from outside."""
    return sorted({source for job in jobs for source in _sources(plan, job)})


def _sources(plan: Plan, job: Job) -> Iterator[Source]:
    spec = job.specs[0]  # one model for all points
    if job.stage == "data" and not about(job.names["dataset"]).embedded:
        dataset, facts = job.names["dataset"], about(job.names["dataset"])
        mb = estimates.archive_mb(dataset) + facts.samples * (5 if facts.owners else 1) / 1e6  # with labels and owners
        origin = "provide it (docs/data.md)"
        if isinstance(spec, data.Spec) and spec.archive:
            origin = "what results were made from: provide it, or its folder (DATA_DIR=...)"
        elif facts.torchvision:
            origin = f"torchvision's {facts.torchvision}, {DOWNLOADED}"
        yield _source(Path(plan.config.data_dir, f"{dataset}.npz"), mb, origin)
    if isinstance(spec, ModelSpec) and spec.model.params.get("weights") != "random":
        declared = catalogue.declared("models", spec.model.name)
        if file := declared.get("PRETRAINED"):
            cache = os.environ.get("TORCH_HOME") or f"{os.environ.get('XDG_CACHE_HOME', '~/.cache')}/torch"
            path = Path(cache, "hub/checkpoints", file).expanduser()
            mb = declared.get("ESTIMATE", {}).get("pretrained_mb", 0)
            yield _source(path, mb, f"torchvision's weights, {DOWNLOADED}")


def _source(path: Path, mb: float, origin: str) -> Source:
    """Return a file as it is, or else as large as it can be."""
    if path.is_file():
        return Source(str(path), path.stat().st_size / 1e6, "present")
    return Source(str(path), mb, origin)
