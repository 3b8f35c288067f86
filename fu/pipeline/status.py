"""What of a run runs, waits and has failed, and why: from Slurm's queue, certificates and logs, whoever submits or not.

`make status` asks from any terminal in the folder, also after the process that submitted was killed.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fu.pipeline import cluster, snapshot
from fu.pipeline.cluster import Queued
from fu.pipeline.estimates import counted
from fu.pipeline.paths import CERTIFIED, OUTPUTS
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Job, Plan
from fu.pipeline.screen import PROGRESS, SLURM_LOGS, lines_of, problem, tells

NAMED = 20  # of each kind
RULES = re.compile(rf"(_({'|'.join(OUTPUTS)}|\.\.\.))+$")  # at the end of a pack's comment


def planned(words: Sequence[str], config: Callable[[], dict[str, Any]]) -> tuple[Plan, list[str]]:
    """Return plan and targets of the run that goes on or was killed, as its own code sees it, else those of today.

    A person may have edited the code and the config since: then another process, with the code as it was, goes on here.
    """
    targets = [word for word in words if "=" not in word]
    if snapshot.INSIDE:
        return Plan(snapshot.planned()["config"]), targets or snapshot.planned()["targets"]
    if copies := [path.parent.resolve() for path in snapshot.COPIES.glob("*/planned.yaml")]:
        there = {**os.environ, "PYTHONPATH": str(copies[0]), "PYTHONSAFEPATH": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "fu.pipeline.show", "status", *words], there)
    return Plan(config()), targets


def status(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Yield what became of the jobs behind those wanted, in lines for a person."""
    to_make = [job for job, _ in Pending(plan).to_make(wanted)]
    packs = cluster.packs()
    queue = cluster.queue(Path.cwd()) if shutil.which("squeue") else []
    submitted: dict[str, list[Job]] = {}
    for job in to_make:
        submitted.setdefault(_comment(job, packs), []).append(job)
    queued = [(told, submitted.get(RULES.sub("", told.comment), [])) for told in queue]
    runs = [(told, jobs) for told, jobs in queued if jobs and told.state != "PENDING"]
    waits = [(told, jobs) for told, jobs in queued if jobs and told.state == "PENDING"]
    there = {job.certificate for _, jobs in queued for job in jobs}
    failed = [why for job in to_make if job.certificate not in there and (why := failure(plan, job, packs))]
    numbers = {"run": _number(runs), "wait": _number(waits), "failed": len(failed)}
    numbers["not submitted"] = len(to_make) - len(there) - len(failed)
    made = len(list(plan.behind(wanted))) - len(to_make)
    rest = ", ".join(f"{number} {what}" for what, number in numbers.items())
    yield f"{made} of {counted(made + len(to_make), 'job')} made, {rest}"
    yield from _listed("Run", [_running(plan, told, jobs) for told, jobs in runs])
    yield from _listed("Wait", [_queued(told, jobs, told.where.strip("()")) for told, jobs in waits])
    yield from _listed("Failed", list(dict.fromkeys(failed)))
    if to_make and (alive := cluster.submitter()):
        yield f"{alive} submits from this folder."
    elif to_make:
        yield "Nobody submits from this folder: start the same command again to go on."


def failure(plan: Plan, job: Job, packs: dict[str, str]) -> str:
    """Return why a job failed since it was last made; "" if it did not."""
    made, own = Path(job.certificate), _log(plan, job)
    since = made.stat().st_mtime if made.exists() else 0.0
    pack = packs.get(job.certificate)
    rule, _, wildcards = _comment(job, packs).partition("_wildcards_")
    slurm = Path(SLURM_LOGS).glob(f"group_{pack}_*/*.log" if pack else f"{rule}/{wildcards}/*.log")
    newest = sorted(slurm, key=lambda log: log.stat().st_mtime)[-1:]
    logs = [str(log) for log in [own, *newest] if log.exists() and log.stat().st_mtime > since]
    if pack and not own.exists():  # another one of the pack had failed
        return ""
    return problem(_name(job), logs) if tells(logs) or any(SLURM_LOGS in log for log in logs) else ""


def _comment(job: Job, packs: dict[str, str]) -> str:
    """Return the comment with which the plug-in submits a job, without the rules of a pack."""
    if pack := packs.get(job.certificate):
        return f"rule_{pack}"
    wildcards = re.findall(r"{(\w+)}", next(iter(OUTPUTS[job.stage].values())))
    return f"rule_{job.stage}_wildcards_{'_'.join(job.names[name] for name in wildcards).replace('/', '_')}"


def _running(plan: Plan, told: Queued, jobs: list[Job]) -> str:
    last = [line for job in jobs for line in lines_of(str(_log(plan, job))) if PROGRESS.match(line)][-1:]
    return "\n      ".join([_queued(told, jobs, f"{told.used} of {told.limit} on {told.where}"), *last])


def _queued(told: Queued, jobs: list[Job], text: str) -> str:
    more = f" and {len(jobs) - 1} more" if jobs[1:] else ""
    return f"{_name(jobs[0])}{more}: {text} (job {told.number})"


def _log(plan: Plan, job: Job) -> Path:
    return Path(plan.paths.log(job.stage).format(**job.names))


def _name(job: Job) -> str:
    return job.certificate.removesuffix(CERTIFIED)


def _number(found: list[tuple[Queued, list[Job]]]) -> int:
    return len({job.certificate for _, jobs in found for job in jobs})


def _listed(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{heading}:"
        yield from (f"  {line}" for line in lines[:NAMED])
    if len(lines) > NAMED:
        yield f"  and {len(lines) - NAMED} more"
