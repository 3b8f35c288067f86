"""Expand papers into trials: every method at every grid point in every scenario that a table or figure shows.

Settings that cannot work are errors here, before the first job.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, product
from typing import Any

from fu.artefacts.entry import ORIGINAL
from fu.errors import UserError, nearest
from fu.pipeline.plan import checks, estimates
from fu.pipeline.plan.entry_checks import EntryChecks
from fu.pipeline.plan.specs import Trial, Trials
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.cached import Planned
from fu.pipeline.provenance.paths import CHOSEN
from fu.pipeline.settings.papers import Resolved, merge, validate
from fu.pipeline.settings.records import INHERITED, LENGTH, Method, Paper, Settings

# What a method may set for itself; the rest is shared by all methods of a scenario and the models that they start from.
OWN_SETTINGS = ("unlearning", "recovery", "total_rounds", "grid")
NAME = re.compile(r"[A-Za-z0-9_.+-]{1,160}")
PHASES = ("training", "unlearning", "recovery")
STARTS_FROM = "trained."  # before the settings of a training in the values of a method that starts from it
POINTS = 1000  # at most, in one grid


def trial_name(name: str, values: Mapping[str, Any]) -> str:
    """Return the name of a trial of a training or a method: `fedosd+lr0.005`."""
    parts = []
    for key, value in values.items():
        section, _, last = key.removeprefix(STARTS_FROM).partition(".")
        prefix = "trained-" if key.startswith(STARTS_FROM) else "recovery-" if section == "recovery" else ""
        parts.append(f"{prefix}{last}{value:g}" if isinstance(value, float) else f"{prefix}{last}{value}")
    return "-".join([f"{name}+{parts[0]}", *parts[1:]]) if parts else name


def line_of(where: str, paper: Paper, scenario: str) -> list[str]:
    """Return a scenario, its base, the base of that and so on."""
    line = [scenario]
    while (base := paper.scenarios[line[-1]].base) is not None:
        here = f"{where}: scenarios.{line[-1]}.base"
        checks.check_name("scenario", base, paper.scenarios, here)
        if base in line:
            raise UserError(f"{here}: {base!r} is based on itself; choose another scenario.")
        line.append(base)
    return line


def inherited(where: str, paper: Paper, scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's settings, and those for one training or method alone, over those of its base and paper."""
    settings = paper.settings
    special: dict[str, Any] = {}
    for layer in reversed(line_of(where, paper, scenario)):
        stated = paper.scenarios[layer]
        settings = merge(settings, stated.settings)
        special = merge(special, {**stated.trainings, **stated.methods})
    return settings, special


def completed(values: dict[str, Any], post_training: str) -> dict[str, Any]:
    """Fill in what a phase inherits from the previous one, and the rounds of methods without post-training."""
    given = [phase for phase in PHASES if values.get(phase) is not None]
    if not all(isinstance(values[phase], dict) for phase in given):
        return values  # validation reports it
    phases: dict[str, dict[str, Any]] = {}
    above: dict[str, Any] = {}
    for phase in given:
        own = {key: value for key, value in values[phase].items() if value is not None or key not in INHERITED}
        fixed = LENGTH if any(key in own for key in LENGTH) else ()
        phases[phase] = {key: value for key, value in above.items() if key not in fixed} | own
        above = {key: value for key, value in phases[phase].items() if key in INHERITED}
    total = values.get("total_rounds")
    if "unlearning" in phases:
        after = phases["unlearning"]
        if after.get("rounds") is None:
            after["rounds"] = _rounds(values)
        if "recovery" not in phases:
            total = after["rounds"] if total is None else total
        if post_training == "own":
            after["rounds"] = total
        elif post_training == "none":
            total = after["rounds"]
    return {**values, **phases, "total_rounds": total}


