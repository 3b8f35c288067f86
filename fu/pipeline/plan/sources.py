"""The files behind a table or figure, each with the labels of its rows, trial by trial in the order of its rows."""

from collections.abc import Iterator

from fu.artefacts.entry import ORIGINAL, Entry
from fu.pipeline.plan.jobs import Job, Jobs
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.paths import SEED, at
from fu.pipeline.settings.records import Artefact
from fu.pipeline.stages.frames import CHOICE, COSTS, Source


def behind(jobs: Jobs, shown: Artefact, entry: Entry) -> Iterator[Source]:
    """Yield the sources of an artefact; several may be the same file under other labels.

    `shown`: the artefact as the paper's YAML states it; `entry`: the same with labels and settings resolved.
    """
    root = f"{jobs.paths.root}/"
    for kind, path, *labels in _named(jobs, shown, entry):
        yield Source(kind, path.removeprefix(root), *labels)


def _named(jobs: Jobs, shown: Artefact, entry: Entry) -> Iterator[tuple[str, ...]]:
    for name in sorted({claim.artefact for claim in entry.claims.values()}):
        yield "artefacts", jobs.paths("publish", "rows", paper=entry.paper, artefact=name), "", "", name
    for scenario in entry.scenarios if catalogue.measured(shown.kind) else ():
        scope = f"{entry.paper}/{scenario.name}"
        several = [(ORIGINAL, ORIGINAL)] if scenario.original else []
        several += [(of, trial) for of in shown.shown for trial in jobs.drawn(scope, of, shown)]
        for method, trial in several:
            labels = scenario.name, method, trial
            if jobs.grid.trials[scope, trial].points:
                folder, by = jobs.grid.trials[scope, trial].selection
                yield CHOICE, jobs.first("select", scenario=folder, method=by).outputs["selection"], *labels
            for kind, path, *role in _of(jobs, shown, entry, scope, method, trial):
                yield kind, path, *labels, *role
    for scenario in entry.scenarios:
        kinds = [kind for kind in ("holdings", "examples") if kind in entry.reads]
        if scenario.asked and scenario.asked.level == "sample":  # all are equally likely: sizes count
            kinds = ["holdings"]
        for kind in kinds:
            job = jobs.first(kind, run=f"{entry.paper}/{scenario.name}/{SEED}")
            yield kind, at(job.outputs[kind], entry.seeds[0]), scenario.name


def _of(jobs: Jobs, shown: Artefact, entry: Entry, scope: str, method: str, trial: str) -> Iterator[tuple[str, ...]]:
    """Yield kind and path of a trial's files, and the role of the model where the file does not state it."""
    models = jobs.models(scope, trial)
    [*_, last] = models
    if "evaluations" in entry.reads:
        for evaluation in jobs.measured(scope, shown):
            yield "evaluations", jobs.of(scope, trial, "evaluate", evaluation=evaluation).outputs["evaluation"]
    if "agreement" in entry.reads:
        names = {"artefact": entry.artefact, "trial": trial}
        yield "agreement", jobs.first("agree", run=f"{scope}/{SEED}", **names).outputs["agreement"]
    traced: dict[str, Job] = {}
    if method != ORIGINAL and not (entry.audits and method in entry.against):
        if "relearning" in entry.reads:
            yield "relearning", jobs.first("relearn", scenario=scope, trial=trial).outputs["relearned"]
        for stage, kind, output in (("assess", "audits", "audited"), ("expose", "exposed", "exposed")):
            for audit in entry.audits if kind in entry.reads else ():
                again = jobs.grid.reference(scope, method, entry.against)
                assert again  # `EntryChecks.repeated`
                names = {"trial": trial, "against": jobs.grid.names[scope, again][0], "audit": audit}
                yield kind, jobs.first(stage, scenario=scope, **names).outputs[output], last
        if "traces" in entry.reads:
            traced = {ORIGINAL: jobs.of(scope, trial, "train"), **models} if entry.from_training else models
            yield from (("traces", job.outputs["trace"], role) for role, job in traced.items())
    yield from ((COSTS, job.outputs["cost"], role) for role, job in {**models, **traced}.items())
