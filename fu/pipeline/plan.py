"""The plan: every job with its spec, inputs, outputs and resources, made from the expanded papers. Imports no torch.

A run is one scenario with one seed, written `{paper}/{scenario}/seed{n}`; its files are in `results/{preset}/{run}`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from fu.artefacts.entry import ORIGINAL
from fu.data.dataset import about
from fu.errors import UserError, nearest
from fu.evaluation import selection
from fu.pipeline import catalogue, certificate, digest, estimates, frames, published, specs
from fu.pipeline.checks import evaluations_with
from fu.pipeline.entries import entry_of
from fu.pipeline.estimates import counted, lasting
from fu.pipeline.grid import Grid
from fu.pipeline.paths import Paths
from fu.pipeline.settings.papers import Resolved, blamed, configured
from fu.pipeline.settings.records import Artefact
from fu.pipeline.specs import Trial
from fu.pipeline.stages import data, publish, select
from fu.pipeline.stages.common import Chosen, Spec, canonical

Files = dict[str, str | list[str]]
MAKES = {
    "train": specs.of_training,
    "shadow": specs.of_shadows,
    "unlearn": specs.of_unlearning,
    "recover": specs.of_recovery,
}


@dataclass(frozen=True)
class Job:
    """One job: a stage and its names (the wildcards), its inputs and outputs, and its resources.

    `candidates`: where its spec is that of the chosen one of several points, the certificates of the points' own jobs.
    """

    stage: str
    names: Mapping[str, str]
    spec: Spec
    inputs: Files
    outputs: dict[str, str]
    mem_mb: int = estimates.SMALL_MB
    minutes: int = 30
    candidates: Mapping[str, str] = field(default_factory=dict)
    estimate: float = estimates.JOB_S
    disk_mb: float = estimates.SMALL_FILES_MB

    @cached_property
    def seconds(self) -> float:
        """About how long it takes: what such a job has taken, else the estimate."""
        cost = self.outputs.get("cost")
        return (estimates.measured(Path(cost), json.loads(self.json)) if cost else None) or self.estimate

    @cached_property
    def json(self) -> str:
        """The spec as canonical JSON."""
        return canonical(self.spec)

    @cached_property
    def code(self) -> str:
        """The code digest of the stage with the plug-ins that its spec names."""
        return digest.digest(*digest.modules_of(self.stage, self.spec))

    @cached_property
    def parts(self) -> dict[str, str]:
        """The modules and libraries behind the code digest."""
        return digest.parts(*digest.modules_of(self.stage, self.spec))

    @cached_property
    def key(self) -> str:
        """The key in the certificate of current outputs."""
        return certificate.key_of(self.stage, self.json, self.code)

    @property
    def paper(self) -> str:
        """The paper that it belongs to; "" for a data set, which papers share."""
        named = (self.names.get(name) for name in ("paper", "run", "scenario"))
        return next((name.partition("/")[0] for name in named if name), "")

    @property
    def certificate(self) -> str:
        """The certificate file, which says what the outputs were made from."""
        return self.outputs["certificate"]

    @property
    def files(self) -> list[str]:
        """All input files."""
        return list(chain.from_iterable(self.listed.values()))

    @property
    def specs(self) -> list[Spec]:
        """The spec; of a job for the chosen one of several points, those of all points."""
        return list(self.spec.points.values()) if isinstance(self.spec, Chosen) else [self.spec]

    @property
    def made(self) -> list[str]:
        """The certificates of the points' own jobs, in the order of the points' names."""
        return [self.candidates[point] for point in sorted(self.candidates)]

    @property
    def listed(self) -> dict[str, list[str]]:
        """The input files by name, each as a list."""
        return {name: [found] if isinstance(found, str) else found for name, found in self.inputs.items()}


class Plan:
    """Everything that the rules ask for: `plan.job("train", {"run": run})`."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Validate the config (a plain mapping) and expand it; raises `UserError` with one sentence."""
        self.config = configured(values)
        if self.config.plugins:
            catalogue.add_folder(Path(self.config.plugins).resolve())
        self.root = f"results/{self.config.preset}"
        self.paths = Paths(self.root)
        catalogue.remember("params", blamed(self._expand, self.config))
        for trial in self.trials.values():
            estimates.size(trial.settings)  # refuses a model that cannot be trained
        self._jobs: dict[tuple[str, tuple[tuple[str, str], ...]], Job] = {}

    def _expand(self, resolved: Resolved) -> dict[str, bool]:
        """Fill the plan, and return which hyper-parameters were found valid."""
        self.preset, self.papers, self.where, stated = resolved
        self.grid = grid = Grid(resolved)
        self.trials, self.names = grid.trials, grid.names
        checked = catalogue.check_params(grid.planned_params())
        self.artefacts: dict[tuple[str, str], Artefact] = {
            (name, key): entry for name, paper in self.papers.items() for key, entry in paper.artefacts.items()
        }
        for (name, key), entry in self.artefacts.items():
            for path in self.published(name, key):
                published.check(digest.ROOT / path, self.papers[name], entry.kind, stated[name])
        return checked

    def seeds(self, paper: str) -> list[int]:
        """The seeds of a paper: the user's, else the paper's, merged with preset and overrides."""
        return self.config.seeds or self.papers[paper].seeds

    @property
    def evaluations(self) -> list[str]:
        """The names of all evaluations."""
        return sorted({name for trial in self.trials.values() for name in trial.settings.evaluations})

    # ---- jobs ------------------------------------------------------------------------------------------------

    def job(self, stage: str, names: Mapping[str, str]) -> Job:
        """Return the job of a stage with these names (wildcards)."""
        key = (stage, tuple(sorted(names.items())))
        if key not in self._jobs:
            spec, inputs, needs = getattr(self, f"_{stage}")(**names)
            if stage in MAKES:
                spec, inputs, needs = self._of_chosen(stage, names["run"], names["trial"], spec, inputs, needs)
            self._jobs[key] = Job(stage, dict(names), spec, inputs, self.paths.outputs(stage, names), **needs)
        return self._jobs[key]

    def _of_chosen(
        self, stage: str, run: str, trial: str, spec: Spec, inputs: Files, needs: dict[str, Any]
    ) -> tuple[Spec, Files, dict[str, Any]]:
        """Return a job; where it makes models of the chosen point of a grid, with the specs of all points."""
        planned, seed = self._trial(run, trial)
        scenario = run.rpartition("/")[0]
        points = {point: MAKES[stage](self.trials[scenario, own], seed) for point, own in planned.points.items()}
        if all(one == spec for one in points.values()):
            return spec, {**inputs, "chosen": []}, needs
        folder, by = planned.chosen_by
        selection = self.paths("select", "selection", scenario=folder, method=by)
        made = {
            point: self.paths.certificate(
                stage,
                run=self._home(run, own) if stage == "train" else run,
                trial=self.trials[scenario, own].unlearned if stage == "unlearn" else own,
            )
            for point, own in planned.points.items()
        }
        there = seed in self.choosing(folder) and stage != "shadow"
        there = there and (stage != "recover" or self.grid.varies_after(folder, by))
        about = {**needs, "candidates": made, **({"estimate": estimates.JOB_S} if there else {})}
        return Chosen(points=points), {**inputs, "chosen": [selection]}, about

    def _data(self, dataset: str) -> tuple[data.Spec, Files, dict[str, Any]]:
        archive = None
        if not about(dataset).embedded:
            path = Path(self.config.data_dir) / f"{dataset}.npz"
            archive = catalogue.archive_of(path)
            made = certificate.read(Path(self.paths.certificate("data", dataset=dataset)))
            if archive is None and made:
                archive = made.spec["archive"]  # omitting data_dir invalidates nothing
        return (
            data.Spec(dataset=dataset, archive=archive),
            {},
            {"minutes": 60, "disk_mb": estimates.archive_mb(dataset)},
        )

    def _partition(self, run: str) -> tuple[Spec, Files, dict[str, Any]]:
        trial, seed = self._trial(run)
        return specs.of_partition(trial, seed), {"data": self._dataset(trial)}, {"minutes": 10}

    def _request(self, run: str) -> tuple[Spec, Files, dict[str, Any]]:
        trial, seed = self._trial(run)
        return specs.of_request(trial, seed), {"partition": self._partition_of(run)}, {"minutes": 10}

    def _train(self, run: str, trial: str) -> tuple[Spec, Files, dict[str, Any]]:
        planned, seed = self._trial(run, trial)
        inputs: Files = {"data": self._dataset(planned), "partition": self._partition_of(run), "request": []}
        # One kind of history is as large as a model per client, the others are small.
        kept = 2 + planned.settings.data.clients if planned.settings.training.history else 1
        kept += estimates.models_kept(planned.settings)
        return specs.of_training(planned, seed), inputs, self._needs(planned, "training", models=kept)

    def _unlearn(self, run: str, trial: str) -> tuple[Spec, Files, dict[str, Any]]:
        planned, seed = self._trial(run, trial)
        assert planned.method is not None
        home = self._home(run, planned.trained)
        plugin = str(planned.method.plugin)
        needed = catalogue.needs(plugin) or catalogue.declared("methods", plugin).get("CONTINUES")
        history = [self.paths("train", "history", run=home, trial=planned.trained)] if needed else []
        inputs = {**self._shared(run, planned), "history": history}
        needs = self._needs(planned, "unlearning", estimates.trained(planned))
        return specs.of_unlearning(planned, seed), inputs, needs

    def _shadow(self, run: str, trial: str) -> tuple[Spec, Files, dict[str, Any]]:
        planned, seed = self._trial(run, trial)
        files = self._shared(run, planned)
        inputs = {name: files[name] for name in ("data", "partition", "request")}
        seconds = estimates.shadows_seconds(planned.settings)
        needs = {
            "estimate": seconds,
            "minutes": estimates.minutes(seconds),
            "disk_mb": estimates.shadows_mb(planned.settings),
        }
        return specs.of_shadows(planned, seed), inputs, {"mem_mb": estimates.mem_mb(planned.settings), **needs}

    def _recover(self, run: str, trial: str) -> tuple[Spec, Files, dict[str, Any]]:
        planned, seed = self._trial(run, trial)
        inputs = {
            **self._shared(run, planned),
            "unlearned": self.paths("unlearn", "model", run=run, trial=planned.unlearned),
        }
        return specs.of_recovery(planned, seed), inputs, self._needs(planned, "recovery")

    def _evaluate(self, run: str, trial: str, evaluation: str) -> tuple[Spec, Files, dict[str, Any]]:
        planned, seed = self._trial(run, trial)
        models = self.models(run, trial)
        shadows = [self.paths("shadow", "shadows", run=run, trial=planned.trained)]
        inputs = {
            **self._shared(run, planned),
            "models": [self._model(run, planned, model, "model") for model in models.values()],
            "traces": [self._model(run, planned, model, "trace") for model in models.values()],
            "shadows": shadows if _needs_shadows(planned, evaluation) else [],
        }
        spec = specs.of_evaluation(planned, seed, tuple(models), evaluation)
        seconds = estimates.evaluation_seconds(planned.settings, len(models))
        seconds += estimates.ATTACKS_S if inputs["shadows"] else 0
        needs = {"estimate": seconds, "minutes": estimates.minutes(seconds)}
        return spec, inputs, {"mem_mb": estimates.mem_mb(planned.settings), **needs}

    def _select(self, scenario: str, method: str) -> tuple[select.Spec, Files, dict[str, Any]]:
        names = self.names[scenario, method]
        first = self.trials[scenario, names[0]]
        by = first.settings.chosen_by
        (evaluation,) = evaluations_with(by[:1], first.settings.evaluations)
        files = [
            self.paths("evaluate", "evaluation", run=self.evaluated(run, name), trial=name, evaluation=evaluation)
            for name in names
            for seed in self.choosing(scenario)
            for run in [f"{scenario}/seed{seed}"]
        ]
        known = catalogue.metrics()
        spec = select.Spec(
            trials=tuple(names),
            terms=tuple((name, -1 if known[name].better == "lower" else 1) for name in by),
            roles=self._compared(scenario, method),
            rule=self.rule(scenario, method),
        )
        return spec, {"evaluations": files}, {"mem_mb": 200, "minutes": 10}

    def choosing(self, scenario: str) -> list[int]:
        """The seeds of a paper/scenario on which the points of a grid are compared."""
        return self.seeds(scenario.partition("/")[0])[: self.config.choose_on]

    def _compared(self, scenario: str, method: str) -> tuple[str, ...]:
        """Return the roles of the models by which the points of a grid are compared."""
        if self.trials[scenario, self.names[scenario, method][0]].method is None:
            return (ORIGINAL,)
        return ("unlearned", "recovered") if self.grid.varies_after(scenario, method) else ("unlearned",)

    def rule(self, scenario: str, method: str) -> str:
        """Return in words how the point of a grid is chosen."""
        trial = self.trials[scenario, self.names[scenario, method][0]]
        known = catalogue.metrics()
        said = ""
        for metric in (known[name] for name in trial.settings.chosen_by):
            joined = " minus " if metric.better == "lower" else " plus "
            said += (joined if said else "") + metric.label.removesuffix(" (validation)")
        return selection.rule(said, self._compared(scenario, method), self.choosing(scenario))

    def _publish(self, paper: str, artefact: str) -> tuple[publish.Spec, Files, dict[str, Any]]:
        entry = entry_of(self, paper, artefact)
        inputs: Files = {
            "results": frames.inputs(entry, self.paths),
            "published": self.published(paper, artefact),
            "costs": frames.costs(entry, self.paths),
        }
        needs = {"minutes": 10, "estimate": estimates.JOB_S + estimates.DRAWING_S, "disk_mb": estimates.DRAWN_MB}
        return publish.Spec(**dict(entry)), inputs, needs

    # ---- what the jobs above are made of -----------------------------------------------------------------------

    def _trial(self, run: str, name: str = "") -> tuple[Trial, int]:
        """Return a trial of a run (default: any, for what all share) and the seed."""
        scenario, _, seed = run.rpartition("/seed")
        return self.trials[scenario, name or self._any[scenario]], int(seed)

    @cached_property
    def _any(self) -> dict[str, str]:
        """The first trial of each scenario."""
        return dict(reversed(self.trials))

    def _dataset(self, trial: Trial) -> str:
        return self.paths("data", "archive", dataset=trial.settings.data.dataset)

    def _partition_of(self, run: str) -> str:
        scenario, _, seed = run.rpartition("/")
        return self.paths("partition", "partition", run=f"{self.grid.partitions[scenario]}/{seed}")

    def _home(self, run: str, trained: str) -> str:
        """Return the run in which a trained model lies."""
        scenario, _, seed = run.rpartition("/")
        return f"{self.grid.homes[scenario, trained]}/{seed}"

    def evaluated(self, run: str, name: str) -> str:
        """Return the run in which a trial is evaluated: that of its model where the same would be measured there."""
        trial, _ = self._trial(run, name)
        if trial.method:
            return run
        home = self._home(run, name)
        there, _ = self._trial(home, name)
        same = trial.settings.evaluations == there.settings.evaluations
        if any(_needs_shadows(trial, evaluation) for evaluation in trial.settings.evaluations):
            same = same and specs.of_shadows(trial, 0) == specs.of_shadows(there, 0)
        return home if same and trial.settings.data.forget == there.settings.data.forget else run

    def _model(self, run: str, trial: Trial, model: str, output: str) -> str:
        """Return a file of a model of a trial."""
        return self.paths.model(self._home(run, trial.trained) if model.endswith(".trained") else run, model, output)

    def _shared(self, run: str, trial: Trial) -> Files:
        asked = [self.paths("request", "request", run=run)] if trial.settings.data.asked else []
        return {
            "data": self._dataset(trial),
            "partition": self._partition_of(run),
            "request": asked,
            "original": self._model(run, trial, f"{trial.trained}.trained", "model"),
        }

    def _needs(
        self, trial: Trial, phase: str, trained: Mapping[str, float] = estimates.ALL_CLIENTS, models: int = 1
    ) -> dict[str, Any]:
        seconds = estimates.training_seconds(trial.settings, phase, trained)
        return {
            "mem_mb": estimates.mem_mb(trial.settings),
            "minutes": estimates.minutes(seconds),
            "estimate": seconds,
            "disk_mb": estimates.models_mb(trial.settings, models),
        }

    def models(self, run: str, name: str) -> dict[str, str]:
        """Return the models of a trial: role -> name in the run."""
        trial, _ = self._trial(run, name)
        if trial.method is None:
            return {ORIGINAL: f"{trial.trained}.trained"}
        found = {"unlearned": f"{trial.unlearned}.unlearned"}
        return {**found, "recovered": f"{name}.recovered"} if trial.recovers else found

    def published(self, paper: str, artefact: str) -> list[str]:
        """The file with the paper's own numbers, if the artefact has one."""
        if not self.artefacts[paper, artefact].published:
            return []
        path = f"workflow/published/{paper}/{artefact}.csv"
        if not (digest.ROOT / path).is_file():
            raise UserError(f"{self.where[paper]}: artefacts.{artefact}: published is true, but {path} does not exist.")
        return [path]

    # ---- the graph -------------------------------------------------------------------------------------------

    @cached_property
    def producers(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Output -> stage and names of the job that makes it, for all possible jobs."""
        found: dict[str, tuple[str, dict[str, str]]] = {}

        def add(stage: str, **names: str) -> None:
            found.update(dict.fromkeys(self.paths.outputs(stage, names).values(), (stage, names)))

        for (scenario, name), trial in self.trials.items():
            add("data", dataset=trial.settings.data.dataset)
            for seed in self.seeds(scenario.partition("/")[0]):
                run = f"{scenario}/seed{seed}"
                if self.grid.partitions[scenario] == scenario:
                    add("partition", run=run)
                if trial.settings.data.asked:
                    add("request", run=run)
                if trial.method is None and self._home(run, name) == run:
                    add("train", run=run, trial=name)
                if trial.unlearned == name:
                    add("unlearn", run=run, trial=name)
                if trial.recovers:
                    add("recover", run=run, trial=name)
                if self.evaluated(run, name) == run:
                    for evaluation in trial.settings.evaluations:
                        add("evaluate", run=run, trial=name, evaluation=evaluation)
                        if _needs_shadows(trial, evaluation):
                            add("shadow", run=run, trial=trial.trained)
        for scenario, method in self.grid.chosen:
            add("select", scenario=scenario, method=method)
        for paper, artefact in self.artefacts:
            add("publish", paper=paper, artefact=artefact)
        return found

    def jobs(self, *artefacts: tuple[str, str]) -> Iterator[Job]:
        """Yield every job behind the artefacts (default: all), dependencies first."""
        return self.behind(self.job("publish", {"paper": p, "artefact": a}) for p, a in artefacts or self.artefacts)

    def behind(self, wanted: Iterable[Job]) -> Iterator[Job]:
        """Yield these jobs and all their dependencies, each once, dependencies first."""
        seen: set[int] = set()

        def walk(job: Job) -> Iterator[Job]:
            if id(job) not in seen:
                seen.add(id(job))
                for file in job.files:
                    if file in self.producers:
                        yield from walk(self.job(*self.producers[file]))
                yield job

        for job in wanted:
            yield from walk(job)

    def wanted(self, target: str) -> Iterator[Job]:
        """Yield the jobs that a target names: a paper, an artefact (paper_artefact), a file; all: every artefact."""
        for paper, artefact in self.artefacts:
            if target in ("all", paper, f"{paper}_{artefact}"):
                yield self.job("publish", {"paper": paper, "artefact": artefact})
        if target in self.producers:
            yield self.job(*self.producers[target])

    def asked(self, targets: Iterable[str]) -> list[Job]:
        """Return the jobs that targets name (none: all); `UserError` suggests the nearest name for an unknown one."""
        wanted = {target: list(self.wanted(target)) for target in targets or ["all"]}
        for target in (target for target, jobs in wanted.items() if not jobs):
            if target.startswith(f"{self.root}/"):
                hint = nearest(target, self.producers).partition(" allowed")[0].rstrip(";")
                raise UserError(f"there is no target {target!r}{hint} (`snakemake -n` lists all files).")
            known = ["all", *self.papers, *("_".join(key) for key in self.artefacts)]
            raise UserError(f"there is no target {target!r}{nearest(target, known)}.")
        return [job for jobs in wanted.values() for job in jobs]

    def targets(self, *artefacts: tuple[str, str]) -> list[str]:
        """Return the files of artefacts (default: all); their dependencies are made as needed."""
        named = ({"paper": paper, "artefact": artefact} for paper, artefact in artefacts or self.artefacts)
        return sorted(path for names in named for path in self.paths.outputs("publish", names).values())

    def overview(self, jobs: Iterable[Job], cores: int) -> str:
        """Return one line on the jobs to run: how many, and about how much time and disk space they take.

        Of several papers a second line says how many jobs and hours each takes.
        """
        planned = {job.certificate: job for job in jobs}
        ready: dict[str, float] = {}  # file -> seconds from the start, with a core for every job
        for job in (job for job in self.behind(planned.values()) if job.certificate in planned):
            begun = max((ready.get(path, 0.0) for path in job.files), default=0.0)
            ready.update(dict.fromkeys(job.outputs.values(), begun + job.seconds))
        seconds, disk_mb = (sum(getattr(job, of) for job in planned.values()) for of in ("seconds", "disk_mb"))
        artefacts = sum(job.stage == "publish" for job in planned.values())
        return (
            f"To be made at preset {self.config.preset!r}: {counted(artefacts, 'artefact')} in "
            f"{counted(len(planned), 'job')}, about {lasting(max([seconds / cores, *ready.values()]))} on "
            f"{counted(cores, 'core')} ({seconds / 3600:.1f} core hours) and {max(1, round(disk_mb))} MB of disk."
            + self._each(planned.values())
        )

    def _each(self, planned: Iterable[Job]) -> str:
        """Return a line with the jobs and core hours of each paper, if there are several."""
        found: dict[str, list[float]] = {}
        for job in planned:
            found.setdefault(job.paper or "data sets", []).append(job.seconds)
        if len(found.keys() & self.papers.keys()) < 2:
            return ""
        told = (
            f"{name}: {counted(len(each), 'job')}, {sum(each) / 3600:.1f} core hours" for name, each in found.items()
        )
        return f"\n{'; '.join(told)}."


def _needs_shadows(trial: Trial, evaluation: str) -> bool:
    """Return whether an evaluator of an evaluation infers membership, and something is to be forgotten."""
    found = trial.settings.evaluations[evaluation]
    asked = trial.settings.data.forget is not None
    return asked and any(catalogue.declared("evaluation", one).get("SHADOWS") for one in found)
