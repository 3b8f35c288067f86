"""The plan: runs, paths, specs, code digests and resources of the expanded papers. Imports no torch.

A run is one scenario with one seed, written `{paper}/{scenario}/seed{n}`; its files lie below `results/{preset}/{run}`.
"""

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from fu.data.archives import checksum
from fu.errors import UserError
from fu.plan import inputs, resources, specs
from fu.plan.config import ORIGINAL, Artefact, Config
from fu.plan.datasets import DATASETS
from fu.plan.digest import ROOT, digest, modules_of
from fu.plan.expansion import Expansion, canonical
from fu.plan.papers import resolve, validate
from fu.plan.specs import Cell


def unique(items: Iterable[str]) -> list[str]:
    """Return the items in order, each once."""
    return list(dict.fromkeys(items))


class Plan:
    """Everything that the rules ask for, by wildcards."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Validate the config (a plain mapping) and expand it; raises `UserError` with one sentence."""
        self.config = validate(Config, values, "config")
        self.preset, self.papers = resolve(self.config)
        self.root = f"results/{self.config.preset}"
        expansion = Expansion(self.preset, self.papers)
        self.cells, self.points = expansion.cells, expansion.points
        inputs.check_params(expansion.planned_params())
        for key in self.artefacts:
            self.published(*key)

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

    def stems(self, run: str, method: str) -> list[str]:
        """The names of a run's and method's models without their suffix, in the order of their roles."""
        if method == ORIGINAL:
            return [ORIGINAL]
        cell = self.cell(run, method)
        return [f"{cell.unlearned}.unlearned", *([f"{method}.recovered"] if cell.recovers else [])]

    def models(self, run: str, method: str) -> list[str]:
        """The model files of a run and method."""
        return [f"{self.root}/{run}/{stem}.safetensors" for stem in self.stems(run, method)]

    def traces(self, run: str, method: str) -> list[str]:
        """The traces of the same."""
        return [f"{self.root}/{run}/{stem}.csv" for stem in self.stems(run, method)]

    def shown(self, run: str, methods: list[str]) -> list[str]:
        """The original and all points of the methods: what an artefact may show of a run."""
        scenario = run.rpartition("/")[0]
        return [ORIGINAL, *(point for method in methods for point in self.points[scenario, method])]

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
        assert entry.plugin is not None
        kinds = inputs.needs(entry.plugin)
        return [path for path in self.histories(run) if path.split(".")[-2] in kinds]

    def artefact_inputs(self, paper: str, artefact: str) -> list[str]:
        """What an artefact is made from, besides the published numbers."""
        entry = self.artefacts[paper, artefact]
        runs, reads = self.runs(paper, artefact), inputs.reads(entry.kind)
        if reads == "data":
            return [file for run in runs for file in (self.dataset(run), f"{self.root}/{run}/partition.npz")]
        if reads == "nothing":
            return []
        pick = {"evaluations": self._evaluations, "traces": self.traces}[reads]
        files = [file for run in runs for m in self.shown(run, entry.methods) for file in pick(run, m)]
        return unique([*files, *self._selections(paper, artefact)])

    def _evaluations(self, run: str, method: str) -> list[str]:
        return [f"{self.root}/{run}/{method}.evaluation.csv"]

    def _selections(self, paper: str, artefact: str) -> list[str]:
        """The choices among points that an artefact depends on."""
        entry = self.artefacts[paper, artefact]
        if not inputs.selects(entry.kind):
            return []
        pairs = [(f"{paper}/{scenario}", method) for scenario in entry.scenarios for method in entry.methods]
        return [
            f"{self.root}/{scope}/{method}.selected.json"
            for scope, method in pairs
            if len(self.points[scope, method]) > 1
        ]

    def candidates(self, scope: str, method: str) -> list[str]:
        """The evaluations that a method's point is chosen by: of every point, of every seed."""
        seeds = self.seeds(scope.partition("/")[0])
        return [
            f"{self.root}/{scope}/seed{seed}/{point}.evaluation.csv"
            for point in self.points[scope, method]
            for seed in seeds
        ]

    def artefact_costs(self, paper: str, artefact: str) -> list[str]:
        """The cost files behind an artefact, for its provenance."""
        entry = self.artefacts[paper, artefact]
        if inputs.reads(entry.kind) in ("data", "nothing"):
            return []
        runs = self.runs(paper, artefact)
        files = [file for run in runs for m in self.shown(run, entry.methods) for file in self.traces(run, m)]
        return unique(file.removesuffix(".csv") + ".cost.json" for file in files)

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
                for method in self.shown(run, entry.methods):
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
            points = {scenario: self._points_shown(f"{paper}/{scenario}", name) for scenario in entry.scenarios}
            about = method.model_dump(include={"label", "in_paper", "post_training"})
            methods.append([name, {**about, "points": points}])
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

    def _points_shown(self, scope: str, method: str) -> list[list[Any]]:
        """Return pairs of a point's name and its rate, coordinates and models, in order."""
        pairs: list[list[Any]] = []
        for point in self.points[scope, method]:
            cell = self.cells[scope, point]
            rate = cell.settings.unlearning.lr
            about = {"lr": rate, "coordinates": cell.coordinates, "models": self.stems(f"{scope}/seed0", point)}
            pairs.append([point, about])
        return pairs

    def spec_select(self, scope: str, method: str) -> str:
        """Return the spec of the stage `select`."""
        return canonical({"points": self.points[scope, method]})

    def code(self, stage: str, spec: str) -> str:
        """Return the code digest of a stage with the plug-ins that its spec selects."""
        return digest(*modules_of(stage, json.loads(spec)))

    # ---- resources -------------------------------------------------------------------------------------------

    def mem_mb(self, run: str) -> int:
        """Estimated memory of a job that trains or evaluates."""
        settings = self.cell(run).settings
        return resources.mem_mb(settings.data.dataset, settings.data.clients, settings.model.name)

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
        for (scenario, name), cell in self.cells.items():
            number = len(self.seeds(scenario.partition("/")[0]))
            phases = ["training"]
            if cell.method:
                phases = ["unlearning"] if cell.unlearned == name else []
                phases += ["recovery"] if cell.recovers else []
            models += number * len(phases)
            work += number * sum(resources.hours(cell.settings, phase) for phase in phases)
        names = ", ".join(self.papers)
        return (
            f"{names} at preset {self.config.preset!r}: {len(self.artefacts)} artefacts from {models} models in "
            f"{len(runs)} runs, about {work:.1f} hours of one CPU core."
        )
