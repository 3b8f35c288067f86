"""Papers expanded into cells: every method at every point of its grid in every scenario that an artefact shows.

What cannot work is refused here, in one sentence, before the first job.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from fu.errors import UserError, nearest
from fu.evaluation.metrics import METRICS, TRACED
from fu.plan import inputs, specs
from fu.plan.config import ORIGINAL, Artefact, Paper, Preset, Settings
from fu.plan.papers import merge, validate
from fu.plan.specs import Cell

# What a method may set for itself: the rest is shared by all methods of a scenario, the original model first.
OWN_SETTINGS = ("unlearning", "recovery", "total_rounds", "grid")
POINT = re.compile(r"[A-Za-z0-9_.+-]+")
PHASES = ("training", "unlearning", "recovery")


def canonical(values: dict[str, Any]) -> str:
    """Return JSON with sorted keys and no spaces."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def point_name(method: str, coordinates: Mapping[str, Any]) -> str:
    """Return the name of a point of a grid: `fedosd+lr0.005`."""
    parts = []
    for key, value in coordinates.items():
        section, _, last = key.partition(".")
        prefix = f"{section}-" if section == "recovery" else ""
        parts.append(f"{prefix}{last}{value:g}" if isinstance(value, float) else f"{prefix}{last}{value}")
    return "-".join([f"{method}+{parts[0]}", *parts[1:]]) if parts else method


