"""Which jobs are running, waiting or have failed, and why: read from locks, certificates, logs and Slurm's queue.

`make status` works from any terminal in the folder. For jobs submitted to a cluster it uses the run's copy of the code.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fu.errors import UserError
from fu.pipeline.certificate import holder, lock_of
from fu.pipeline.engine import cluster, runs, snapshot
from fu.pipeline.engine.cluster import Queued
from fu.pipeline.engine.screen import PROGRESS, SLURM_LOGS, lines_of, problem, tells
from fu.pipeline.estimates import counted
from fu.pipeline.paths import OUTPUTS
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Job, Plan

NAMED = 20  # of each kind
RULES = re.compile(rf"(_({'|'.join(OUTPUTS)}|\.\.\.))+$")  # at the end of a pack's comment


def planned(targets: list[str], config: Callable[[], dict[str, Any]]) -> tuple[Plan, list[str]]:
    """Return plan and targets: in a copy of the code those of the run that submits from it, else those of today."""
    if snapshot.INSIDE:
        return Plan(snapshot.planned()["config"]), targets or snapshot.planned()["targets"]
    return Plan(config()), targets


def status(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Yield what became of the jobs behind those wanted, in lines for a person."""
    pending = Pending(plan)
    to_make = [job for job, _ in pending.to_make(wanted)]
    pending.remember()
    made = len(list(plan.behind(wanted))) - len(to_make)
    head = f"{made} of {counted(made + len(to_make), 'job')} done"
    try:
        yield from _to_make(plan, to_make, head)
    except UserError as error:
        yield f"{head}, {len(to_make)} left; cannot tell which are running, waiting or failed: {error}"
    if to_make and (alive := runs.alive()):
        yield f"Running in this folder: {' and '.join(alive)}."
    elif to_make:
        yield "No run is active in this folder; start the same command again to continue."


def _to_make(plan: Plan, to_make: list[Job], head: str) -> Iterator[str]:
    packs = cluster.packs()
    queue = cluster.queue(Path.cwd()) if snapshot.INSIDE else []
    submitted: dict[str, list[Job]] = {}
    for job in to_make:
        submitted.setdefault(_comment(job, packs), []).append(job)
    queued = [(told, submitted.get(RULES.sub("", told.comment), [])) for told in queue]
    on_nodes = [(told, jobs) for told, jobs in queued if jobs and told.state != "PENDING"]
    waits = [(told, jobs) for told, jobs in queued if jobs and told.state == "PENDING"]
    active = {job.certificate for _, jobs in queued for job in jobs}
    holders = {job.certificate: holder(lock_of(Path(job.certificate))) for job in to_make}
    here = [job for job in to_make if job.certificate not in active and holders[job.certificate]]
    active.update(job.certificate for job in here)
    failed = [why for job in to_make if job.certificate not in active and (why := failure(plan, job, packs))]
    numbers = {"running": _number(on_nodes) + len(here), "waiting": _number(waits), "failed": len(failed)}
    numbers["not started"] = len(to_make) - len(active) - len(failed)
    yield ", ".join([head, *(f"{number} {what}" for what, number in numbers.items())])
    told_here = [_with_progress(plan, f"{job.stem}: {holders[job.certificate]}", [job]) for job in here]
    yield from _listed("Running", [*(_running(plan, told, jobs) for told, jobs in on_nodes), *told_here])
    yield from _listed("Waiting", [_queued(told, jobs, told.where.strip("()")) for told, jobs in waits])
    yield from _listed("Failed", list(dict.fromkeys(failed)))


def failure(plan: Plan, job: Job, packs: dict[str, str]) -> str:
    """Return why a job failed since it was last made; "" if it did not."""
    made, own_log = Path(job.certificate), _log(plan, job)
    since = made.stat().st_mtime if made.exists() else 0.0
    pack = packs.get(job.certificate)
    rule, _, wildcards = _comment(job, packs).partition("_wildcards_")
    slurm = Path(SLURM_LOGS).glob(f"group_{pack}_*/*.log" if pack else f"{rule}/{wildcards}/*.log")
    newest = sorted(slurm, key=lambda log: log.stat().st_mtime)[-1:]
    logs = [str(log) for log in [own_log, *newest] if log.exists() and log.stat().st_mtime > since]
    if pack and not own_log.exists():  # another one of the pack had failed
        return ""
    return problem(job.stem, logs) if tells(logs) or any(SLURM_LOGS in log for log in logs) else ""


def _comment(job: Job, packs: dict[str, str]) -> str:
    """Return the comment with which the plug-in submits a job, without the rules of a pack."""
    if pack := packs.get(job.certificate):
        return f"rule_{pack}"
    wildcards = re.findall(r"{(\w+)}", next(iter(OUTPUTS[job.stage].values())))
    return f"rule_{job.stage}_wildcards_{'_'.join(job.names[name] for name in wildcards).replace('/', '_')}"


def _running(plan: Plan, told: Queued, jobs: list[Job]) -> str:
    return _with_progress(plan, _queued(told, jobs, f"{told.used} of {told.limit} on {told.where}"), jobs)


def _with_progress(plan: Plan, text: str, jobs: list[Job]) -> str:
    last = [line for job in jobs for line in lines_of(str(_log(plan, job))) if PROGRESS.match(line)][-1:]
    return "\n      ".join([text, *last])


def _queued(told: Queued, jobs: list[Job], text: str) -> str:
    more = f" and {len(jobs) - 1} more" if jobs[1:] else ""
    return f"{jobs[0].stem}{more}: {text} (job {told.number})"


def _log(plan: Plan, job: Job) -> Path:
    return Path(plan.paths.log(job.stage).format(**job.names))


def _number(queued: list[tuple[Queued, list[Job]]]) -> int:
    return len({job.certificate for _, jobs in queued for job in jobs})


def _listed(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{heading}:"
        yield from (f"  {line}" for line in lines[:NAMED])
    if len(lines) > NAMED:
        yield f"  and {len(lines) - NAMED} more"
