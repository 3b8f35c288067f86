"""What of a run runs, waits and has failed, and why: from Slurm's queue, certificates and logs, whoever submits or not.

`make status` asks from any terminal in the folder, also after the process that submitted was killed.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from fu.pipeline import cluster
from fu.pipeline.cluster import Queued
from fu.pipeline.estimates import counted
from fu.pipeline.paths import CERTIFIED, OUTPUTS
from fu.pipeline.pending import Pending
from fu.pipeline.plan import Job, Plan
from fu.pipeline.screen import PROGRESS, SLURM_LOGS, lines_of, own_reason, problem

NAMED = 20  # of each kind


def status(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Yield what became of the jobs behind those wanted, in lines for a person."""
    to_make = [job for job, _ in Pending(plan).to_make(wanted)]
    queue = cluster.queue(Path.cwd()) if shutil.which("squeue") else []
    running = {told.comment: told for told in queue if not told.where.startswith("(")}
    waiting = {told.comment: told for told in queue if told.where.startswith("(")}
    runs = [job for job in to_make if submission(job) in running]
    waits = [job for job in to_make if submission(job) in waiting and job not in runs]
    failed = {
        job.certificate: reason
        for job in to_make
        if job not in runs and job not in waits and (reason := failure(plan, job))
    }
    made = len(list(plan.behind(wanted))) - len(to_make)
    rest = len(to_make) - len(runs) - len(waits) - len(failed)
    yield (
        f"{made} of {counted(made + len(to_make), 'job')} made; {len(runs)} run, {len(waits)} wait, {len(failed)} "
        f"failed, {rest} not submitted."
    )
    yield from _named("Run", [_running(plan, job, running[submission(job)]) for job in runs])
    yield from _named("Wait", [_waiting(job, waiting[submission(job)]) for job in waits])
    yield from _named("Failed", list(dict.fromkeys(failed.values())))
    if to_make:
        alive = cluster.submitter()
        yield f"{alive} submits from this folder." if alive else (
            "Nobody submits from this folder: start the same command again to go on."
        )


def submission(job: Job) -> str:
    """Return the comment with which the plug-in submits a job."""
    wildcards = re.findall(r"{(\w+)}", next(iter(OUTPUTS[job.stage].values())))
    return f"rule_{job.stage}_wildcards_{'_'.join(job.names[name] for name in wildcards).replace('/', '_')}"


def failure(plan: Plan, job: Job) -> str:
    """Return why a job failed since it was last made; "" if it did not."""
    rule, _, wildcards = submission(job).partition("_wildcards_")
    made = Path(job.certificate)
    since = made.stat().st_mtime if made.exists() else 0.0
    logs = sorted(Path(SLURM_LOGS, rule, wildcards).glob("*.log"), key=lambda log: log.stat().st_mtime)
    own = _log(plan, job)
    newer = [str(log) for log in [own, *logs[-1:]] if log.exists() and log.stat().st_mtime > since]
    known = own_reason(newer)
    if not (newer and (logs or (known and ("Traceback (most recent call last):" in known or known[-1][:7] == "error: ")))):
        return ""
    return problem(_name(job), newer)


def _log(plan: Plan, job: Job) -> Path:
    return Path(plan.paths.log(job.stage).format(**job.names))


def _name(job: Job) -> str:
    return job.certificate.removesuffix(CERTIFIED)


def _running(plan: Plan, job: Job, told: Queued) -> str:
    last = [line for line in lines_of(str(_log(plan, job))) if PROGRESS.match(line)][-1:]
    return f"{_name(job)}: {told.used} of {told.limit} on {told.where} (job {told.number})" + "".join(
        f"\n    {line}" for line in last
    )


def _waiting(job: Job, told: Queued) -> str:
    return f"{_name(job)}: {told.where.strip('()')} (job {told.number})"


def _named(heading: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{heading}:"
        yield from (f"  {line}" for line in lines[:NAMED])
    if len(lines) > NAMED:
        yield f"  and {len(lines) - NAMED} more"
