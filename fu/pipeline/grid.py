"""Papers expanded into trials: every method at every point of its grid in every scenario that an artefact shows.

What cannot work is refused here, in one sentence, before the first job.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from operator import attrgetter
from typing import Any, get_args

from fu.artefacts.entry import ORIGINAL, Stage
from fu.errors import UserError, nearest
from fu.evaluation.trace import COLUMNS
from fu.pipeline import catalogue, specs
from fu.pipeline.catalogue import Planned
from fu.pipeline.settings.papers import Resolved, merge, validate
from fu.pipeline.settings.records import INHERITED, Artefact, Paper, Plugin, Settings
from fu.pipeline.specs import Trial

# What a method may set for itself; the rest is shared by all methods of a scenario and the original model.
OWN_SETTINGS = ("unlearning", "recovery", "total_rounds", "grid")
NAME = re.compile(r"[A-Za-z0-9_.+-]{1,160}")
PHASES = ("training", "unlearning", "recovery")
SELECTED_BY = ("r_acc_validation", "asr_validation")  # fu/evaluation/selection.py
NEEDS = {"asr": "data.attack", "asr_validation": "data.attack", "conflicts": "unlearning.conflicts"}
POINTS = 1000  # at most, in one grid


def trial_name(method: str, values: Mapping[str, Any]) -> str:
    """Return the name of a trial: `fedosd+lr0.005`."""
    parts = []
    for key, value in values.items():
        section, _, last = key.partition(".")
        prefix = f"{section}-" if section == "recovery" else ""
        parts.append(f"{prefix}{last}{value:g}" if isinstance(value, float) else f"{prefix}{last}{value}")
    return "-".join([f"{method}+{parts[0]}", *parts[1:]]) if parts else method


def unlearned_by(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the grid values that unlearning depends on: all except those of post-training."""
    return {key: value for key, value in values.items() if not key.startswith("recovery.")}