def inherited(name: str, paper: Paper, scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's settings and its settings of single methods, laid over those of its base and the paper."""
    line = [scenario]
    while (base := paper.scenarios[line[-1]].base) is not None:
        where = f"{name}.yaml: scenarios.{line[-1]}.base"
        if base not in paper.scenarios:
            raise UserError(f"{where}: there is no scenario {base!r}{nearest(base, paper.scenarios)}.")
        if base in line:
            raise UserError(f"{where}: {base!r} is built on itself; name another scenario.")
        line.append(base)
    settings = paper.settings
    methods: dict[str, Any] = {}
    for layer in reversed(line):
        settings = merge(settings, paper.scenarios[layer].settings)
        methods = merge(methods, paper.scenarios[layer].methods)
    return settings, methods


def completed(values: dict[str, Any], post_training: str) -> dict[str, Any]:
    """Fill in what a phase takes from the phase before, and the rounds that a method without post-training has."""
    if not all(isinstance(values.get(phase), dict) for phase in PHASES):
        return values  # the validation says so
    phases = {phase: dict(values[phase]) for phase in PHASES}
    for before, phase in pairwise(PHASES):
        for key, value in phases[phase].items():
            if value is None and key in ("lr", "lr_decay", "batch_size", "local_epochs"):
                phases[phase][key] = phases[before].get(key)
    total = values.get("total_rounds")
    if post_training == "own":
        phases["unlearning"]["rounds"] = total
    elif post_training == "none":
        total = phases["unlearning"].get("rounds")
    return {**values, **phases, "total_rounds": total}


class Expansion:
    """The cells of all papers; raises `UserError` where they cannot be planned."""

    def __init__(self, preset: Preset, papers: Mapping[str, Paper]) -> None:
        """Expand the artefacts of the papers, with the data sets that the preset replaces."""
        self.preset = preset
        self.cells: dict[tuple[str, str], Cell] = {}  # (paper/scenario, method or point of its grid)
        self.points: dict[tuple[str, str], list[str]] = {}  # (paper/scenario, method) -> its points, or itself
        for name, paper in papers.items():
            self._check(name, paper)

    def _check(self, name: str, paper: Paper) -> None:
        for key, method in paper.methods.items():
            where = f"{name}.yaml: methods.{key}"
            if method.plugin:
                inputs.check("methods", method.plugin, where)
            elif method.unlearned_from not in paper.methods:
                hint = nearest(str(method.unlearned_from), paper.methods)
                raise UserError(f"{where}.unlearned_from: there is no method {method.unlearned_from!r}{hint}.")
            elif paper.methods[method.unlearned_from].unlearned_from:
                raise UserError(f"{where}.unlearned_from: {method.unlearned_from!r} has no unlearning of its own.")
        for key, about in paper.scenarios.items():
            for special in about.methods:
                if special not in paper.methods:
                    hint = nearest(special, paper.methods)
                    raise UserError(f"{name}.yaml: scenarios.{key}.methods: there is no {special!r}{hint}.")
        for artefact, entry in paper.artefacts.items():
            where = f"{name}.yaml: artefacts.{artefact}"
            inputs.check("publishing", entry.kind, where)
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
                    self._expand(name, paper, scenario, shown)
                if inputs.selects(entry.kind):
                    self._check_selection(name, scenario, entry.methods)
                elif inputs.reads(entry.kind) in ("evaluations", "traces"):
                    lone = [method for method in entry.methods if len(self.points[f"{name}/{scenario}", method]) < 2]
                    if lone:
                        raise UserError(
                            f"{where}: kind {entry.kind} needs a grid of two values or more; {lone[0]!r} has none."
                        )

    def _check_shown(self, entry: Artefact, where: str) -> None:
        reads = inputs.reads(entry.kind)
        if reads != "nothing" and not entry.scenarios:
            raise UserError(f"{where}: kind {entry.kind} needs scenarios; name at least one.")
        if reads in ("evaluations", "traces") and not (entry.methods and entry.metrics):
            raise UserError(f"{where}: kind {entry.kind} needs methods and metrics; name at least one of each.")
        untraced = [metric for metric in entry.metrics if reads == "traces" and metric not in TRACED]
        if untraced:
            raise UserError(f"{where}: {untraced[0]!r} is not measured per round; allowed: {', '.join(TRACED)}.")

    def _expand(self, name: str, paper: Paper, scenario: str, method: str) -> list[str]:
        """Add the cells of a method, one for every point of its grid, and return the points' names."""
        where = (f"{name}/{scenario}", method)
        if where in self.points:
            return self.points[where]
        values = self._values(name, paper, scenario, method)
        entry = None if method == ORIGINAL else paper.methods[method]
        base = entry.unlearned_from if entry else None
        if base:
            self._expand(name, paper, scenario, base)
        given = {} if entry is None else values.get("grid", {})
        if not isinstance(given, dict) or not all(isinstance(found, list) for found in given.values()):
            self._cell(name, paper, scenario, method, values, {})  # whose validation says what is wrong
        grid = {key: found for key, found in given.items() if found}
        found = []
        for chosen in product(*grid.values()):
            coordinates = dict(zip(grid, chosen, strict=True))
            point = point_name(method, coordinates)
            cell = self._cell(name, paper, scenario, method, values, coordinates)
            if base:
                cell = self._begun(name, paper, scenario, base, cell)
            if point in found or not POINT.fullmatch(point):
                raise UserError(
                    f"{name}.yaml: methods.{method}: grid: {point!r} names a file; values must differ in six digits "
                    "and be numbers or words of letters, digits, dots, dashes and underscores."
                )
            self.cells[where[0], point] = cell
            found.append(point)
        self.points[where] = found
        return found

    def _begun(self, name: str, paper: Paper, scenario: str, base: str, cell: Cell) -> Cell:
        """Return a cell that begins from the point of `base` with its unlearning settings; that one is planned, too."""
        shared = {key: value for key, value in cell.coordinates.items() if not key.startswith("recovery.")}
        point = point_name(base, shared)
        key = (f"{name}/{scenario}", point)
        if key not in self.cells:
            values = self._values(name, paper, scenario, base)
            self.cells[key] = self._cell(name, paper, scenario, base, values, shared)
        if specs.unlearn(cell) != specs.unlearn(self.cells[key]):
            raise UserError(
                f"{name}.yaml: scenarios.{scenario}: a method that begins from {point!r} must have its unlearning "
                "settings; only recovery, total_rounds and the grid of recovery are its own."
            )
        return replace(cell, unlearned=point)

    def _values(self, name: str, paper: Paper, scenario: str, method: str) -> dict[str, Any]:
        """Return the settings of a method in a scenario, laid over each other but not yet validated."""
        values, special = inherited(name, paper, scenario)
        if method != ORIGINAL:
            entry = paper.methods[method]
            layers = [entry.settings, special.get(method, {})]
            if entry.unlearned_from:
                base = entry.unlearned_from
                layers = [paper.methods[base].settings, special.get(base, {}), *layers]
            own: dict[str, Any] = {}
            for layer in layers:
                own = merge(own, layer)
            foreign = [key for key in own if key not in OWN_SETTINGS]
            if foreign:
                raise UserError(
                    f"{name}.yaml: methods.{method}.settings: {foreign[0]!r} is shared by all methods; "
                    f"a method may set {', '.join(OWN_SETTINGS)}."
                )
            grid = merge(values.get("grid", {}), own.get("grid", {}))
            for key in (key for key, found in grid.items() if found) if isinstance(grid, dict) else ():
                section, _, last = key.partition(".")
                if isinstance(own.get(section), dict) and own[section].get(last) is not None:
                    raise UserError(
                        f"{name}.yaml: methods.{method}.settings: {key} is set, but its grid {grid[key]} would "
                        f"replace it; write grid: {{{key}: [{own[section][last]}]}} instead."
                    )
            if (
                entry.post_training == "own"
                and isinstance(own.get("unlearning"), dict)
                and "rounds" in own["unlearning"]
            ):
                raise UserError(
                    f"{name}.yaml: methods.{method}.settings: unlearning.rounds: with post_training: own the method "
                    "takes total_rounds; set that."
                )
            values = merge(values, own)
        dataset = values.get("data", {}).get("dataset") if isinstance(values.get("data"), dict) else None
        if isinstance(dataset, str) and dataset in self.preset.replace_datasets:
            values = merge(values, {"data": {"dataset": self.preset.replace_datasets[dataset]}})
        return values

    def _cell(
        self, name: str, paper: Paper, scenario: str, method: str, values: dict[str, Any], coordinates: dict[str, Any]
    ) -> Cell:
        entry = None if method == ORIGINAL else paper.methods[method]
        where = f"{name}.yaml: scenarios.{scenario}" + (f" with methods.{method}" if entry else "")
        params: dict[str, Any] = {}
        for key, value in coordinates.items():
            section, _, last = key.partition(".")
            if section == "params":
                params[last] = value
            else:
                values = merge(values, {section: {last: value}})
        values = completed(values, entry.post_training if entry else "after")
        settings = validate(Settings, values, where)
        inputs.check("models", settings.model.name, where)
        inputs.check("training", settings.training.method.name, where)
        for kind in settings.training.history:
            inputs.check("histories", kind, f"{where}: training.history")
        for evaluator in settings.evaluators:
            inputs.check("evaluation", evaluator, where)
        if settings.recovery.projection:
            inputs.check("projections", settings.recovery.projection.name, where)
        if entry is None:
            return Cell(settings, None)
        if entry.unlearned_from:
            base = paper.methods[entry.unlearned_from]
            entry = entry.model_copy(update={"params": base.params, "plugin": base.plugin})
        if params:
            entry = entry.model_copy(update={"params": {**entry.params, **params}})
        return Cell(settings, entry, point_name(method, coordinates), coordinates)

    def _check_selection(self, name: str, scenario: str, methods: list[str]) -> None:
        """Raise `UserError` where a choice among points is to be made and nothing is held out for it."""
        for method in methods:
            points = self.points[f"{name}/{scenario}", method]
            share = self.cells[f"{name}/{scenario}", points[0]].settings.data.validation_share
            if len(points) > 1 and not share:
                raise UserError(
                    f"{name}.yaml: scenarios.{scenario}: data.validation_share is 0, but methods.{method} has a grid; "
                    "its best point is chosen on validation data, so hold some out."
                )

    def planned_params(self) -> Iterator[inputs.Planned]:
        """Yield every plug-in with the hyper-parameters that it is given."""
        for (scenario, name), cell in self.cells.items():
            settings, where = cell.settings, f"{scenario.partition('/')[0]}.yaml"
            yield inputs.Planned("models", settings.model.name, canonical(settings.model.params), f"{where}: model")
            way = settings.training.method
            history = tuple(settings.training.history)
            yield inputs.Planned("training", way.name, canonical(way.params), f"{where}: training.method", history)
            projection = settings.recovery.projection
            if projection:
                values = canonical(projection.params)
                yield inputs.Planned("projections", projection.name, values, f"{where}: recovery.projection")
            if cell.method and cell.method.plugin:
                values = canonical(cell.method.params)
                yield inputs.Planned("methods", cell.method.plugin, values, f"{where}: methods.{name}", history)
