"""Which jobs would run and why (`make why`), and whether any result was changed since it was made (`make verify`)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from fu.pipeline.plan.estimates import counted
from fu.pipeline.plan.pending import FOLLOWS, Change, Pending
from fu.pipeline.plan.plan import Job, Plan

NAMED = 3  # jobs per line


def why(plan: Plan, targets: Sequence[str]) -> Iterator[str]:
    """Yield one line per change that makes jobs run, with the jobs; one line if everything is up to date."""
    pending = Pending(plan)
    to_make = list(pending.to_make(plan.asked(targets)))
    pending.remember()
    of = f"at preset {plan.config.preset!r}" + (f" for {', '.join(targets)}" if targets else "")
    if not to_make:
        yield f"Nothing to do {of}: everything is up to date with the current settings, code and data."
        return
    yield f"{counted(len(to_make), 'job')} to run {of}:"
    changed: dict[tuple[str, str, str], list[tuple[str, Job]]] = {}  # a change -> where, and what it makes run
    for job, reason in to_make:
        text = "needed again" if reason.kind == "absent" else reason.text
        for path, what in reason.changes or (Change((text,)),):
            changed.setdefault((reason.kind, path[-1], what), []).append((".".join(path), job))
    for (kind, _, what), places in sorted(changed.items(), key=lambda item: item[0][0] == FOLLOWS.kind):
        shortest, *others = sorted({place for place, _ in places}, key=len)
        more = f" (and in {counted(len(others), 'other place')})" if others else ""
        text = f"{Change((shortest,), what)}{more}"
        jobs = list({job.certificate: job for _, job in places}.values())
        stages = ", ".join(f"{number} {stage}" for stage, number in Counter(job.stage for job in jobs).items())
        yield f"  {kind:<11} {text}: {stages}{_named(jobs) if kind != FOLLOWS.kind else ''}"


def verify(plan: Plan, wanted: Sequence[Job]) -> Iterator[str]:
    """Read every file behind these jobs; yield changed files, and artefacts that do not follow from their inputs."""
    pending = Pending(plan, thorough=True)
    behind = [job for job in plan.behind(wanted) if any(Path(path).exists() for path in job.outputs.values())]
    reasons = {job.certificate: pending.reason(job) for job in tqdm(behind, "checking", unit=" job", disable=None)}
    pending.remember()
    for reason in reasons.values():
        if reason and reason.kind in ("damaged", "missing", "certificate"):
            yield f"{reason.text}."
    for job in behind:
        if job.stage == "publish" and reasons[job.certificate]:
            first = next(reason for before in plan.behind([job]) if (reason := pending.reason(before)))
            yield f"{'_'.join(job.names.values())} is out of date ({first.kind}: {first.text})."


def summary(plan: Plan, wanted: Sequence[Job]) -> str:
    """Return how many of the planned jobs are made."""
    behind = list(plan.behind(wanted))
    there = sum(Path(job.certificate).exists() for job in behind)
    made = f"{there} of {counted(len(behind), 'job')} done"
    return f"{made}; no file was changed, and all tables and figures match the current settings."


def _named(jobs: list[Job]) -> str:
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    return f" ({', '.join(job.stem.partition('/')[2].partition('/')[2] for job in jobs[:NAMED])}{more})"
