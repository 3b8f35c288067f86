"""Papers expanded into trials: every method at every point of its grid in every scenario that an artefact shows.

What cannot work is refused here, in one sentence, before the first job.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from fu.artefacts.entry import ORIGINAL
from fu.errors import UserError, nearest
from fu.pipeline import catalogue, checks, estimates, specs, stability
from fu.pipeline.catalogue import Planned
from fu.pipeline.settings.papers import Resolved, merge, validate
from fu.pipeline.settings.records import INHERITED, LENGTH, Paper, Plugin, Settings
from fu.pipeline.specs import Trial

# What a method may set for itself; the rest is shared by all methods of a scenario and the models that they start from.
OWN_SETTINGS = ("unlearning", "recovery", "total_rounds", "grid")
NAME = re.compile(r"[A-Za-z0-9_.+-]{1,160}")
PHASES = ("training", "unlearning", "recovery")
CHOSEN = "+chosen"  # after the name of a training or method: the chosen point of its grid
STARTS_FROM = "trained."  # before the settings of a training in the values of a method that starts from it
MUST = ("lr", "lr_decay", "batch_size")  # null is an error where no phase before has a value
POINTS = 1000  # at most, in one grid


def trial_name(name: str, values: Mapping[str, Any]) -> str:
    """Return the name of a trial of a training or a method: `fedosd+lr0.005`."""
    parts = []
    for key, value in values.items():
        section, _, last = key.removeprefix(STARTS_FROM).partition(".")
        prefix = "trained-" if key.startswith(STARTS_FROM) else "recovery-" if section == "recovery" else ""
        parts.append(f"{prefix}{last}{value:g}" if isinstance(value, float) else f"{prefix}{last}{value}")
    return "-".join([f"{name}+{parts[0]}", *parts[1:]]) if parts else name


def unlearned_by(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the grid values that unlearning depends on: all except those of post-training."""
    return {key: value for key, value in values.items() if not key.startswith("recovery.")}


def line_of(where: str, paper: Paper, scenario: str) -> list[str]:
    """Return a scenario, its base, the base of that and so on."""
    line = [scenario]
    while (base := paper.scenarios[line[-1]].base) is not None:
        here = f"{where}: scenarios.{line[-1]}.base"
        if base not in paper.scenarios:
            raise UserError(f"{here}: there is no scenario {base!r}{nearest(base, paper.scenarios)}.")
        if base in line:
            raise UserError(f"{here}: {base!r} is built on itself; name another scenario.")
        line.append(base)
    return line


