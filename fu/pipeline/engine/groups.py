"""Which jobs are submitted to a cluster together: the short jobs of a scenario and seed, in packs; others alone.

A submission costs most of a minute: the queue, Snakemake twice, torch. No pack waits for itself, even indirectly,
because a job depends only on jobs in its own pack, in an earlier pack of its kind, or on a lower level.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import NamedTuple

from fu.pipeline.plan.plan import Job, Plan
from fu.pipeline.stages.common import NetworkSpec

HERE = ("data", "select", "publish")  # on the login node
# The estimated seconds of a pack: what a submission costs is then about a hundredth, and the time limit that it asks
# for, some six hours, is below that of most partitions.
LONGEST_S = 5400.0


class Place(NamedTuple):
    """Where a job is in a pack: the pack's name, its seconds, and those of the jobs before this one."""

    pack: str
    seconds: float
    before: float

    def minutes(self, job: Job, whole: int) -> int:
        """Return a job's share of the minutes that its pack asks for; the shares of a pack add up to the whole."""
        begin, end = (round(whole * spent / self.seconds) for spent in (self.before, self.before + job.seconds))
        return end - begin


def places(plan: Plan, jobs: Iterable[Job], longest: float = LONGEST_S) -> dict[str, Place]:
    """Return, by certificate, the places of those of these jobs that are submitted with others."""
    places = {}
    for number, pack in enumerate(pack for pack in packs(plan, jobs, longest) if len(pack) > 1):
        name = f"{_place(pack[0]).replace('/', '-')}-{number}"
        seconds, before = sum(job.seconds for job in pack), 0.0
        for job in pack:
            places[job.certificate] = Place(name, seconds, before)
            before += job.seconds
    return places


def packs(plan: Plan, jobs: Iterable[Job], longest: float = LONGEST_S) -> list[list[Job]]:
    """Return these jobs in packs of at most `longest` estimated seconds, dependencies first; many are of one job."""
    asked = {job.certificate: job for job in jobs}
    levels: dict[str, tuple[int, str]] = {}  # by certificate, with the kind
    for job in plan.behind(asked.values()):
        makers = {plan.job(*plan.producers[file]).certificate for file in job.files if file in plan.producers}
        kind = _kind(job, longest) if job.certificate in asked else job.certificate
        level = max((level + (other != kind) for level, other in map(levels.__getitem__, makers)), default=0)
        levels[job.certificate] = level, kind
    packs: list[list[Job]] = []
    order = sorted(filter(asked.__contains__, levels), key=levels.__getitem__)
    for _, names in groupby(order, key=levels.__getitem__):
        left = 0.0
        for job in map(asked.__getitem__, names):
            if job.seconds > left:
                packs.append([])
                left = longest
            packs[-1].append(job)
            left -= job.seconds
    return packs


@cache
def computes(stage: str) -> bool:
    """Whether the jobs of a stage compute with models, on a GPU where there is one."""
    return issubclass(import_module(f"fu.pipeline.stages.{stage}").Spec, NetworkSpec)


def _kind(job: Job, longest: float) -> str:
    """Return what the jobs of a pack have in common: a run, or a paper whose data they prepare; else the job itself."""
    if job.stage in HERE or job.seconds > longest:
        return job.certificate
    return _place(job)


def _place(job: Job) -> str:
    """Return the run of a job that computes with models, or the scenario where it is of all seeds; else the paper."""
    return (job.names.get("run") or job.names["scenario"]) if computes(job.stage) else job.paper
