"""What would be made and why (`make why`), and whether all that is there is what was made (`make verify`)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from fu.pipeline.pending import FOLLOWS, Pending, Reason
from fu.pipeline.plan import Job, Plan

NAMED = 3  # of the jobs of a line


def why(plan: Plan, wanted: Iterable[Job]) -> Iterator[str]:
    """Yield one line on each change that makes jobs run, with the jobs; one line where nothing is to be made."""
    found: dict[Reason, list[Job]] = {}
    for job, reason in Pending(plan).to_make(wanted):
        kind = Reason("absent", "needed again") if reason.kind == "absent" else reason
        found.setdefault(kind, []).append(job)
    if not found:
        yield "Nothing is to be made: everything follows from the present settings, code and data."
        return
    yield f"{_jobs(sum(map(len, found.values())))} to run:"
    for reason, jobs in sorted(found.items(), key=lambda item: item[0] == FOLLOWS):
        stages = ", ".join(f"{number} {stage}" for stage, number in Counter(job.stage for job in jobs).items())
        yield f"  {reason.kind:<11} {reason.text}: {stages}{_named(jobs) if reason != FOLLOWS else ''}"


def verify(plan: Plan, wanted: Iterable[Job]) -> Iterator[str]:
    """Read every file behind these jobs and yield a line on each that is not what was made, and on what rests on it."""
    pending = Pending(plan, thorough=True)
    behind = list(plan.behind(wanted))
    there = [job for job in behind if any(Path(path).exists() for path in job.outputs.values())]
    reasons = {job.certificate: pending.reason(job) for job in tqdm(there, "reading", unit=" job", disable=None)}
    pending.remember()
    for job in there:
        reason = reasons[job.certificate]
        if reason and reason != FOLLOWS:
            yield f"{_name(job)}: {reason.kind}: {reason.text}"
    for job in there:
        if job.stage == "publish" and reasons[job.certificate]:
            yield f"{'_'.join(job.names.values())} does not follow from its inputs."


def summary(plan: Plan, wanted: Iterable[Job]) -> str:
    """Return how much of what is planned is there."""
    behind = list(plan.behind(wanted))
    there = sum(Path(job.certificate).exists() for job in behind)
    return f"{there} of {_jobs(len(behind))} made, every file as it was made, every artefact from the present settings."


def _jobs(number: int) -> str:
    return f"{number} job" if number == 1 else f"{number} jobs"


def _name(job: Job) -> str:
    return job.certificate.removesuffix(".made.json")


def _named(jobs: list[Job]) -> str:
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    return f" ({', '.join(_name(job).partition('/')[2].partition('/')[2] for job in jobs[:NAMED])}{more})"