def inherited(where: str, paper: Paper, scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's settings, and those for one training or method alone, over those of its base and paper."""
    settings = paper.settings
    special: dict[str, Any] = {}
    for layer in reversed(line_of(where, paper, scenario)):
        about = paper.scenarios[layer]
        settings = merge(settings, about.settings)
        special = merge(special, {**about.trainings, **about.methods})
    return settings, special


def completed(values: dict[str, Any], post_training: str) -> dict[str, Any]:
    """Fill in what a phase inherits from the previous one, and the rounds of methods without post-training."""
    there = [phase for phase in PHASES if values.get(phase) is not None]
    if not all(isinstance(values[phase], dict) for phase in there):
        return values  # validation reports it
    phases = {phase: dict(values[phase]) for phase in there}
    for before, phase in pairwise(there):
        own, above = phases[phase], phases[before]
        fixed = LENGTH if any(own.get(key) is not None for key in LENGTH) else ()
        for key in INHERITED:
            if own.get(key) is None and key not in fixed and (key in own or above.get(key) is not None):
                own[key] = above.get(key)
    for own in phases.values():
        for key in INHERITED:
            if key in own and own[key] is None and key not in LENGTH and key not in MUST:
                del own[key]  # the default
    total = values.get("total_rounds")
    if "unlearning" in phases:
        after = phases["unlearning"]
        if "recovery" not in phases:
            after["rounds"] = _rounds(values) if after.get("rounds") is None else after["rounds"]
            total = after["rounds"] if total is None else total
        if post_training == "own":
            phases["unlearning"]["rounds"] = total
        elif post_training == "none":
            total = phases["unlearning"].get("rounds")
    return {**values, **phases, "total_rounds": total}


def _rounds(values: Mapping[str, Any]) -> Any:
    """Return the rounds of training for every request."""
    data = values.get("data")
    asked = data.get("forget") if isinstance(data, dict) else None
    requests = asked.get("requests", 1) if isinstance(asked, dict) else 1
    training = values.get("training")
    rounds = training.get("rounds") if isinstance(training, dict) else None
    return rounds * requests if isinstance(rounds, int) and isinstance(requests, int) else None


class Grid:
    """The trials of all papers; raises `UserError` if they cannot be planned."""

    def __init__(self, resolved: Resolved) -> None:
        """Expand the artefacts of the papers, with the preset's replacements of data sets."""
        self.preset, self.where = resolved.preset, resolved.where
        self.trials: dict[tuple[str, str], Trial] = {}  # (paper/scenario, name of the trial)
        self.names: dict[tuple[str, str], list[str]] = {}  # (paper/scenario, training or method) -> names of its trials
        self.partitions: dict[str, str] = {}  # paper/scenario -> the one in whose folder its partition lies
        self.at: dict[str, Mapping[str, float | int | str]] = {}  # paper/scenario -> its coordinates
        self.homes: dict[tuple[str, str], str] = {}  # (paper/scenario, trial of a training) -> the same for its model
        self.chosen: dict[tuple[str, str], str] = {}  # (paper/scenario, training or method) -> its chosen trial
        for name, paper in resolved.papers.items():
            self._check(name, paper)

    def _check(self, name: str, paper: Paper) -> None:
        for key, training in paper.trainings.items():
            catalogue.check("training", training.plugin, f"{self.where[name]}: trainings.{key}")
        labels: dict[str, str] = {}
        for key, method in paper.methods.items():
            where = f"{self.where[name]}: methods.{key}"
            if (other := labels.setdefault(method.label, key)) != key:
                raise UserError(f"{where}.label: {method.label!r} is {other!r} already; give it another one.")
            if method.plugin:
                catalogue.check("methods", method.plugin, where)
            elif method.unlearned_from not in paper.methods:
                hint = nearest(str(method.unlearned_from), paper.methods)
                raise UserError(f"{where}.unlearned_from: there is no method {method.unlearned_from!r}{hint}.")
            elif paper.methods[method.unlearned_from].unlearned_from:
                raise UserError(f"{where}.unlearned_from: {method.unlearned_from!r} has no unlearning of its own.")
            if method.trained_by not in (trainings := [ORIGINAL, *paper.trainings]):
                hint = nearest(method.trained_by, trainings)
                raise UserError(f"{where}.trained_by: there is no training {method.trained_by!r}{hint}.")
        for key, about in paper.scenarios.items():
            for group, entries in (("trainings", [*paper.trainings]), ("methods", [*paper.methods])):
                for special in getattr(about, group):
                    if special not in entries:
                        hint = nearest(special, entries)
                        raise UserError(f"{self.where[name]}: scenarios.{key}.{group}: there is no {special!r}{hint}.")
        chosen: list[tuple[str, str]] = []
        all_shown: set[tuple[str, str]] = set()
        for artefact, entry in paper.artefacts.items():
            where = f"{self.where[name]}: artefacts.{artefact}"
            catalogue.check("artefacts", entry.kind, where)
            checks.shown(entry, where)
            for kind, wanted, known in (
                ("scenario", entry.scenarios, list(paper.scenarios)),
                ("training", [*entry.trainings, *entry.against], [ORIGINAL, *paper.trainings]),
                ("method", entry.methods, list(paper.methods)),
                ("metric", entry.metrics, list(catalogue.metrics())),
            ):
                for item in wanted:
                    if item not in known:
                        raise UserError(f"{where}: there is no {kind} {item!r}{nearest(item, known)}.")
            for scenario in entry.scenarios:
                for shown in entry.shown if entry.trains_only else [ORIGINAL, *entry.shown]:
                    self._expand(name, paper, scenario, shown)
                checks.evaluated(self, name, scenario, entry, where)
                if catalogue.chooses(entry.kind, entry.points):
                    checks.selection(self, name, scenario, entry.shown)
                    chosen += [(scenario, shown) for shown in entry.shown]
                else:
                    all_shown |= {(f"{name}/{scenario}", shown) for shown in entry.shown}
            if catalogue.reads(entry.kind) in ("evaluations", "traces"):
                checks.drawn(self, name, entry, where)
            if catalogue.reads(entry.kind) == "nothing":
                checks.sampled(self, name, entry, where)
        for scenario, shown in dict.fromkeys(chosen):
            self._choose(name, paper, scenario, shown)
        for at in self.chosen.keys() - all_shown:
            if at[0].startswith(f"{name}/") and not self.varies_after(*at):
                for trial in self.names[at]:
                    self.trials[at[0], trial] = replace(self.trials[at[0], trial], compared=True)

    def _expand(self, name: str, paper: Paper, scenario: str, shown: str) -> None:
        """Add the trials of a training or a method, one for every point of its grid."""
        scope, where = f"{name}/{scenario}", self.where[name]
        self.at[scope] = paper.scenarios[scenario].at
        if (scope, shown) in self.names:
            return
        if shown == ORIGINAL or shown in paper.trainings:
            self._expand_training(name, paper, scenario, shown)
            return
        starts_from = paper.methods[paper.methods[shown].unlearned_from or shown].trained_by
        self._expand(name, paper, scenario, starts_from)
        found: list[str] = []
        for start in self.names[scope, starts_from]:
            trained = self.trials[scope, start]
            values = self._values(name, paper, scenario, shown, trained)
            before = {f"{STARTS_FROM}{key}": value for key, value in trained.values.items()}
            for point in self._points(values.get("grid", {}), f"{where}: methods.{shown}"):
                trial = self._trial(name, paper, scenario, shown, values, point)
                trial = replace(trial, trained=start, values={**before, **point})
                trial = replace(trial, unlearned=self._unlearned(name, paper, scenario, shown, trial))
                self._add(scope, trial_name(shown, trial.values), trial, found, f"{where}: methods.{shown}")
        self.names[scope, shown] = found

    def _expand_training(self, name: str, paper: Paper, scenario: str, shown: str) -> None:
        scope, where = f"{name}/{scenario}", self.where[name]
        values, special = inherited(where, paper, scenario)
        values = self._replaced(values)
        given: dict[str, Any] = {}
        if shown != ORIGINAL:
            entry = paper.trainings[shown]
            own = {"params": entry.params, "settings": entry.settings, "grid": entry.grid}
            given = merge(own, special.get(shown, {}))
            for part, known in ((given, own), (given["settings"], ("training",))):
                foreign = [key for key in part if key not in known]
                if foreign:
                    raise UserError(
                        f"{where}: trainings.{shown}: {foreign[0]!r} cannot be set here; allowed: {', '.join(known)}."
                    )
            method = {"method": {"name": entry.plugin, "params": given["params"]}}
            values = merge(merge(values, given["settings"]), {"training": method})
        found: list[str] = []
        for point in self._points(given.get("grid", {}), f"{where}: trainings.{shown}"):
            at = values
            for key, value in point.items():
                section, _, last = key.partition(".")
                if section not in ("training", "params"):
                    raise UserError(
                        f"{where}: trainings.{shown}: grid: {key!r} is of no training; allowed: training.x, params.x."
                    )
                inside = {last: value} if section == "training" else {"method": {"params": {last: value}}}
                at = merge(at, {"training": inside})
            trial = replace(
                self._trial(name, paper, scenario, ORIGINAL, at, {}, shown),
                values=point,
                trained=trial_name(shown, point),
            )
            self._add(scope, trial.trained, trial, found, f"{where}: trainings.{shown}")
            self._settle(name, paper, scenario, shown, trial)
        self.names[scope, shown] = found

    def _settle(self, name: str, paper: Paper, scenario: str, shown: str, trial: Trial) -> None:
        """Find the scenario in whose folder a trained model lies: the furthest base that trains alike, else its own."""
        scope = f"{name}/{scenario}"
        self.partitions.setdefault(scope, scope)
        self.homes[scope, trial.trained] = scope
        for base in line_of(self.where[name], paper, scenario)[:0:-1]:
            other = f"{name}/{base}"
            with contextlib.suppress(UserError):  # a base may lack what only scenarios that build on it have
                self._expand(name, paper, base, shown)
            there = self.trials.get((other, trial.trained))
            if there is None or specs.of_partition(there, 0) != specs.of_partition(trial, 0):
                continue
            if self.partitions[scope] == scope:
                self.partitions[scope] = self.partitions[other]
            if specs.of_training(there, 0) == specs.of_training(trial, 0):
                self.homes[scope, trial.trained] = self.homes[other, trial.trained]
                return

    def varies_after(self, scope: str, shown: str) -> bool:
        """Whether the points of a grid may differ in post-training alone, so that all are post-trained to choose one.

        They may where its rate is in the grid, and where nobody trains while unlearning, so that all points tie.
        """
        trials = [self.trials[scope, trial] for trial in self.names[scope, shown]]
        if trials[0].method is None:
            return False
        after = [{key: value for key, value in trial.values.items() if key.startswith("recovery.")} for trial in trials]
        return any(values != after[0] for values in after) or not any(estimates.trained(trials[0]).values())

    def _choose(self, name: str, paper: Paper, scenario: str, shown: str) -> None:
        """Add the trial that stands for the chosen point of a grid, whichever it will be."""
        scope, names = f"{name}/{scenario}", self.names[f"{name}/{scenario}", shown]
        if len(names) < 2 or (scope, shown) in self.chosen:
            return
        trials = {trial: self.trials[scope, trial] for trial in names}
        if len({trial.recovers for trial in trials.values()}) > 1:
            raise UserError(
                f"{self.where[name]}: scenarios.{scenario}: some points of the grid of {shown!r} leave rounds for "
                "post-training and some do not; let all or none, or show them all (points: all)."
            )
        found = self.chosen[scope, shown] = f"{shown}{CHOSEN}"
        first, by, points = trials[names[0]], (scope, shown), {trial: trial for trial in names}
        if first.method is None:
            home = self._chosen_home(name, paper, scope, shown)
            self.homes[scope, found] = home
            self.trials[scope, found] = replace(
                first, trained=found, values={}, points=points, chosen_by=(home, shown), compared=False
            )
            return
        base = paper.methods[shown].unlearned_from
        if base and not self.varies_after(scope, shown):
            self._expand(name, paper, scenario, base)
            unlearned = {self.trials[scope, trial].unlearned: trial for trial in self.names[scope, base]}
            same = unlearned.keys() == {trial.unlearned for trial in trials.values()}
            if same and len(unlearned) == len(self.names[scope, base]):
                self._choose(name, paper, scenario, base)
                by, points = (scope, base), {unlearned[about.unlearned]: trial for trial, about in trials.items()}
        start = first.trained
        if by[1] != shown:
            start = self.trials[scope, self.chosen[by]].trained
        elif len({trial.trained for trial in trials.values()}) > 1:
            start = f"{first.trained.partition('+')[0]}{CHOSEN}-for-{shown}"
            self.homes[scope, start] = scope
            self.trials[scope, start] = replace(
                self.trials[scope, first.trained],
                trained=start,
                values={},
                points={trial: about.trained for trial, about in trials.items()},
                chosen_by=by,
            )
        self.trials[scope, found] = replace(
            first, trained=start, unlearned=f"{by[1]}{CHOSEN}", values={}, points=points, chosen_by=by
        )

    def _chosen_home(self, name: str, paper: Paper, scope: str, shown: str) -> str:
        """Return the scenario whose choice of a training this is: the one where all points lie and are judged alike."""
        homes = {self.homes[scope, trial] for trial in self.names[scope, shown]}
        (other, *more) = homes
        if more or other == scope:
            return scope
        mine, theirs = (self.trials[at, self.names[scope, shown][0]].settings for at in (scope, other))
        alike = ("chosen_by", "evaluations")
        if (
            self.names[other, shown] != self.names[scope, shown]
            or any(getattr(mine, one) != getattr(theirs, one) for one in alike)
            or mine.data.forget != theirs.data.forget
        ):
            return scope
        self._choose(name, paper, other.partition("/")[2], shown)
        return other

    def _points(self, grid: Any, where: str) -> list[dict[str, Any]]:
        """Return every combination of a grid's values."""
        if not isinstance(grid, dict) or not all(isinstance(found, list) for found in grid.values()):
            return [{}]  # validation reports it
        given = {key: found for key, found in grid.items() if found}
        if math.prod(map(len, given.values())) > POINTS:
            raise UserError(f"{where}: grid: has more than {POINTS} points; name fewer values.")
        return [dict(zip(given, chosen, strict=True)) for chosen in product(*given.values())]

    def _add(self, scope: str, name: str, trial: Trial, found: list[str], where: str) -> None:
        if name in found or not NAME.fullmatch(name):
            raise UserError(
                f"{where}: grid: {name!r} becomes a file name; values must differ "
                "within six digits and be numbers or short words of letters, digits, dots, dashes and underscores."
            )
        self.trials[scope, name] = trial
        found.append(name)

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
            trained = self.trials[f"{name}/{scenario}", trial.trained]
            values = self._values(name, paper, scenario, base, trained)
            own = {key: value for key, value in point.items() if not key.startswith(STARTS_FROM)}
            planned = self._trial(name, paper, scenario, base, values, own)
            self.trials[key] = replace(planned, trained=trial.trained, values=point, unlearned=found)
        if specs.of_unlearning(trial, 0) != specs.of_unlearning(self.trials[key], 0):
            raise UserError(
                f"{self.where[name]}: scenarios.{scenario}: a method that starts from {found!r} must have its "
                "unlearning settings; only recovery, total_rounds and the recovery grid may differ."
            )
        return found

    def _values(self, name: str, paper: Paper, scenario: str, method: str, trained: Trial) -> dict[str, Any]:
        """Return the settings of a method that starts from a trained model, merged but not yet validated."""
        where = self.where[name]
        values, special = inherited(where, paper, scenario)
        values = {**values, "training": trained.settings.training.model_dump()}
        if values.get("unlearning") is None:
            raise UserError(
                f"{where}: scenario {scenario}, method {method}: settings.unlearning is missing; a method needs it, "
                "recovery, total_rounds and data.forget."
            )
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
            if section == "training":
                raise UserError(
                    f"{where}: scenario {scenario}, method {method}: grid: {key!r} is a training's; "
                    "allowed: unlearning.x, recovery.x, params.x."
                )
            if isinstance(own.get(section), dict) and own[section].get(last) is not None:
                raise UserError(
                    f"{where}: methods.{method}.settings: {key} is set, but its grid {grid[key]} would "
                    f"replace it; write grid: {{{key}: [{own[section][last]}]}} instead."
                )
        if entry.post_training == "own" and isinstance(own.get("unlearning"), dict) and "rounds" in own["unlearning"]:
            raise UserError(
                f"{where}: methods.{method}.settings: unlearning.rounds: with post_training: own, the method "
                "runs for total_rounds; set that instead."
            )
        values = merge(values, own)
        return self._replaced(values)

    def _replaced(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return settings with the data set that the preset has in the place of the paper's."""
        dataset = values.get("data", {}).get("dataset") if isinstance(values.get("data"), dict) else None
        if isinstance(dataset, str) and dataset in self.preset.replace_datasets:
            values = merge(values, {"data": {"dataset": self.preset.replace_datasets[dataset]}})
        return values

    def _trial(
        self,
        name: str,
        paper: Paper,
        scenario: str,
        method: str,
        values: dict[str, Any],
        point: dict[str, Any],
        training: str = ORIGINAL,
    ) -> Trial:
        entry = None if method == ORIGINAL else paper.methods[method]
        where = f"{self.where[name]}: scenario {scenario}"
        where += f", method {method}" if entry else f", training {training}" if training != ORIGINAL else ""
        params: dict[str, Any] = {}
        for key, value in point.items():
            section, _, last = key.partition(".")
            if section == "params":
                params[last] = value
            else:
                values = merge(values, {section: {last: value}})
        values = completed(stability.given(values, where), entry.post_training if entry else "after")
        settings = validate(Settings, values, where)
        catalogue.check("models", settings.model.name, where)
        catalogue.check("training", settings.training.method.name, where)
        for kind in settings.training.history:
            catalogue.check("histories", kind, f"{where}: training.history")
        phases = [phase for phase in PHASES if getattr(settings, phase)]
        traced = {one: phase for phase in phases for one in getattr(settings, phase).traced}
        for evaluator in (*(found for several in settings.evaluations.values() for found in several), *traced):
            catalogue.check("evaluation", evaluator, where)
        for evaluator, phase in traced.items():
            if not catalogue.traces(evaluator):
                able = [name for name in catalogue.available("evaluation") if catalogue.traces(name)]
                raise UserError(f"{where}: {phase}.traced: {evaluator!r} defines no trace; allowed: {', '.join(able)}.")
        if catalogue.declared("training", settings.training.method.name).get("SERVER") and not settings.data.server:
            raise UserError(f"{where}: {settings.training.method.name} trains on the server's data; set data.server.")
        if entry is None:
            return Trial(settings)
        if settings.unlearning is None or (
            settings.recovery is None and settings.total_rounds != settings.unlearning.rounds
        ):
            raise UserError(f"{where}: settings.recovery is missing; rounds are left after unlearning.")
        stability.check_request(settings, entry, where)
        if settings.recovery and settings.recovery.projection:
            catalogue.check("projections", settings.recovery.projection.name, where)
        if entry.unlearned_from:
            base = paper.methods[entry.unlearned_from]
            entry = entry.model_copy(update={"params": base.params, "plugin": base.plugin})
        if params:
            entry = entry.model_copy(update={"params": {**entry.params, **params}})
        return Trial(settings, entry, values=point)

    def planned_params(self) -> Iterator[Planned]:
        """Yield every plug-in with its hyper-parameters; evaluators and histories have none."""
        for (scenario, name), trial in self.trials.items():
            settings, where = trial.settings, self.where[scenario.partition("/")[0]]
            yield Planned("models", settings.model.name, params_of(settings.model), f"{where}: model")
            algorithm, entry = settings.training.method, trial.trained.partition("+")[0]
            place = "training.method" if entry == ORIGINAL else f"training {entry}"
            history = tuple(settings.training.history)
            yield Planned("training", algorithm.name, params_of(algorithm), f"{where}: {place}", history)
            phases = [phase for name in PHASES if (phase := getattr(settings, name))]
            measuring = [*settings.evaluations.values(), *(phase.traced for phase in phases)]
            for evaluator in {one for several in measuring for one in several}:
                yield Planned("evaluation", evaluator, "{}", where)
            for kind in history:
                yield Planned("histories", kind, "{}", where)
            projection = settings.recovery.projection if settings.recovery else None
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
