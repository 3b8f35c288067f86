"""The plan: papers expanded into runs, paths, specs, code digests and resources. Imports no torch.

A run is one scenario with one seed, written `{paper}/{scenario}/seed{n}`; its files lie below `results/{preset}/{run}`.
"""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from fu.data.archives import checksum
from fu.errors import UserError, nearest
from fu.evaluation.metrics import METRICS, TRACED
from fu.plan import inputs, resources, specs
from fu.plan.config import ORIGINAL, Artefact, Config, Paper, Settings, check_plugin, merge
from fu.plan.datasets import DATASETS
from fu.plan.digest import ROOT, digest, modules_of
from fu.plan.papers import resolve, validate
from fu.plan.specs import Cell

# What a method may set for itself: the rest is shared by all methods of a scenario, the original model first.
OWN_SETTINGS = ("unlearning", "recovery", "total_rounds")


def canonical(values: dict[str, Any]) -> str:
    """Return JSON with sorted keys and no spaces."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


class Plan:
    """Everything that the rules ask for, by wildcards."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Validate the config (a plain mapping) and expand it; raises `UserError` with one sentence."""
        self.config = validate(Config, values, "config")
        self.preset, self.papers = resolve(self.config)
        self.root = f"results/{self.config.preset}"
        self.cells: dict[tuple[str, str], Cell] = {}
        for name, paper in self.papers.items():
            self._check(name, paper)
        inputs.check_params(self._planned_params())
        for key in self.artefacts:
            self.published(*key)

    # ---- expansion -------------------------------------------------------------------------------------------

    def _check(self, name: str, paper: Paper) -> None:
        for key, method in paper.methods.items():
            check_plugin("methods", method.plugin, inputs.available("methods"), f"{name}.yaml: methods.{key}")
        for key, about in paper.scenarios.items():
            for special in about.methods:
                if special not in paper.methods:
                    hint = nearest(special, paper.methods)
                    raise UserError(f"{name}.yaml: scenarios.{key}.methods: there is no {special!r}{hint}.")
        for artefact, entry in paper.artefacts.items():
            where = f"{name}.yaml: artefacts.{artefact}"
            check_plugin("publishing", entry.kind, inputs.available("publishing"), where)
            self._check_shown(entry, where)
            for kind, wanted, known in (
                ("scenario", entry.scenarios, list(paper.scenarios)),
                ("method", entry.methods, list(paper.methods)),
                ("metric", entry.metrics, list(METRICS)),
            ):
                for item in wanted:
                    if item not in known:
                        raise UserError(f"{where}: there is no {kind} {item!r}{nearest(item, known)}.")
            for scenario in entry.scenarios:
                for shown in [ORIGINAL, *entry.methods]:
                    self.cells.setdefault((f"{name}/{scenario}", shown), self._cell(name, paper, scenario, shown))

    def _check_shown(self, entry: Artefact, where: str) -> None:
        reads = inputs.reads(entry.kind)
        if reads != "nothing" and not entry.scenarios:
            raise UserError(f"{where}: kind {entry.kind} needs scenarios; name at least one.")
        if reads in ("evaluations", "traces") and not (entry.methods and entry.metrics):
            raise UserError(f"{where}: kind {entry.kind} needs methods and metrics; name at least one of each.")
        untraced = [metric for metric in entry.metrics if reads == "traces" and metric not in TRACED]
        if untraced:
            raise UserError(f"{where}: {untraced[0]!r} is not measured per round; allowed: {', '.join(TRACED)}.")

    def _cell(self, name: str, paper: Paper, scenario: str, method: str) -> Cell:
        known = self.cells.get((f"{name}/{scenario}", method))
        if known:
            return known
        entry = None if method == ORIGINAL else paper.methods[method]
        values = merge(paper.settings, paper.scenarios[scenario].settings)
        where = f"{name}.yaml: scenarios.{scenario}"
        if entry:
            own = merge(entry.settings, paper.scenarios[scenario].methods.get(method, {}))
            foreign = [key for key in own if key not in OWN_SETTINGS]
            if foreign:
                raise UserError(
                    f"{name}.yaml: methods.{method}.settings: {foreign[0]!r} is shared by all methods; "
                    f"a method may set {', '.join(OWN_SETTINGS)}."
                )
            values = merge(values, own)
            where = f"{where} with methods.{method}"
        dataset = values.get("data", {}).get("dataset") if isinstance(values.get("data"), dict) else None
        if isinstance(dataset, str) and dataset in self.preset.replace_datasets:
            values = merge(values, {"data": {"dataset": self.preset.replace_datasets[dataset]}})
        settings = validate(Settings, values, where)
        check_plugin("models", settings.model.name, inputs.available("models"), where)
        check_plugin("training", settings.training.method.name, inputs.available("training"), where)
        known_histories = inputs.available("histories")
        for kind in settings.training.history:
            if kind not in known_histories:
                raise UserError(f"{where}: training.history: there is no {kind!r}{nearest(kind, known_histories)}.")
        for evaluator in settings.evaluators:
            check_plugin("evaluation", evaluator, inputs.available("evaluation"), where)
        return Cell(settings, entry)

    def _planned_params(self) -> Iterator[inputs.Planned]:
        for (scenario, name), cell in self.cells.items():
            settings, where = cell.settings, f"{scenario.partition('/')[0]}.yaml"
            yield inputs.Planned("models", settings.model.name, canonical(settings.model.params), f"{where}: model")
            way = settings.training.method
            history = tuple(settings.training.history)
            yield inputs.Planned("training", way.name, canonical(way.params), f"{where}: training.method", history)
            if cell.method:
                yield inputs.Planned(
                    "methods",
                    cell.method.plugin,
                    canonical(cell.method.params),
                    f"{where}: methods.{name}",
                    history,
                )

    def seeds(self, paper: str) -> list[int]:
        """The seeds of a paper: the user's, else the preset's, else the paper's."""
        return self.config.seeds or self.preset.seeds or self.papers[paper].seeds

    def cell(self, run: str, method: str = ORIGINAL) -> Cell:
        """Return the cell of a run (`paper/scenario/seedN`) and method."""
        return self.cells[run.rpartition("/")[0], method]

    # ---- what the rules loop over ----------------------------------------------------------------------------

    @cached_property
    def artefacts(self) -> dict[tuple[str, str], Artefact]:
        """(paper, artefact) -> entry."""
        return {(name, key): entry for name, paper in self.papers.items() for key, entry in paper.artefacts.items()}

    @cached_property
    def runs_by_history(self) -> dict[tuple[str, ...], list[str]]:
        """Which `paper/scenario` record which kinds of history: one training rule each."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for (scenario, method), cell in self.cells.items():
            if method == ORIGINAL:
                groups.setdefault(tuple(cell.settings.training.history), []).append(scenario)
        return groups

    def runs(self, paper: str, artefact: str) -> list[str]:
        """The runs that an artefact shows."""
        scenarios = self.artefacts[paper, artefact].scenarios
        return [f"{paper}/{scenario}/seed{seed}" for scenario in scenarios for seed in self.seeds(paper)]

    # ---- files -----------------------------------------------------------------------------------------------

    def models(self, run: str, method: str) -> list[str]:
        """The model files of a run and method, in the order of their roles."""
        if method == ORIGINAL:
            return [f"{self.root}/{run}/original.safetensors"]
        roles = ["unlearned", "recovered"] if self.cell(run, method).recovers else ["unlearned"]
        return [f"{self.root}/{run}/{method}.{role}.safetensors" for role in roles]

    def traces(self, run: str, method: str) -> list[str]:
        """The traces of the same."""
        return [path.removesuffix(".safetensors") + ".csv" for path in self.models(run, method)]

    def dataset(self, run: str) -> str:
        """The archive of a run's data set."""
        return f"{self.root}/data/{self.cell(run).settings.data.dataset}.npz"

    def histories(self, run: str) -> list[str]:
        """The history files of a run's training."""
        return [f"{self.root}/{run}/history.{kind}.safetensors" for kind in self.cell(run).settings.training.history]

    def needed_histories(self, run: str, method: str) -> list[str]:
        """The history files that a method reads."""
        entry = self.cell(run, method).method
        assert entry is not None
        kinds = inputs.needs(entry.plugin)
        return [path for path in self.histories(run) if path.split(".")[-2] in kinds]

    def artefact_inputs(self, paper: str, artefact: str) -> list[str]:
        """What an artefact is made from, besides the published numbers."""
        entry = self.artefacts[paper, artefact]
        runs = self.runs(paper, artefact)
        if inputs.reads(entry.kind) == "data":
            return [file for run in runs for file in (self.dataset(run), f"{self.root}/{run}/partition.npz")]
        pick = {"evaluations": self._evaluations, "traces": self.traces}.get(inputs.reads(entry.kind))
        return [file for run in runs for m in [ORIGINAL, *entry.methods] for file in pick(run, m)] if pick else []

    def _evaluations(self, run: str, method: str) -> list[str]:
        return [f"{self.root}/{run}/{method}.evaluation.csv"]

    def artefact_costs(self, paper: str, artefact: str) -> list[str]:
        """The cost files behind an artefact, for its provenance."""
        if inputs.reads(self.artefacts[paper, artefact].kind) in ("data", "nothing"):
            return []
        entry = self.artefacts[paper, artefact]
        files = [
            file
            for run in self.runs(paper, artefact)
            for m in [ORIGINAL, *entry.methods]
            for file in self.traces(run, m)
        ]
        return [file.removesuffix(".csv") + ".cost.json" for file in files]

    def published(self, paper: str, artefact: str) -> list[str]:
        """The file with the paper's own numbers, if the artefact has one."""
        if not self.artefacts[paper, artefact].published:
            return []
        path = f"workflow/published/{paper}/{artefact}.csv"
        if not (ROOT / path).is_file():
            raise UserError(f"{paper}.yaml: artefacts.{artefact}: published is true, but {path} does not exist.")
        return [path]

    def targets(self, paper: str, artefact: str) -> list[str]:
        """Everything behind an artefact: a missing model or evaluation is then seen, not only a missing table."""
        base = f"{self.root}/artefacts/{paper}/{artefact}"
        files = [f"{base}.{suffix}" for suffix in ("csv", "md", "pdf", "png", "json")]
        files += self.artefact_inputs(paper, artefact)
        entry = self.artefacts[paper, artefact]
        if inputs.reads(entry.kind) in ("evaluations", "traces"):
            for run in self.runs(paper, artefact):
                files += [self.dataset(run), f"{self.root}/{run}/partition.npz"]
                for method in [ORIGINAL, *entry.methods]:
                    files += [*self.models(run, method), *self.traces(run, method), *self._evaluations(run, method)]
        return sorted(set(files))

    def all_targets(self) -> list[str]:
        """The targets of all artefacts."""
        return sorted({file for key in self.artefacts for file in self.targets(*key)})

    # ---- specs and digests -----------------------------------------------------------------------------------

    def spec(self, stage: str, run: str, method: str = ORIGINAL) -> str:
        """Return the spec of a stage of a run: partition, train, unlearn, recover or evaluate."""
        values = getattr(specs, stage)(self.cell(run, method))
        return canonical({**values, "seed": int(run.rpartition("/seed")[2])})

    def spec_data(self, dataset: str) -> str:
        """Return the spec of the stage `data`; it knows an archive by its contents, not by its place."""
        archive = None
        if DATASETS[dataset].torchvision:
            path = Path(self.config.data_dir).expanduser() / f"{dataset}.npz"
            archive = inputs.archive_of(path, Path(f"{self.root}/data/{dataset}.npz"))
        return canonical({"dataset": dataset, "archive": archive})

    def spec_publish(self, paper: str, artefact: str) -> str:
        """Return the spec of the stage `publish`: the entry, and of its scenarios and methods what is shown."""
        entry, source = self.artefacts[paper, artefact], self.papers[paper]
        scenarios, methods = [], []  # pairs, because canonical JSON would sort the keys of a mapping
        for name in entry.scenarios:
            settings = self.cells[f"{paper}/{name}", ORIGINAL].settings
            about = {
                "label": source.scenarios[name].label,
                "dataset": settings.data.dataset,
                "rounds": [settings.training.rounds, settings.total_rounds],
            }
            scenarios.append([name, about])
        for name in entry.methods:
            method = source.methods[name]
            roles = {s: len(self.models(f"{paper}/{s}/seed0", name)) for s in entry.scenarios}
            methods.append([name, {"label": method.label, "in_paper": method.in_paper, "roles": roles}])
        shown = {
            "paper": paper,
            "artefact": artefact,
            "preset": self.config.preset,
            "citation": source.citation,
            "seeds": self.seeds(paper),
        }
        numbers = [checksum(ROOT / path) for path in self.published(paper, artefact)]
        return canonical(
            {**entry.model_dump(), **shown, "scenarios": scenarios, "methods": methods, "numbers": numbers}
        )

    def code(self, stage: str, spec: str) -> str:
        """Return the code digest of a stage with the plug-ins that its spec selects."""
        return digest(*modules_of(stage, json.loads(spec)))

    # ---- resources -------------------------------------------------------------------------------------------

    def mem_mb(self, run: str) -> int:
        """Estimated memory of a job that trains or evaluates."""
        settings = self.cell(run).settings
        return resources.mem_mb(settings.data.dataset, settings.data.clients)

    def runtime(self, run: str, phase: str, method: str = ORIGINAL) -> int:
        """Estimated minutes of a job, an upper bound on one CPU core."""
        return resources.minutes(self.cell(run, method).settings, phase)

    def overview(self) -> str:
        """Return one line on what the plan holds: runs, models, hours."""
        runs = sorted(
            {f"{scenario}/seed{s}" for scenario, _ in self.cells for s in self.seeds(scenario.partition("/")[0])}
        )
        work = 0.0
        models = 0
        for (scenario, _), cell in self.cells.items():
            number = len(self.seeds(scenario.partition("/")[0]))
            phases = ["training"] if cell.method is None else ["unlearning", *(["recovery"] if cell.recovers else [])]
            models += number * len(phases)
            work += number * sum(resources.hours(cell.settings, phase) for phase in phases)
        names = ", ".join(self.papers)
        return (
            f"{names} at preset {self.config.preset!r}: {len(self.artefacts)} artefacts from {models} models in "
            f"{len(runs)} runs, about {work:.1f} hours of one CPU core."
        )
