"""What would be made and why (`make why`), and whether all results are as they were made (`make verify`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from fu.pipeline.pending import FOLLOWS, Pending, Reason
from fu.pipeline.plan import Job, Plan

NAMED = 3  # jobs per line


def why(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Yield one line per change that makes jobs run, with the jobs; one line if everything is up to date."""
    found: dict[Reason, list[Job]] = {}
    for job, reason in Pending(plan).to_make(wanted):
        kind = Reason("absent", "needed again") if reason.kind == "absent" else reason
        found.setdefault(kind, []).append(job)
    if not found:
        yield "Nothing to do: everything is up to date with the current settings, code and data."
        return
    yield f"{_jobs(sum(map(len, found.values())))} to run:"
    for reason, jobs in sorted(found.items(), key=lambda item: item[0] == FOLLOWS):
        stages = ", ".join(f"{number} {stage}" for stage, number in Counter(job.stage for job in jobs).items())
        yield f"  {reason.kind:<11} {reason.text}: {stages}{_named(jobs) if reason != FOLLOWS else ''}"


def verify(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Read every file behind these jobs; yield changed files, and artefacts that do not follow from their inputs."""
    pending = Pending(plan, thorough=True)
    behind = [job for job in plan.behind(wanted) if _is_there(job)]
    reasons = {job.certificate: pending.reason(job) for job in tqdm(behind, "reading", unit=" job", disable=None)}
    pending.remember()
    for reason in reasons.values():
        if reason and reason.kind in ("damaged", "missing", "certificate"):
            yield f"{reason.text}."
    for job in behind:
        if job.stage == "publish" and reasons[job.certificate]:
            first = next(found for before in plan.behind([job]) if (found := pending.reason(before)))
            yield f"{'_'.join(job.names.values())} does not follow from its inputs ({first.kind}: {first.text})."


def _is_there(job: Job) -> bool:
    return any(Path(path).exists() for path in job.outputs.values())


def summary(plan: Plan, wanted: Sequence[Job]) -> str:
    """Return how many of the planned jobs are made."""
    behind = list(plan.behind(wanted))
    there = sum(Path(job.certificate).exists() for job in behind)
    return f"{there} of {_jobs(len(behind))} made, every file as it was made, every artefact from the current settings."


def _jobs(number: int) -> str:
    return f"{number} job" if number == 1 else f"{number} jobs"


def _name(job: Job) -> str:
    return job.certificate.removesuffix(".made.json")


def _named(jobs: list[Job]) -> str:
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    return f" ({', '.join(_name(job).partition('/')[2].partition('/')[2] for job in jobs[:NAMED])}{more})"
