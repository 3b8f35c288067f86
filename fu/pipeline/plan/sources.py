"""The files behind a table or figure, each with the labels of its rows, trial by trial in the order of its rows."""

from collections.abc import Iterator
from typing import NamedTuple

from fu.artefacts.entry import ORIGINAL, Entry
from fu.pipeline.plan.jobs import Job, Jobs
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.paths import SEED, at
from fu.pipeline.settings.records import Artefact
from fu.pipeline.stages.frames import CHOICE, COSTS, Source


class Part(NamedTuple):
    """A trial of a training or method (or the original model) in a scenario, and the job of its training."""

    scenario: str
    method: str
    trial: str
    trained: Job


class Sources:
    """The files behind one artefact."""

    def __init__(self, jobs: Jobs, shown: Artefact, entry: Entry) -> None:
        """`shown`: the artefact as the paper's YAML states it; `entry`: the same with labels and settings resolved."""
        self.jobs, self.shown, self.entry = jobs, shown, entry
        self.parts = [*self._parts()] if catalogue.measured(shown.kind) else []

    def __iter__(self) -> Iterator[Source]:
        """Yield the sources; several may be the same file under other labels."""
        root = f"{self.jobs.paths.root}/"
        for kind, path, *labels in self._all():
            yield Source(kind, path.removeprefix(root), *labels)

    def _all(self) -> Iterator[tuple[str, ...]]:
        entry, jobs = self.entry, self.jobs
        for name in sorted({claim.artefact for claim in entry.claims.values()}):
            yield "artefacts", jobs.paths("publish", "rows", paper=entry.paper, artefact=name), "", "", name
        for part in self.parts:
            labels = part.scenario, part.method, part.trial
            if selection := self._selection(part):
                yield CHOICE, selection, *labels
            yield from ((kind, path, *labels, *role) for kind, path, *role in self._of(part))
        for scenario in entry.scenarios:
            kinds = [kind for kind in ("holdings", "examples") if kind in entry.reads]
            if scenario.asked and scenario.asked.level == "sample":  # all are equally likely: sizes count
                kinds = ["holdings"]
            for kind in kinds:
                job = jobs.first(kind, run=f"{self._scope(scenario.name)}/{SEED}")
                yield kind, at(job.outputs[kind], entry.seeds[0]), scenario.name

    def _scope(self, scenario: str) -> str:
        return f"{self.entry.paper}/{scenario}"

    def _parts(self) -> Iterator[Part]:
        for scenario in self.entry.scenarios:
            scope = self._scope(scenario.name)
            several = [(ORIGINAL, ORIGINAL)] if scenario.original else []
            several += [(of, trial) for of in self.shown.shown for trial in self.jobs.drawn(scope, of, self.shown)]
            for method, trial in several:
                yield Part(scenario.name, method, trial, self.jobs.of(scope, trial, "train"))

    def _selection(self, part: Part) -> str:
        trial = self.jobs.grid.trials[self._scope(part.scenario), part.trial]
        scenario, method = trial.selection
        return self.jobs.first("select", scenario=scenario, method=method).outputs["selection"] if trial.points else ""

    def _of(self, part: Part) -> Iterator[tuple[str, ...]]:
        """Yield kind and path, and the role of the model where the file does not state it."""
        jobs, entry, scope = self.jobs, self.entry, self._scope(part.scenario)
        models = jobs.models(scope, part.trial)
        [*_, last] = models
        if "evaluations" in entry.reads:
            for evaluation in jobs.measured(scope, self.shown):
                job = jobs.of(scope, part.trial, "evaluate", evaluation=evaluation)
                yield "evaluations", job.outputs["evaluation"]
        if "agreement" in entry.reads:
            names = {"artefact": entry.artefact, "trial": part.trial}
            yield "agreement", jobs.first("agree", run=f"{scope}/{SEED}", **names).outputs["agreement"]
        traced: dict[str, Job] = {}
        if part.method != ORIGINAL and not (entry.audits and part.method in entry.against):
            if "relearning" in entry.reads:
                yield "relearning", jobs.first("relearn", scenario=scope, trial=part.trial).outputs["relearned"]
            for stage, kind, output in (("assess", "audits", "audited"), ("expose", "exposed", "exposed")):
                for audit in entry.audits if kind in entry.reads else ():
                    again = jobs.grid.reference(scope, part.method, entry.against)
                    assert again  # `EntryChecks.repeated`
                    names = {"trial": part.trial, "against": jobs.grid.names[scope, again][0], "audit": audit}
                    yield kind, jobs.first(stage, scenario=scope, **names).outputs[output], last
            if "traces" in entry.reads:
                traced = {ORIGINAL: part.trained, **models} if entry.from_training else models
                yield from (("traces", job.outputs["trace"], role) for role, job in traced.items())
        yield from ((COSTS, job.outputs["cost"], role) for role, job in {**models, **traced}.items())