def inherited(where: str, paper: Paper, scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's settings and its per-method settings, merged over those of its base and the paper."""
    line = [scenario]
    while (base := paper.scenarios[line[-1]].base) is not None:
        here = f"{where}: scenarios.{line[-1]}.base"
        if base not in paper.scenarios:
            raise UserError(f"{here}: there is no scenario {base!r}{nearest(base, paper.scenarios)}.")
        if base in line:
            raise UserError(f"{here}: {base!r} is built on itself; name another scenario.")
        line.append(base)
    settings = paper.settings
    methods: dict[str, Any] = {}
    for layer in reversed(line):
        settings = merge(settings, paper.scenarios[layer].settings)
        methods = merge(methods, paper.scenarios[layer].methods)
    return settings, methods


def completed(values: dict[str, Any], post_training: str) -> dict[str, Any]:
    """Fill in what a phase inherits from the previous one, and the rounds of methods without post-training."""
    if not all(isinstance(values.get(phase), dict) for phase in PHASES):
        return values  # validation reports it
    phases = {phase: dict(values[phase]) for phase in PHASES}
    for before, phase in pairwise(PHASES):
        for key, value in phases[phase].items():
            if value is None and key in INHERITED:
                phases[phase][key] = phases[before].get(key)
    total = values.get("total_rounds")
    if post_training == "own":
        phases["unlearning"]["rounds"] = total
    elif post_training == "none":
        total = phases["unlearning"].get("rounds")
    return {**values, **phases, "total_rounds": total}


class Grid:
    """The trials of all papers; raises `UserError` if they cannot be planned."""

    def __init__(self, resolved: Resolved) -> None:
        """Expand the artefacts of the papers, with the preset's replacements of data sets."""
        self.preset, self.where = resolved.preset, resolved.where
        self.trials: dict[tuple[str, str], Trial] = {}  # (paper/scenario, name of the trial)
        self.names: dict[tuple[str, str], list[str]] = {}  # (paper/scenario, method) -> the names of its trials
        for name, paper in resolved.papers.items():
            self._check(name, paper)

    def _check(self, name: str, paper: Paper) -> None:
        for key, method in paper.methods.items():
            where = f"{self.where[name]}: methods.{key}"
            if method.plugin:
                catalogue.check("methods", method.plugin, where)
            elif method.unlearned_from not in paper.methods:
                hint = nearest(str(method.unlearned_from), paper.methods)
                raise UserError(f"{where}.unlearned_from: there is no method {method.unlearned_from!r}{hint}.")
            elif paper.methods[method.unlearned_from].unlearned_from:
                raise UserError(f"{where}.unlearned_from: {method.unlearned_from!r} has no unlearning of its own.")
        for key, about in paper.scenarios.items():
            for special in about.methods:
                if special not in paper.methods:
                    hint = nearest(special, paper.methods)
                    raise UserError(f"{self.where[name]}: scenarios.{key}.methods: there is no {special!r}{hint}.")
        for artefact, entry in paper.artefacts.items():
            where = f"{self.where[name]}: artefacts.{artefact}"
            catalogue.check("artefacts", entry.kind, where)
            self._check_shown(entry, where)
            for kind, wanted, known in (
                ("scenario", entry.scenarios, list(paper.scenarios)),
                ("method", entry.methods, list(paper.methods)),
                ("metric", entry.metrics, list(catalogue.metrics())),
            ):
                for item in wanted:
                    if item not in known:
                        raise UserError(f"{where}: there is no {kind} {item!r}{nearest(item, known)}.")
            for scenario in entry.scenarios:
                for shown in [ORIGINAL, *entry.methods]:
                    self._expand(name, paper, scenario, shown)
                self._check_evaluated(name, scenario, entry, where)
                if catalogue.chooses(entry.kind):
                    self._check_selection(name, scenario, entry.methods)
                elif catalogue.reads(entry.kind) in ("evaluations", "traces"):
                    lone = [method for method in entry.methods if len(self.names[f"{name}/{scenario}", method]) < 2]
                    if lone:
                        raise UserError(
                            f"{where}: kind {entry.kind} needs a grid of two or more values; {lone[0]!r} has none."
                        )
            if catalogue.reads(entry.kind) in ("evaluations", "traces"):
                self._check_drawn(name, entry, where)

    def _check_shown(self, entry: Artefact, where: str) -> None:
        reads = catalogue.reads(entry.kind)
        if reads != "nothing" and not entry.scenarios:
            raise UserError(f"{where}: kind {entry.kind} needs scenarios; name at least one.")
        if reads in ("evaluations", "traces") and not (entry.methods and entry.metrics):
            raise UserError(f"{where}: kind {entry.kind} needs methods and metrics; name at least one of each.")
        counts = catalogue.declared("artefacts", entry.kind).get("COUNTS")
        traced = [metric for metric in counts or COLUMNS if metric in catalogue.metrics()]
        untraced = [metric for metric in entry.metrics if reads == "traces" and metric not in traced]
        if untraced:
            what = "does not add up over rounds" if counts else "is not measured per round"
            raise UserError(f"{where}: {untraced[0]!r} {what}; allowed: {', '.join(traced)}.")

    def _check_drawn(self, name: str, entry: Artefact, where: str) -> None:
        """Raise `UserError` where something to be shown does not exist: metrics, a stage, the one varying setting."""
        about = catalogue.declared("artefacts", entry.kind)
        trials = {
            (scenario, method): [self.trials[f"{name}/{scenario}", trial] for trial in found]
            for scenario, method in product(entry.scenarios, entry.methods)
            for found in [self.names[f"{name}/{scenario}", method]]
        }
        needs = [NEEDS.get(metric, "data") for metric in entry.metrics]
        if not any(attrgetter(need)(trial.settings) for found in trials.values() for trial in found for need in needs):
            raise UserError(f"{where}: no scenario has the metric {entry.metrics[0]!r}; it needs settings.{needs[0]}.")
        for scenario, wanted in product(entry.scenarios, about.get("TRACED", ())):
            if any(
                wanted not in trial.settings.traced for method in entry.methods for trial in trials[scenario, method]
            ):
                raise UserError(f"{where}: kind {entry.kind} needs settings.traced: [{wanted}] in {scenario!r}.")
        drawn = about.get("STAGES", get_args(Stage))
        stages = [stage for stage in entry.stages if stage in drawn]
        read = catalogue.reads(entry.kind) == "evaluations" and catalogue.chooses(entry.kind)
        for scenario in entry.scenarios if read else ():
            recovers = any(trial.recovers for method in entry.methods for trial in trials[scenario, method])
            lacking = [stage for stage in stages if stage == "recovered" and not recovers]
            if lacking == stages or (lacking and "STAGES" in about):
                raise UserError(
                    f"{where}: stages: kind {entry.kind} cannot show {(lacking or entry.stages)[0]!r} for "
                    f"{scenario!r}; allowed: {', '.join(stage for stage in drawn if stage != 'recovered' or recovers)}."
                )
        if "SETTINGS" in about:
            values: dict[tuple[str, str], set[Any]] = {}
            for (_, method), found in trials.items():
                for key, value in (item for trial in found for item in trial.values.items()):
                    values.setdefault((method, key), set()).add(value)
            varied = sorted({key for (_, key), several in values.items() if len(several) > 1})
            if len(varied) != about["SETTINGS"]:
                raise UserError(
                    f"{where}: kind {entry.kind} needs grids in which one setting varies, got "
                    f"{', '.join(varied) or 'none'}."
                )

    def _expand(self, name: str, paper: Paper, scenario: str, method: str) -> None:
        """Add the trials of a method, one for every point of its grid."""
        scope, where = f"{name}/{scenario}", self.where[name]
        if (scope, method) in self.names:
            return
        values = self._values(name, paper, scenario, method)
        entry = None if method == ORIGINAL else paper.methods[method]
        given = {} if entry is None else values.get("grid", {})
        if not isinstance(given, dict) or not all(isinstance(found, list) for found in given.values()):
            self._trial(name, paper, scenario, method, values, {})  # its validation reports the error
        grid = {key: found for key, found in given.items() if found}
        if math.prod(map(len, grid.values())) > POINTS:
            raise UserError(f"{where}: methods.{method}: grid: has more than {POINTS} points; name fewer values.")
        found: list[str] = []
        for chosen in product(*grid.values()):
            point = dict(zip(grid, chosen, strict=True))
            trial_of = trial_name(method, point)
            trial = self._trial(name, paper, scenario, method, values, point)
            if entry:
                trial = replace(trial, unlearned=self._unlearned(name, paper, scenario, method, trial))
            if trial_of in found or not NAME.fullmatch(trial_of):
                raise UserError(
                    f"{where}: methods.{method}: grid: {trial_of!r} becomes a file name; values must differ "
                    "within six digits and be numbers or short words of letters, digits, dots, dashes and underscores."
                )
            self.trials[scope, trial_of] = trial
            found.append(trial_of)
        self.names[scope, method] = found

    def _unlearned(self, name: str, paper: Paper, scenario: str, method: str, trial: Trial) -> str:
        """Return the name of the trial that makes a trial's unlearned model, and plan it unless it is planned already.

        It has the grid values that unlearning depends on: trials that differ only in post-training share it.
        """
        base = paper.methods[method].unlearned_from or method
        point = unlearned_by(trial.values)
        found = trial_name(base, point)
        key = (f"{name}/{scenario}", found)
        if base == method:
            if found != trial_name(method, trial.values):
                self.trials.setdefault(key, replace(trial, unlearned=found, values=point))
            return found
        if key not in self.trials:
            values = self._values(name, paper, scenario, base)
            planned = self._trial(name, paper, scenario, base, values, point)
            self.trials[key] = replace(planned, unlearned=found)
        if specs.of_unlearning(trial, 0) != specs.of_unlearning(self.trials[key], 0):
            raise UserError(
                f"{self.where[name]}: scenarios.{scenario}: a method that starts from {found!r} must have its "
                "unlearning settings; only recovery, total_rounds and the recovery grid may differ."
            )
        return found

    def _values(self, name: str, paper: Paper, scenario: str, method: str) -> dict[str, Any]:
        """Return the settings of a method in a scenario, merged but not yet validated."""
        where = self.where[name]
        values, special = inherited(where, paper, scenario)
        if method != ORIGINAL:
            entry = paper.methods[method]
            own = merge(entry.settings, special.get(method, {}))
            foreign = [key for key in own if key not in OWN_SETTINGS]
            if foreign:
                raise UserError(
                    f"{where}: methods.{method}.settings: {foreign[0]!r} is shared by all methods; "
                    f"a method may set {', '.join(OWN_SETTINGS)}."
                )
            if entry.unlearned_from:
                for layer in (paper.methods[entry.unlearned_from].settings, special.get(entry.unlearned_from, {})):
                    values = merge(values, layer)
            grid = merge(values.get("grid", {}), own.get("grid", {}))
            for key in (key for key, found in grid.items() if found) if isinstance(grid, dict) else ():
                section, _, last = key.partition(".")
                if isinstance(own.get(section), dict) and own[section].get(last) is not None:
                    raise UserError(
                        f"{where}: methods.{method}.settings: {key} is set, but its grid {grid[key]} would "
                        f"replace it; write grid: {{{key}: [{own[section][last]}]}} instead."
                    )
            if (
                entry.post_training == "own"
                and isinstance(own.get("unlearning"), dict)
                and "rounds" in own["unlearning"]
            ):
                raise UserError(
                    f"{where}: methods.{method}.settings: unlearning.rounds: with post_training: own, the method "
                    "runs for total_rounds; set that instead."
                )
            values = merge(values, own)
        dataset = values.get("data", {}).get("dataset") if isinstance(values.get("data"), dict) else None
        if isinstance(dataset, str) and dataset in self.preset.replace_datasets:
            values = merge(values, {"data": {"dataset": self.preset.replace_datasets[dataset]}})
        return values

    def _trial(
        self, name: str, paper: Paper, scenario: str, method: str, values: dict[str, Any], point: dict[str, Any]
    ) -> Trial:
        entry = None if method == ORIGINAL else paper.methods[method]
        where = f"{self.where[name]}: scenario {scenario}" + (f", method {method}" if entry else "")
        params: dict[str, Any] = {}
        for key, value in point.items():
            section, _, last = key.partition(".")
            if section == "params":
                params[last] = value
            else:
                values = merge(values, {section: {last: value}})
        values = completed(values, entry.post_training if entry else "after")
        settings = validate(Settings, values, where)
        catalogue.check("models", settings.model.name, where)
        catalogue.check("training", settings.training.method.name, where)
        for kind in settings.training.history:
            catalogue.check("histories", kind, f"{where}: training.history")
        for evaluator in (*(found for several in settings.evaluations.values() for found in several), *settings.traced):
            catalogue.check("evaluation", evaluator, where)
        for evaluator in settings.traced:
            if not catalogue.traces(evaluator):
                able = [name for name in catalogue.available("evaluation") if catalogue.traces(name)]
                raise UserError(f"{where}: traced: {evaluator!r} defines no trace; allowed: {', '.join(able)}.")
        if settings.recovery.projection:
            catalogue.check("projections", settings.recovery.projection.name, where)
        if entry is None:
            return Trial(settings)
        if entry.unlearned_from:
            base = paper.methods[entry.unlearned_from]
            entry = entry.model_copy(update={"params": base.params, "plugin": base.plugin})
        if params:
            entry = entry.model_copy(update={"params": {**entry.params, **params}})
        return Trial(settings, entry, values=point)

    def _check_evaluated(self, name: str, scenario: str, entry: Artefact, where: str) -> None:
        """Raise `UserError` where no evaluation of a scenario has a metric that is to be shown."""
        evaluations = self.trials[f"{name}/{scenario}", ORIGINAL].settings.evaluations
        for metric in entry.metrics if catalogue.reads(entry.kind) == "evaluations" else ():
            if not evaluations_with([metric], evaluations):
                raise UserError(f"{where}: no evaluation of {scenario!r} has the metric {metric!r}; add its evaluator.")

    def _check_selection(self, name: str, scenario: str, methods: list[str]) -> None:
        """Raise `UserError` where the best point of a grid cannot be chosen on validation data."""
        where = f"{self.where[name]}: scenarios.{scenario}"
        for method in methods:
            names = self.names[f"{name}/{scenario}", method]
            settings = self.trials[f"{name}/{scenario}", names[0]].settings
            if len(names) < 2:
                continue
            judged = [[metric] for metric in (SELECTED_BY if settings.data.attack else SELECTED_BY[:1])]
            homes = [evaluations_with(metrics, settings.evaluations) for metrics in (SELECTED_BY, *judged)]
            if len(homes[0]) != 1 or any(home != homes[0] for home in homes):
                raise UserError(
                    f"{where}: evaluations: methods.{method} has a grid; its best point is "
                    "chosen by R-Acc and ASR on validation data, so utility and backdoor must be in one evaluation."
                )
            _, train, held_out = settings.data.fewest
            if not settings.data.validation_share:
                raise UserError(
                    f"{where}: data.validation_share is 0, but methods.{method} has a grid; "
                    "its best point is chosen on validation data, so hold some out."
                )
            if not held_out:
                raise UserError(
                    f"{where}: data.validation_share: {settings.data.validation_share} holds out none of "
                    f"the smallest client's training samples (at most {train}), but methods.{method} needs some to "
                    "choose the best point of its grid; hold out more or use fewer clients."
                )

    def planned_params(self) -> Iterator[Planned]:
        """Yield every plug-in with its hyper-parameters."""
        for (scenario, name), trial in self.trials.items():
            settings, where = trial.settings, self.where[scenario.partition("/")[0]]
            yield Planned("models", settings.model.name, params_of(settings.model), f"{where}: model")
            algorithm = settings.training.method
            history = tuple(settings.training.history)
            yield Planned("training", algorithm.name, params_of(algorithm), f"{where}: training.method", history)
            projection = settings.recovery.projection
            if projection:
                values = params_of(projection)
                yield Planned("projections", projection.name, values, f"{where}: recovery.projection")
            if trial.method and trial.method.plugin:
                values = json.dumps(trial.method.params, sort_keys=True)
                yield Planned(
                    "methods", trial.method.plugin, values, f"{where}: method {name.partition('+')[0]}", history
                )


def params_of(plugin: Plugin) -> str:
    """Return hyper-parameters as canonical JSON."""
    return json.dumps(plugin.params, sort_keys=True)


def evaluations_with(metrics: Iterable[str], evaluations: Mapping[str, Sequence[str]]) -> list[str]:
    """Return, in order, the evaluations with an evaluator that returns any of the metrics."""
    wanted = set(metrics)
    return [
        name
        for name, evaluators in evaluations.items()
        if any(metric.name in wanted for evaluator in evaluators for metric in catalogue.metrics_of(evaluator))
    ]