def _rounds(values: Mapping[str, Any]) -> Any:
    """Return the rounds of training for every request."""
    data = values.get("data")
    asked = data.get("forget") if isinstance(data, dict) else None
    requests = asked.get("requests", 1) if isinstance(asked, dict) else 1
    training = values.get("training")
    rounds = training.get("rounds") if isinstance(training, dict) else None
    return rounds * requests if isinstance(rounds, int) and isinstance(requests, int) else None


class Grid(Trials):
    """The trials of all papers, expanded; raises `UserError` if they cannot be planned."""

    def __init__(self, resolved: Resolved) -> None:
        """Expand the artefacts of the papers, with the preset's replacements of data sets."""
        super().__init__(resolved.where)
        self.preset, self.stated, self.to_check = resolved.preset, resolved.grids, resolved.claims
        self.claimed = resolved.claimed
        for name, paper in resolved.papers.items():
            self._check(name, paper)

    def _check(self, name: str, paper: Paper) -> None:
        for key, training in paper.trainings.items():
            catalogue.check("training", training.plugin, f"{self.where[name]}: trainings.{key}")
        labels: dict[str, str] = {}
        for key, method in paper.methods.items():
            where = f"{self.where[name]}: methods.{key}"
            if (other := labels.setdefault(method.label, key)) != key:
                raise UserError(
                    f"{where}.label: {method.label!r} is already the label of {other!r}; choose another one."
                )
            if method.plugin:
                catalogue.check("methods", method.plugin, where)
            for field in ("unlearned_from", "reference", "all_left"):
                if (named := getattr(method, field)) is not None:
                    checks.check_name("method", named, paper.methods, f"{where}.{field}")
            if method.unlearned_from and paper.methods[method.unlearned_from].unlearned_from:
                raise UserError(f"{where}.unlearned_from: {method.unlearned_from!r} does no unlearning itself.")
            checks.check_name("training", method.trained_by, [ORIGINAL, *paper.trainings], f"{where}.trained_by")
        for key, stated in paper.scenarios.items():
            for group, entries in (("trainings", [*paper.trainings]), ("methods", [*paper.methods])):
                for special in getattr(stated, group):
                    if special not in entries:
                        hint = nearest(special, entries)
                        raise UserError(f"{self.where[name]}: scenarios.{key}.{group}: there is no {special!r}{hint}.")
        chosen: list[tuple[str, str]] = []
        all_shown: set[tuple[str, str]] = set()
        for artefact, entry in paper.artefacts.items():
            where = f"{self.where[name]}: artefacts.{artefact}"
            catalogue.check("artefacts", entry.kind, where)
            of = EntryChecks(self, name, entry, where)
            of.complete()
            for kind, wanted, known in (
                ("scenario", entry.scenarios, list(paper.scenarios)),
                ("training", entry.trainings, [ORIGINAL, *paper.trainings]),
                ("method", entry.methods, list(paper.methods)),
                ("training or method", entry.against, [ORIGINAL, *paper.trainings, *paper.methods]),
                ("metric", entry.metrics, list(catalogue.metrics())),
            ):
                for item in wanted:
                    checks.check_name(kind, item, known, where)
            for scenario in entry.scenarios if "artefacts" not in of.reads else ():
                for shown in entry.shown if entry.trains_only else [ORIGINAL, *entry.shown]:
                    self._expand(name, paper, scenario, shown)
                for again in entry.against if catalogue.audited(entry.kind) else ():
                    if again in paper.methods and (all_left := paper.methods[again].all_left):
                        self._expand(name, paper, scenario, all_left)
                of.evaluated(scenario)
                if catalogue.chooses(entry.kind, entry.points):
                    checks.selection(self, name, scenario, entry.shown)
                    chosen += [(scenario, shown) for shown in entry.shown]
                else:
                    all_shown |= {(f"{name}/{scenario}", shown) for shown in entry.shown}
            of.planned(paper.seeds)
        for key in sorted(self.to_check[name]):  # over rows that a preset or an override leaves out nothing is judged
            claim = paper.claims[key]
            of = EntryChecks(self, name, paper.artefacts[claim.artefact], f"{self.where[name]}: claims.{key}")
            of.claimed(claim, self.stated[name])
        for scenario, shown in dict.fromkeys(chosen):
            self._choose(name, paper, scenario, shown)
        for at in self.chosen.keys() - all_shown:
            if at[0].startswith(f"{name}/") and not self.varies_after(*at):
                for trial in self.names[at]:
                    self.trials[at[0], trial] = replace(self.trials[at[0], trial], ends_unlearned=True)

    def _expand(self, name: str, paper: Paper, scenario: str, shown: str) -> None:
        """Add the trials of a training or a method, one for every point of its grid."""
        scope, where = f"{name}/{scenario}", self.where[name]
        self.at[scope] = paper.scenarios[scenario].at
        if (scope, shown) in self.names:
            return
        if shown == ORIGINAL or shown in paper.trainings:
            self._expand_training(name, paper, scenario, shown)
            return
        entry = paper.methods[shown]
        base = paper.methods[entry.unlearned_from] if entry.unlearned_from else entry
        self._expand(name, paper, scenario, base.trained_by)
        self.names[scope, shown] = []
        for start in self.names[scope, base.trained_by]:
            trained = self.trials[scope, start]
            values = self._values(name, paper, scenario, shown, trained)
            before = {f"{STARTS_FROM}{key}": value for key, value in trained.values.items()}
            for point in self._points(values.get("grid", {}), f"{where}: methods.{shown}"):
                at, params, unlearned_by = values, dict(base.params), dict(before)
                for key, value in point.items():
                    section, _, last = key.partition(".")
                    if section == "params":
                        params[last] = value
                    else:
                        at = merge(at, {section: {last: value}})
                    if section != "recovery":
                        unlearned_by[key] = value
                trial = Trial(
                    self._settings(at, entry, f"{where}: scenario {scenario}, method {shown}"),
                    entry.model_copy(update={"plugin": base.plugin, "params": params}),
                    values={**before, **point},
                    trained=start,
                    unlearned=trial_name(entry.unlearned_from or shown, unlearned_by),
                )
                self._add(scope, shown, trial, f"{where}: methods.{shown}")
                self.trials.setdefault((scope, trial.unlearned), replace(trial, ends_unlearned=True))

    def _expand_training(self, name: str, paper: Paper, scenario: str, shown: str) -> None:
        scope, where = f"{name}/{scenario}", self.where[name]
        values, special = inherited(where, paper, scenario)
        given: dict[str, Any] = {}
        if shown != ORIGINAL:
            entry = paper.trainings[shown]
            stated = {"params": entry.params, "settings": entry.settings, "grid": entry.grid}
            given = merge(stated, special.get(shown, {}))
            for part, known in ((given, stated), (given["settings"], ("training",))):
                foreign = [key for key in part if key not in known]
                if foreign:
                    raise UserError(
                        f"{where}: trainings.{shown}: {foreign[0]!r} cannot be set here; allowed: {', '.join(known)}."
                    )
            method = {"method": {"name": entry.plugin, "params": given["params"]}}
            values = merge(merge(values, given["settings"]), {"training": method})
        self.names[scope, shown] = []
        place = f"{where}: scenario {scenario}" + ("" if shown == ORIGINAL else f", training {shown}")
        for point in self._points(given.get("grid", {}), f"{where}: trainings.{shown}"):
            at = values
            for key, value in point.items():
                section, _, last = key.partition(".")
                if section not in ("training", "params"):
                    raise UserError(
                        f"{where}: trainings.{shown}: grid: {key!r} is no training setting; allowed: training.x, "
                        "params.x."
                    )
                inside = {last: value} if section == "training" else {"method": {"params": {last: value}}}
                at = merge(at, {"training": inside})
            trial = Trial(self._settings(at, None, place), values=point, trained=trial_name(shown, point))
            self._add(scope, shown, trial, f"{where}: trainings.{shown}")
        for base in line_of(where, paper, scenario)[1:]:  # whose name shared models have, also where nothing shows it
            with contextlib.suppress(UserError):  # a base may lack what only scenarios that build on it have
                self._expand(name, paper, base, shown)

    def varies_after(self, scope: str, shown: str) -> bool:
        """Whether the points of a grid may differ in post-training alone, so that all are post-trained to choose one.

        They may where its rate is in the grid, and where nobody trains while unlearning, so that all points tie.
        """
        trials = self.of(scope, shown)
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
        by, points = (scope, shown), {trial: trial for trial in names}
        base = paper.methods[shown].unlearned_from if shown in paper.methods else None
        if base and not self.varies_after(scope, shown):
            self._expand(name, paper, scenario, base)
            base_points = {self.trials[scope, point].unlearned: point for point in self.names[scope, base]}
            points_of = {trial.unlearned: point for point, trial in trials.items()}
            if base_points.keys() == points_of.keys() and len(base_points) == len(self.names[scope, base]):
                self._choose(name, paper, scenario, base)
                by, points = (scope, base), {base_points[unlearned]: point for unlearned, point in points_of.items()}
        self.chosen[scope, shown] = f"{shown}{CHOSEN}"
        begins = [{trial.trained for trial in trials.values()}, {trial.unlearned for trial in trials.values()}]
        trained, unlearned = (name if not others else f"{by[1]}{CHOSEN}" for name, *others in begins)
        self.trials[scope, f"{shown}{CHOSEN}"] = replace(
            trials[names[0]],
            values={},
            trained=trained,
            unlearned=unlearned,
            ends_unlearned=False,
            points=points,
            selection=by,
        )

    def _points(self, grid: Any, where: str) -> list[dict[str, Any]]:
        """Return every combination of a grid's values."""
        if not isinstance(grid, dict) or not all(isinstance(several, list) for several in grid.values()):
            return [{}]  # validation reports it
        given = {key: several for key, several in grid.items() if several}
        if math.prod(map(len, given.values())) > POINTS:
            raise UserError(f"{where}: grid: has more than {POINTS} points; list fewer values.")
        return [dict(zip(given, chosen, strict=True)) for chosen in product(*given.values())]

    def _add(self, scope: str, shown: str, trial: Trial, where: str) -> None:
        name = trial_name(shown, trial.values)
        if name in self.names[scope, shown] or not NAME.fullmatch(name):
            raise UserError(
                f"{where}: grid: {name!r} becomes a file name; values must differ "
                "within six digits and be numbers or short words of letters, digits, dots, dashes and underscores."
            )
        self.trials[scope, name] = trial
        self.names[scope, shown].append(name)

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
        settings = merge(entry.settings, special.get(method, {}))
        foreign = [key for key in settings if key not in OWN_SETTINGS]
        if foreign:
            raise UserError(
                f"{where}: methods.{method}.settings: {foreign[0]!r} is shared by all methods; "
                f"a method may set {', '.join(OWN_SETTINGS)}."
            )
        if entry.unlearned_from:
            base = paper.methods[entry.unlearned_from]
            if "unlearning" in special.get(method, {}) or "own" in (entry.post_training, base.post_training):
                raise UserError(
                    f"{where}: scenarios.{scenario}: a method that starts from {entry.unlearned_from!r} must have its "
                    "unlearning settings; only recovery, total_rounds and the recovery grid may differ."
                )
            for layer in (base.settings, special.get(entry.unlearned_from, {})):
                values = merge(values, layer)
        grid = merge(values.get("grid", {}), settings.get("grid", {}))
        for key in (key for key, several in grid.items() if several) if isinstance(grid, dict) else ():
            section, _, last = key.partition(".")
            if section == "training":
                raise UserError(
                    f"{where}: scenario {scenario}, method {method}: grid: {key!r} is a training's; "
                    "allowed: unlearning.x, recovery.x, params.x."
                )
            if isinstance(settings.get(section), dict) and settings[section].get(last) is not None:
                raise UserError(
                    f"{where}: methods.{method}.settings: {key} is set, but its grid {grid[key]} would "
                    f"replace it; write grid: {{{key}: [{settings[section][last]}]}} instead."
                )
        if (
            entry.post_training == "own"
            and isinstance(settings.get("unlearning"), dict)
            and "rounds" in settings["unlearning"]
        ):
            raise UserError(
                f"{where}: methods.{method}.settings: unlearning.rounds: with post_training: own, the method "
                "runs for total_rounds; set that instead."
            )
        return merge(values, settings)

    def _replaced(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return settings with the data set that the preset has in the place of the paper's."""
        dataset = values.get("data", {}).get("dataset") if isinstance(values.get("data"), dict) else None
        if isinstance(dataset, str) and dataset in self.preset.replace_datasets:
            values = merge(values, {"data": {"dataset": self.preset.replace_datasets[dataset]}})
        return values

    def _settings(self, values: dict[str, Any], entry: Method | None, where: str) -> Settings:
        """Return the complete, validated settings of a method or a training."""
        values = completed(self._replaced(values), entry.post_training if entry else "after")
        settings = validate(Settings, values, where)
        catalogue.check("models", settings.model.name, where)
        catalogue.check("training", settings.training.method.name, where)
        for kind in settings.training.history:
            catalogue.check("histories", kind, f"{where}: training.history")
            if catalogue.declared("histories", kind).get("ATTACK") and not settings.data.attack:
                raise UserError(
                    f"{where}: training.history: {kind} needs data.attack, which determines the forgotten clients."
                )
        phases = [phase for phase in PHASES if getattr(settings, phase)]
        traced = {one: phase for phase in phases for one in getattr(settings, phase).traced}
        for evaluator in (*chain.from_iterable(settings.evaluations.values()), *traced):
            catalogue.check("evaluation", evaluator, where)
        for evaluator, phase in traced.items():
            if not catalogue.traces(evaluator):
                able = [name for name in catalogue.available("evaluation") if catalogue.traces(name)]
                raise UserError(f"{where}: {phase}.traced: {evaluator!r} defines no trace; allowed: {', '.join(able)}.")
        if catalogue.declared("training", settings.training.method.name).get("SERVER") and not settings.data.server:
            raise UserError(f"{where}: {settings.training.method.name} trains on the server's data; set data.server.")
        checks.training(settings, where)
        checks.statistics(settings, entry, where)
        if entry is None:
            return settings
        if settings.unlearning is None or (
            settings.recovery is None and settings.total_rounds != settings.unlearning.rounds
        ):
            raise UserError(f"{where}: settings.recovery is missing, but total_rounds leaves rounds after unlearning.")
        checks.request(settings, entry, where)
        if settings.recovery and settings.recovery.projection:
            catalogue.check("projections", settings.recovery.projection.name, where)
        return settings

    def planned_params(self) -> Iterator[Planned]:
        """Yield every plug-in with its hyper-parameters; evaluators and histories have none."""
        for (scenario, name), trial in self.trials.items():
            settings, where = trial.settings, self.where[scenario.partition("/")[0]]
            entry, history = name.partition("+")[0], tuple(settings.training.history)
            phases = [phase for name in PHASES if (phase := getattr(settings, name))]
            measuring = [*settings.evaluations.values(), *(phase.traced for phase in phases)]
            for evaluator in {one for several in measuring for one in several}:
                yield Planned("evaluation", evaluator, "{}", where)
            for kind in history:
                yield Planned("histories", kind, "{}", where)
            used = [("models", settings.model.name, settings.model.params, "model")]
            if trial.method:
                used.append(("methods", str(trial.method.plugin), trial.method.params, f"method {entry}"))
            else:
                place = "training.method" if entry == ORIGINAL else f"training {entry}"
                used.append(("training", settings.training.method.name, settings.training.method.params, place))
            if settings.recovery and (projection := settings.recovery.projection):
                used.append(("projections", projection.name, projection.params, "recovery.projection"))
            for kind, plugin, params, place in used:
                yield Planned(kind, plugin, json.dumps(params, sort_keys=True), f"{where}: {place}", history)
