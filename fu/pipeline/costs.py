"""What the tables and figures cost that are still to be made: jobs, hours, memory, disk, and data from outside."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tabulate import SEPARATING_LINE, tabulate  # type: ignore[import-untyped]

from fu.data import leaf
from fu.data.dataset import about
from fu.pipeline import catalogue, estimates, groups
from fu.pipeline.estimates import counted
from fu.pipeline.paths import CERTIFIED
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Job, Plan
from fu.pipeline.stages.common import ModelSpec

DOWNLOADED = "downloaded where there is a network"
Jobs = Mapping[str, Job]  # by certificate


class Source(NamedTuple):
    """A file that jobs need from outside: its size, where it comes from, whether it is there."""

    path: str
    mb: float
    origin: str
    there: bool


def table(plan: Plan, targets: Iterable[str]) -> str:
    """Return what it costs to make targets (none: all) as far as they are not made, by paper and artefact."""
    origin = estimates.use_calibration(plan.config.device, plan.config.threads)
    wanted = {job.certificate: job for job in plan.asked(targets)}
    pending = Pending(plan)
    running = {job.certificate: job for job, _ in pending.to_make(wanted.values())}
    pending.remember()
    made = [job for job in plan.behind(wanted.values()) if job.certificate not in running]
    last = f"Made already: {counted(len(made), 'job')}, {_hours(plan, made)} {_unit(plan)}.\n{origin}"
    if not running:
        return f"Nothing is to be made at preset {plan.config.preset!r}.\n{last}"
    artefacts, papers = dict[tuple[str, str], Jobs](), dict[str, Jobs]()
    for job in wanted.values():
        behind = {one.certificate: one for one in plan.behind([job]) if one.certificate in running}
        if behind:
            paper = job.paper or "data sets"
            artefacts[paper, _name(plan, job)] = behind
            papers[paper] = {**papers.get(paper, {}), **behind}
    each, of_papers = (Counter(chain.from_iterable(several.values())) for several in (artefacts, papers))
    rows: list[list[str] | str] = []
    for paper, jobs in papers.items():
        rows += [_row(plan, name, some, each) for (of, name), some in artefacts.items() if of == paper]
        rows.append(_row(plan, f"all of {paper}", jobs, of_papers))
        rows += [SEPARATING_LINE] * (len(papers) > 1)
    if len(papers) > 1:
        rows.append(_row(plan, "all", running, Counter(running.keys())))
    headings = ("", "jobs", "own", "submissions", _unit(plan), "own", "largest job", "disk", "missing data")
    outside = [(one.path, _amount(one.mb), one.origin) for one in sources(plan, running.values())]
    return "\n\n".join(
        [
            f"To be made at preset {plan.config.preset!r}: all jobs behind each line; own: those that no other needs.",
            tabulate(rows, headings, disable_numparse=True, colalign=("left", *["right"] * 8)),
            *(
                [f"From outside, at most:\n{tabulate(outside, tablefmt='plain', disable_numparse=True)}"]
                if outside
                else []
            ),
            last,
        ]
    )


def _row(plan: Plan, label: str, jobs: Jobs, uses: Counter[str]) -> list[str]:
    own = [job for path, job in jobs.items() if uses[path] == 1]
    every = list(jobs.values())
    return [
        label,
        f"{len(every):,}",
        f"{len(own):,}",
        f"{groups.submissions(plan, every):,}",
        _hours(plan, every),
        _hours(plan, own),
        _amount(max(job.mem_mb for job in every)),
        _amount(sum(job.disk_mb for job in every)),
        _amount(sum(one.mb for one in sources(plan, every) if not one.there)),
    ]


def _unit(plan: Plan) -> str:
    return "GPU hours" if estimates.on_gpu(plan.config.device) else "core hours"


def _hours(plan: Plan, jobs: Iterable[Job]) -> str:
    """Return the hours of as many cores as jobs hold, or of a GPU for those that compute with models."""
    gpu, threads = estimates.on_gpu(plan.config.device), plan.config.threads
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
    return job.certificate.removeprefix(f"{plan.root}/").removesuffix(CERTIFIED)


# ---- from outside ----------------------------------------------------------------------------------------------------


def sources(plan: Plan, jobs: Iterable[Job]) -> list[Source]:
    """Return, sorted, the archives and weights that jobs need from outside."""
    return sorted({source for job in jobs for source in _sources(plan, job)})


def _sources(plan: Plan, job: Job) -> Iterator[Source]:
    if job.stage == "data" and not about(job.names["dataset"]).embedded:
        yield _archive(job.names["dataset"], Path(plan.config.data_dir))
    spec = job.specs[0]  # one model for all points
    if isinstance(spec, ModelSpec) and spec.model.params.get("weights") != "random":
        told = catalogue.declared("models", spec.model.name)
        if file := told.get("PRETRAINED"):
            cache = os.environ.get("TORCH_HOME") or f"{os.environ.get('XDG_CACHE_HOME', '~/.cache')}/torch"
            path = Path(cache, "hub/checkpoints", file).expanduser()
            yield _source(
                path, told.get("ESTIMATE", {}).get("pretrained_mb", 0), f"torchvision's weights, {DOWNLOADED}", False
            )


def _archive(dataset: str, folder: Path) -> Source:
    facts, path, found = about(dataset), folder / f"{dataset}.npz", False
    mb = estimates.archive_mb(dataset) + facts.samples * (5 if facts.owners else 1) / 1e6  # with labels and owners
    origin = "an archive of your own (docs/data.md)"
    if facts.owners:
        found = leaf.exists(folder / dataset)
        origin = f"{'' if found else 'an archive, or '}LEAF's files in {folder / dataset} (docs/data.md)"
    elif facts.torchvision:
        found = _is_downloaded(folder / "torchvision", facts.torchvision)
        origin = f"torchvision's {facts.torchvision}, {'is there' if found else DOWNLOADED}"
    return _source(path, mb, origin, found)


def _source(path: Path, mb: float, origin: str, found: bool) -> Source:
    """Return a file as it is, or else as large as it can be; `found`: what it is made from is there."""
    if path.is_file():
        return Source(str(path), path.stat().st_size / 1e6, "is there", True)
    return Source(str(path), mb, origin, found)


def _is_downloaded(folder: Path, name: str) -> bool:
    """Return whether torchvision has downloaded a data set: to a folder such as MNIST or cifar-10-batches-py."""
    form = re.compile(f"{name.lower()}(batchespy|python)?")
    return folder.is_dir() and any(form.fullmatch(re.sub(r"[\W_]", "", one.name.lower())) for one in folder.iterdir())
