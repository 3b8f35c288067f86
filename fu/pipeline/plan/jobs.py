"""The jobs behind all models and numbers, and the one rule of reuse: jobs with equal name, spec and inputs are one job.

A run is one scenario with one seed, written `{paper}/{scenario}/seed{n}`; its files are in `results/{preset}/{run}`.
The input paths of a job come from the job that makes them, possibly in another scenario of the paper. The jobs of a
scenario's runs differ only in the seed, so they are computed once for all seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any

from fu.artefacts.entry import ORIGINAL
from fu.data.dataset import about
from fu.evaluation import selection
from fu.pipeline.plan import estimates, specs
from fu.pipeline.plan.checks import evaluations_with
from fu.pipeline.plan.grid import Grid, inherited, line_of
from fu.pipeline.plan.specs import MAKES, Trial
from fu.pipeline.provenance import cached, catalogue, certificate, digest
from fu.pipeline.provenance.paths import CERTIFIED, FORMATS, SEED, Paths, at
from fu.pipeline.settings.origins import AGAIN, origins
from fu.pipeline.settings.records import Artefact, Config, Paper
from fu.pipeline.stages import agree, assess, data, examples, expose, holdings, oracles, predict, select
from fu.pipeline.stages.common import Points, Spec, canonical

Files = dict[str, str | list[str]]
Made = tuple[Spec, Files, dict[str, Any]]  # of a job: spec, inputs, resources
STATED = ("data", "model", "training", "unlearning", "recovery", "total_rounds")  # settings on the card of oracles
NAMED = {"train": "trained", "shadow": "trained", "unlearn": "unlearned"}  # stage -> the trial in whose name it runs


@dataclass(frozen=True)
class Job:
    """One job: a stage and its names (the wildcards), its inputs and outputs, and its resources."""

    stage: str
    names: Mapping[str, str]
    spec: Spec
    inputs: Files
    outputs: dict[str, str]
    mem_mb: int = estimates.SMALL_MB
    gpu_mem_mb: int = 0  # of a job that computes nothing
    minutes: int = 30
    estimate: float = estimates.JOB_S
    disk_mb: float = estimates.SMALL_FILES_MB

    @cached_property
    def seconds(self) -> float:
        """About how long it takes: what such a job has taken, else the estimate."""
        if "cost" not in self.outputs or self.inputs.get("points"):
            return self.estimate
        taken = (estimates.measured(Path(self.outputs["cost"]), spec.model_dump(mode="json")) for spec in self.specs)
        return next(filter(None, taken), self.estimate)

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
    def keys(self) -> list[str]:
        """The keys that a current certificate may have: one, but for the chosen one of several points one of each.

        The plan reads no selection; another one shows as a changed input.
        """
        return [certificate.key_of(self.stage, canonical(spec), self.code) for spec in self.specs]

    @property
    def specs(self) -> list[Spec]:
        """The spec; of a job for the chosen one of several points, those of all points."""
        return list(self.spec.points.values()) if isinstance(self.spec, Points) else [self.spec]

    @property
    def paper(self) -> str:
        """The paper that it belongs to; "" for a data set, which papers share."""
        named = (self.names.get(name) for name in ("paper", "run", "scenario"))
        return next((name.partition("/")[0] for name in named if name), "")

    @property
    def place(self) -> str:
        """The scenario and the trial (or method) in whose name its outputs stand, without the paper."""
        scenario = self.names.get("scenario") or self.names["run"].rpartition("/")[0]
        name = self.names.get("trial") or self.names.get("method", "")
        return f"{scenario.partition('/')[2]}/{name}".rstrip("/")

    @property
    def stem(self) -> str:
        """The path of its outputs, without suffixes: what people know it by."""
        return self.certificate.removesuffix(CERTIFIED)

    @property
    def formats(self) -> str:
        """The files of an artefact that people open, with their suffixes in braces: table8.{md,csv,html,tex}."""
        return f"{self.stem}.{{{','.join(name for name in FORMATS if name in self.outputs)}}}"

    @property
    def certificate(self) -> str:
        """The certificate file, which says what the outputs were made from."""
        return self.outputs["certificate"]

    @property
    def files(self) -> list[str]:
        """All input files."""
        return list(chain.from_iterable(self.listed.values()))

    @property
    def listed(self) -> dict[str, list[str]]:
        """The input files by name, each as a list."""
        return {name: [files] if isinstance(files, str) else files for name, files in self.inputs.items()}


class Jobs:
    """The jobs of all trials: `job("train", {"run": run, "trial": trial})`."""

    def __init__(self, config: Config, papers: dict[str, Paper], grid: Grid) -> None:
        """Find all jobs, in the order of the papers' scenarios: the first of equal ones names their files."""
        self.config, self.papers, self.grid = config, papers, grid
        self.paths = Paths(f"results/{config.preset}")
        self._named: dict[tuple[Any, ...], Job] = {}  # stage and names -> the first of its equals
        self._equal: dict[tuple[Any, ...], Job] = {}  # what makes jobs equal -> the first
        self._at: dict[tuple[str, int], Job] = {}
        listed = [f"{name}/{scenario}" for name, paper in papers.items() for scenario in paper.scenarios]
        order = {scenario: place for place, scenario in enumerate(listed)}
        for (scenario, name), trial in sorted(grid.trials.items(), key=lambda item: order[item[0][0]]):
            self.of(scenario, name, "train")
            self.models(scenario, name)
            for evaluation in trial.settings.evaluations:
                self.of(scenario, name, "evaluate", evaluation=evaluation)
            if trial.points:
                folder, by = trial.selection
                self.first("select", scenario=folder, method=by)

    def seeds(self, paper: str) -> list[int]:
        """Return the seeds of a paper or a paper/scenario, after preset, overrides and the user's `seeds`."""
        return self.papers[paper.partition("/")[0]].seeds

    def choosing(self, scenario: str) -> list[int]:
        """The seeds of a paper/scenario on which the points of a grid are compared."""
        return self.seeds(scenario)[: self.config.choose_on]

    def job(self, stage: str, names: Mapping[str, str]) -> Job:
        """Return the job that makes the outputs of a stage with these names (wildcards)."""
        scenario, marked, seed = names.get("run", "").rpartition("/seed")
        if not marked:
            return self.first(stage, **names)
        return self._with_seed(self.first(stage, **{**names, "run": f"{scenario}/{SEED}"}), int(seed))

    def first(self, stage: str, **names: str) -> Job:
        """Return the first job that is equal to the one with these names; for all seeds where `run` ends with `SEED`.

        Such a job has 0 in place of a seed, until `_with_seed`.
        """
        key = stage, *sorted(names.items())
        if key not in self._named:
            spec, inputs, needs = getattr(self, f"_{stage}")(**names)
            job = Job(stage, names, spec, inputs, **{"outputs": self.paths.outputs(stage, names), **needs})
            others = (name for place, name in names.items() if place not in ("run", "scenario"))
            equal = job.paper, stage, *others, job.json, *map(str, inputs.items())
            self._named[key] = self._equal.setdefault(equal, job)
        return self._named[key]

    def _with_seed(self, job: Job, seed: int) -> Job:
        """Return the job of one seed."""
        key = job.certificate, seed
        if key not in self._at:
            run, names = job.names["run"], job.names
            inputs, estimate = dict(job.inputs), job.estimate
            if inputs.get("points"):
                compared = seed in self.choosing(run)
                inputs["points"], estimate = (inputs["points"], estimates.JOB_S) if compared else ([], estimate)
            self._at[key] = replace(
                job,
                names={**names, "run": at(run, seed)},
                spec=specs.with_seed(job.spec, seed),
                inputs={
                    role: at(files, seed) if isinstance(files, str) else [at(file, seed) for file in files]
                    for role, files in inputs.items()
                },
                outputs={name: at(path, seed) for name, path in job.outputs.items()},
                estimate=estimate,
            )
        return self._at[key]

    def of(self, scenario: str, name: str, stage: str, **names: str) -> Job:
        """Return the job of a stage for a trial of a paper/scenario, which may run in another trial's name."""
        trial = getattr(self.grid.trials[scenario, name], NAMED[stage]) if stage in NAMED else name
        return self.first(stage, run=f"{scenario}/{SEED}", trial=trial, **names)

    def models(self, scenario: str, name: str) -> dict[str, Job]:
        """Return the jobs that make the models of a trial of a paper/scenario, by role."""
        trial = self.grid.trials[scenario, name]
        if trial.method is None:
            return {ORIGINAL: self.of(scenario, name, "train")}
        models = {"unlearned": self.of(scenario, name, "unlearn")}
        return {**models, "recovered": self.of(scenario, name, "recover")} if trial.recovers else models

    def last(self, scenario: str, name: str, output: str = "model") -> list[str]:
        """Return an output of the jobs that make the last model of a trial of a paper/scenario, one for each seed."""
        [*_, job] = self.models(scenario, name).values()
        return [at(job.outputs[output], seed) for seed in self.seeds(scenario)]

    @cached_property
    def repeated(self) -> dict[str, str]:
        """Each paper/scenario whose seeds are repeats of one request, with the trial that retrains its models."""
        found: dict[str, str] = {}
        for (scenario, name), trial in self.grid.trials.items():
            data = trial.settings.data
            once = data.one_partition and data.forget and data.forget.requests == 1
            if once and trial.trained == ORIGINAL and trial.retrains and not trial.recovers:
                found.setdefault(scenario, self.grid.chosen.get((scenario, name.partition("+")[0]), name))
        return found

    # ---- one function a stage: spec, inputs, resources ----------------------------------------------------------

    def _data(self, dataset: str) -> Made:
        archive = None
        if not about(dataset).embedded:
            path = Path(self.config.data_dir) / f"{dataset}.npz"
            archive = cached.archive_of(path)
            made = certificate.read(Path(self.paths.certificate("data", dataset=dataset)))
            if archive is None and made:
                archive = made.spec["archive"]  # omitting data_dir invalidates nothing
        needs = {"minutes": 60, "disk_mb": estimates.archive_mb(dataset)}
        return data.Spec(dataset=dataset, archive=archive), {}, needs

    def _partition(self, run: str) -> Made:
        trial = self.trial(run)
        return specs.of_partition(trial, 0), {"data": self._dataset(trial)}, {"minutes": 10}

    def _request(self, run: str) -> Made:
        return specs.of_request(self.trial(run), 0), {"partition": self._held(run)["partition"]}, {"minutes": 10}

    def _train(self, run: str, trial: str) -> Made:
        settings = self.trial(run, trial).settings
        # One kind of history is as large as a model per client, the others are small.
        kept = (2 + settings.data.clients if settings.training.history else 1) + estimates.models_kept(settings)
        seconds = estimates.training_seconds(settings, "training", estimates.recording(settings))
        needs = seconds, estimates.models_mb(settings, kept)
        return self._of_points("train", run, trial, {**self._held(run), "request": []}, *needs)

    def _shadow(self, run: str, trial: str) -> Made:
        settings = self.trial(run, trial).settings
        needs = estimates.shadows_seconds(settings), estimates.shadows_mb(settings)
        return self._of_points("shadow", run, trial, self._asked(run), *needs)

    def _unlearn(self, run: str, trial: str) -> Made:
        planned = self.trial(run, trial)
        needed = planned.declared["needs"] or planned.declared.get("CONTINUES")
        history = [self.of(_scenario(run), trial, "train").outputs["history"]] if needed else []
        seconds = estimates.training_seconds(planned.settings, "unlearning", estimates.trained(planned))
        inputs = {**self._shared(run, trial), "history": history}
        return self._of_points("unlearn", run, trial, inputs, seconds, estimates.models_mb(planned.settings))

    def _recover(self, run: str, trial: str) -> Made:
        settings = self.trial(run, trial).settings
        inputs = {**self._shared(run, trial), "unlearned": self.of(_scenario(run), trial, "unlearn").outputs["model"]}
        needs = estimates.training_seconds(settings, "recovery"), estimates.models_mb(settings)
        return self._of_points("recover", run, trial, inputs, *needs)

    def _evaluate(self, run: str, trial: str, evaluation: str) -> Made:
        planned, models = self.trial(run, trial), self.models(_scenario(run), trial)
        attacks = planned.settings.data.forget is not None and any(
            catalogue.declared("evaluation", one).get("SHADOWS") for one in planned.settings.evaluations[evaluation]
        )
        inputs = {
            **self._shared(run, trial),
            "models": [job.outputs["model"] for job in models.values()],
            "traces": [job.outputs["trace"] for job in models.values()],
            "shadows": [self.of(_scenario(run), trial, "shadow").outputs["shadows"]] if attacks else [],
        }
        seconds = estimates.evaluation_seconds(planned.settings, len(models)) + attacks * estimates.ATTACKS_S
        needs = _needs(planned, seconds, estimates.predictions_mb(planned.settings, len(models)))
        return specs.of_evaluation(planned, 0, tuple(models), evaluation), inputs, needs

    def _predict(self, scenario: str, trial: str) -> Made:
        run = f"{scenario}/{SEED}"
        planned, models = self.trial(run, trial), self.last(scenario, trial)
        seconds = estimates.prediction_seconds(planned.settings, len(models))
        needs = _needs(planned, seconds, estimates.predictions_mb(planned.settings, len(models), estimates.AUDITED))
        return predict.Spec(**specs.network(planned)), {**self._asked(run), "models": models}, needs

    def _relearn(self, scenario: str, trial: str) -> Made:
        run, original = f"{scenario}/{SEED}", self.grid.trials[scenario, ORIGINAL]
        planned, first = self.trial(run, trial), self.of(scenario, trial, "train")
        seeds = self.seeds(scenario)[: original.settings.relearning.repeats]
        inputs: Files = {
            **self._asked(run),
            "models": self.last(scenario, trial)[: len(seeds)],
            "originals": [at(first.outputs["model"], seed) for seed in seeds],
        }
        needs = _needs(planned, estimates.relearning_seconds(original.settings, len(seeds)), estimates.SMALL_FILES_MB)
        return specs.of_relearning(original, seeds), inputs, needs

    def _assess(self, scenario: str, trial: str, against: str, audit: str) -> Made:
        (paper, _, name), method = scenario.partition("/"), trial.partition("+")[0]
        grown = any(
            name in one.scenarios and method in one.shown and audit in catalogue.audits_with(one.metrics)
            for one in self.papers[paper].artefacts.values()
            if catalogue.declared("artefacts", one.kind).get("FIRSTS")
        )
        firsts = self.firsts(scenario) if grown else self.firsts(scenario)[-1:]
        seconds = (
            estimates.assessment_seconds(firsts) if "P" in catalogue.declared("audits", audit) else estimates.JOB_S
        )
        needs = {"minutes": estimates.minutes(seconds), "estimate": seconds}
        return assess.Spec(audit=audit, firsts=firsts), self._compared(scenario, trial, against), needs

    def _expose(self, scenario: str, trial: str, against: str, audit: str) -> Made:
        run = f"{scenario}/{SEED}"
        spec = expose.Spec(**specs.network(self.trial(run), "dataset", "attack"), audit=audit)
        return spec, {**self._compared(scenario, trial, against), **self._held(run)}, {"minutes": 10}

    def _agree(self, run: str, artefact: str, trial: str) -> Made:
        """Compare with the methods in `against` that start from the same training, except the trial's own method."""
        scenario, shown = _scenario(run), self.papers[run.partition("/")[0]].artefacts[artefact]
        own, method = self.of(scenario, trial, "train"), trial.partition("+")[0]
        others = [other for other in shown.shown if other in shown.against and other != method]
        repeats = [name for other in others for name in self.drawn(scenario, other, shown)]
        repeats = [name for name in repeats if self.of(scenario, name, "train") is own]
        files: Files = {
            "own": self.predicted(scenario, trial, shown),
            "others": [self.predicted(scenario, name, shown) for name in repeats],
        }
        spec = agree.Spec(
            roles=tuple(self.models(scenario, trial)),
            repeats=tuple([*self.models(scenario, name)][-1] for name in repeats),
        )
        return spec, files, {"minutes": 10}

    def _holdings(self, run: str) -> Made:
        return holdings.Spec(**specs.network(self.trial(run), "dataset")), self._held(run), {"minutes": 10}

    def _examples(self, run: str) -> Made:
        return examples.Spec(**specs.network(self.trial(run), "dataset", "attack")), self._held(run), {"minutes": 10}

    def _oracles(self, scenario: str) -> Made:
        run, trials = f"{scenario}/{SEED}", (ORIGINAL, self.repeated[scenario])
        planned, number = self.trial(run, ORIGINAL), 2 * len(self.seeds(scenario))
        predicted = [self.first("predict", scenario=scenario, trial=trial) for trial in trials]
        inputs: Files = {
            **self._asked(run),
            **{kind: self.last(scenario, trial) for kind, trial in zip(("original", "retrained"), trials, strict=True)},
            "predicted": [job.outputs["predictions"] for job in predicted],
            "costs": [path for trial in trials for path in self.last(scenario, trial, "cost")],
        }
        disk_mb = estimates.models_mb(planned.settings, number) + 4 * estimates.predictions_mb(planned.settings, number)
        needs = {"minutes": 20, "disk_mb": disk_mb, "mem_mb": estimates.SMALL_MB + round(2 * disk_mb)}
        spec = oracles.Spec(**specs.network(planned, "dataset", "attack"), **self._stated(scenario))
        return spec, inputs, needs

    def _stated(self, scenario: str) -> dict[str, Any]:
        """Return what the data card of oracles says of a scenario."""
        name, _, short = scenario.partition("/")
        paper, where, again = self.papers[name], self.grid.where[name], self.repeated[scenario]
        settings = self.grid.trials[scenario, ORIGINAL].settings
        own, dataset = inherited(where, paper, short)[0]["data"]["dataset"], settings.data.dataset
        line = line_of(where, paper, short)
        sources = origins(self.config, self.grid.preset, name, paper.scenarios, line, again.partition("+")[0])
        sources |= {"data.dataset": f"{self.config.preset}.yaml, in place of {own}"} if dataset != own else {}
        shown = settings.model_dump(mode="json", include={*STATED})
        unlearning = self.grid.trials[scenario, again].settings.model_dump(mode="json", include={"unlearning"})
        return {
            **{"preset": self.config.preset, "paper": name, "scenario": short},
            "label": paper.scenarios[short].label + (f" [on {dataset}]" if dataset != own else ""),
            **{"seeds": tuple(self.seeds(name)), "settings": {**shown, AGAIN: unlearning}, "sources": sources},
        }

    def _select(self, scenario: str, method: str) -> Made:
        names = self.grid.names[scenario, method]
        settings, known = self.grid.of(scenario, method)[0].settings, catalogue.metrics()
        (evaluation,) = evaluations_with(settings.chosen_by[:1], settings.evaluations)
        evaluated = [self.of(scenario, name, "evaluate", evaluation=evaluation) for name in names]
        spec = select.Spec(
            trials=tuple(names),
            terms=tuple((name, -1 if known[name].better == "lower" else 1) for name in settings.chosen_by),
            roles=self._roles_compared(scenario, method),
            rule=self.rule(scenario, method),
        )
        files = [at(job.outputs["evaluation"], seed) for job in evaluated for seed in self.choosing(scenario)]
        return spec, {"evaluations": files}, {"mem_mb": 200, "minutes": 10}

    # ---- what artefacts show ------------------------------------------------------------------------------------

    def drawn(self, scenario: str, method: str, shown: Artefact) -> list[str]:
        """Return the trials of a training or method that an artefact shows: the chosen one, or all."""
        chosen = self.grid.chosen.get((scenario, method))
        chooses = catalogue.chooses(shown.kind, shown.points)
        return [chosen] if chooses and chosen else self.grid.names[scenario, method]

    def first_shown(self, scenario: str, shown: Artefact) -> str:
        """Return the first trial that an artefact shows in a paper/scenario."""
        return self.grid.names[scenario, shown.shown[0]][0] if shown.shown else ORIGINAL

    def measured(self, scenario: str, shown: Artefact) -> list[str]:
        """Return the evaluations that have any metric that an artefact shows or reads."""
        known = catalogue.metrics()
        metrics = [known[name] for name in shown.metrics]
        wanted = {*shown.metrics, *catalogue.also(shown.kind), *(one.spread for one in metrics if one.spread)}
        first = self.grid.trials[scenario, self.first_shown(scenario, shown)]
        return evaluations_with(wanted, first.settings.evaluations)

    def predicted(self, scenario: str, trial: str, shown: Artefact) -> str:
        """Return the file with the predictions of a trial's models; every evaluation writes the same ones."""
        return self.of(scenario, trial, "evaluate", evaluation=self.measured(scenario, shown)[0]).outputs["predictions"]

    def firsts(self, paper: str) -> tuple[int, ...]:
        """Return the numbers of repeats by which a plot may show an audit: the first 2, 4, 8, ..., and all."""
        repeats = len(self.seeds(paper))
        return (*takewhile(lambda number: number < repeats, (2**k for k in count(1))), repeats)

    # ---- what these are made of ---------------------------------------------------------------------------------

    def _of_points(self, stage: str, run: str, name: str, inputs: Files, seconds: float, disk_mb: float) -> Made:
        """Return a job of a trial, which reads more than its inputs where it is the chosen one of several points.

        Where the points differ, these are all their specs, and the selection says which is run. On the seeds on which
        points are compared, their outputs are there already, to be copied.
        """
        trial, scenario = self.trial(run, name), _scenario(run)
        points = {point: trial.points[point] for point in sorted(trial.points)}
        several = [MAKES[stage](self.grid.trials[scenario, point], 0) for point in points.values() or [name]]
        needs = _needs(trial, seconds, disk_mb)
        if all(one == several[0] for one in several):
            return several[0], {**inputs, "chosen": [], "points": []}, needs
        folder, by = trial.selection
        selection = self.first("select", scenario=folder, method=by).outputs["selection"]
        compared = stage != "shadow" and (stage != "recover" or self.grid.varies_after(folder, by))
        jobs = [self.of(scenario, point, stage) for point in points.values()] if compared else []
        outputs = [path for job in jobs for output, path in job.outputs.items() if output != "certificate"]
        spec = Points(points=dict(zip(points, several, strict=True)))
        return spec, {**inputs, "chosen": [selection], "points": outputs}, needs

    def trial(self, run: str, name: str = "") -> Trial:
        """Return a trial of a run (default: any, for what all share)."""
        scenario = _scenario(run)
        return self.grid.trials[scenario, name or self._any[scenario]]

    @cached_property
    def _any(self) -> dict[str, str]:
        """The first trial of each scenario: the keys are pairs, and later ones win."""
        return dict(reversed(self.grid.trials))

    def _dataset(self, trial: Trial) -> str:
        return self.first("data", dataset=trial.settings.data.dataset).outputs["archive"]

    def _drawn(self, run: str, path: str) -> str:
        """Return the file of each seed, or where all share one partition that of the first."""
        shared = self.trial(run).settings.data.one_partition
        return at(path, self.seeds(run)[0]) if shared else path

    def _held(self, run: str) -> Files:
        """Return the data set and the partition."""
        partition = self._drawn(run, self.first("partition", run=run).outputs["partition"])
        return {"data": self._dataset(self.trial(run)), "partition": partition}

    def _asked(self, run: str) -> Files:
        """Return the data set, the partition and the request, if there is one."""
        asked = self.trial(run).settings.data.asked
        requests = [self._drawn(run, self.first("request", run=run).outputs["request"])] if asked else []
        return {**self._held(run), "request": requests}

    def _shared(self, run: str, name: str) -> Files:
        return {**self._asked(run), "original": self.of(_scenario(run), name, "train").outputs["model"]}

    def _compared(self, scenario: str, trial: str, against: str) -> Files:
        """Return the predictions, over all seeds, of a trial's last models, of retraining, of the original training.

        In place of the original models stand those that leave all of the client in, if the retraining names them.
        """
        again = self.grid.trials[scenario, against].method
        all_left = again.all_left if again else None
        original = self.grid.names[scenario, all_left][0] if all_left else self.grid.trials[scenario, trial].trained
        kinds = {"unlearned": trial, "retrained": against, "original": original}
        return {
            kind: self.first("predict", scenario=scenario, trial=name).outputs["predictions"]
            for kind, name in kinds.items()
        }

    def _roles_compared(self, scenario: str, method: str) -> tuple[str, ...]:
        """Return the roles of the models by which the points of a grid are compared."""
        if self.grid.of(scenario, method)[0].method is None:
            return (ORIGINAL,)
        return ("unlearned", "recovered") if self.grid.varies_after(scenario, method) else ("unlearned",)

    def rule(self, scenario: str, method: str) -> str:
        """Return in words how the point of a grid is chosen."""
        known, what = catalogue.metrics(), ""
        for metric in (known[name] for name in self.grid.of(scenario, method)[0].settings.chosen_by):
            joined = " minus " if metric.better == "lower" else " plus "
            what += (joined if what else "") + metric.label.removesuffix(" (validation)")
        return selection.rule(what, self._roles_compared(scenario, method), self.choosing(scenario))


def _needs(trial: Trial, seconds: float, disk_mb: float) -> dict[str, Any]:
    """Return the resources of a job that computes with models."""
    method = str(trial.method.plugin) if trial.method else None
    mem_mb, gpu_mem_mb = (of(trial.settings, method) for of in (estimates.mem_mb, estimates.gpu_mem_mb))
    needs = {"mem_mb": mem_mb, "gpu_mem_mb": gpu_mem_mb, "disk_mb": disk_mb, "minutes": estimates.minutes(seconds)}
    return {**needs, "estimate": seconds}


def _scenario(run: str) -> str:
    return run.rpartition("/")[0]
