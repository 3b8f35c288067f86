"""Checks, before the first job, that everything a table or figure shows exists."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, get_args

from fu import plugins
from fu.artefacts.entry import FORGET_SET, ORIGINAL, Claim, Role
from fu.claims.rows import Operand, ends
from fu.data.dataset import about
from fu.errors import UserError, nearest
from fu.pipeline.plan.specs import RELEARNED, Trial, Trials
from fu.pipeline.provenance import cached, catalogue
from fu.pipeline.settings.records import INHERITED, Artefact, Method, Settings
from fu.plugins import Choice

MEASURED = ("evaluate_every", "evaluate_last", "traced")  # of what a phase inherits, what does not change its draws
NEEDS = {
    **dict.fromkeys(("asr", "asr_held_out", "asr_validation"), "data.attack"),
    "conflicts": "unlearning.conflicts",
}


def shown(entry: Artefact, where: str) -> None:
    """Raise `UserError` where an entry lacks what its kind needs."""
    reads = catalogue.reads(entry.kind)
    if reads and "artefacts" not in reads and not entry.scenarios:
        raise UserError(f"{where}: kind {entry.kind} needs scenarios; name at least one.")
    if catalogue.measured(entry.kind) and not (entry.shown and entry.metrics):
        raise UserError(
            f"{where}: kind {entry.kind} needs methods (or trainings) and metrics; name at least one of each."
        )
    declared = catalogue.declared("artefacts", entry.kind)
    traced = list(declared.get("COUNTS") or [*catalogue.traced(), *catalogue.COUNTS])
    curves = "traces" in reads and not catalogue.audited(entry.kind)
    untraced = [metric for metric in entry.metrics if curves and metric not in traced]
    if untraced:
        what = "cannot be summed over rounds" if "COUNTS" in declared else "is not measured per round"
        raise UserError(f"{where}: {untraced[0]!r} {what}; allowed: {', '.join(traced)}.")
    marks = declared.get("MARKS", {})
    if entry.marks and entry.marks not in marks:
        raise UserError(f"{where}: marks: kind {entry.kind} has no {entry.marks!r}{nearest(entry.marks, marks)}.")
    if entry.highlight and not catalogue.drawn(entry.kind, entry.marks):
        raise UserError(f"{where}: highlight: kind {entry.kind} shows a table; a highlight is a figure.")
    for field in declared.get("NEEDS", ()):
        if not getattr(entry, field):
            raise UserError(f"{where}: kind {entry.kind} needs {field}.")
    if entry.judges and "artefacts" not in reads:
        raise UserError(f"{where}: judges: not allowed for kind {entry.kind}, only for kind verdicts.")


def drawn(grid: Trials, name: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` where what is to be shown does not exist: metrics, a role, a point for each trial."""
    declared = catalogue.declared("artefacts", entry.kind)
    trials = {
        (scenario, method): [grid.trials[f"{name}/{scenario}", trial] for trial in points]
        for scenario, method in product(entry.scenarios, entry.shown)
        for points in [grid.names[f"{name}/{scenario}", method]]
    }
    needs = [NEEDS.get(metric, "data") for metric in entry.metrics]
    if not any(_get(trial.settings, need) for points in trials.values() for trial in points for need in needs):
        raise UserError(f"{where}: no scenario has the metric {entry.metrics[0]!r}; it needs settings.{needs[0]}.")
    for (scenario, method), points in trials.items() if "traces" in catalogue.reads(entry.kind) else ():
        phase = "training" if method in entry.trainings else "unlearning"
        counted = declared.get("COUNTS") or catalogue.COUNTS
        for trial in points:
            measured = [*counted, *catalogue.traced(_get(trial.settings, f"{phase}.traced"))]
            lacking = [metric for metric in entry.metrics if metric not in measured]
            lacking += [one for one in declared.get("TRACED", ()) if one not in _get(trial.settings, f"{phase}.traced")]
            if lacking:
                raise UserError(
                    f"{where}: kind {entry.kind} needs {lacking[0]!r} of {scenario!r}: "
                    f"add its evaluator to settings.{phase}.traced."
                )
    able = declared.get("MARKS", {}).get(entry.marks, get_args(Role))
    roles = [role for role in entry.stages if role in able]
    read = "evaluations" in catalogue.reads(entry.kind) and catalogue.chooses(entry.kind, entry.points)
    for scenario in entry.scenarios if read and entry.methods else ():
        recovers = any(trial.recovers for method in entry.methods for trial in trials[scenario, method])
        lacking = [role for role in roles if role == "recovered" and not recovers]
        if lacking == roles or (lacking and entry.marks):
            what = entry.marks or f"kind {entry.kind}"
            raise UserError(
                f"{where}: stages: {what} has no {(lacking or entry.stages)[0]!r} model for {scenario!r}; allowed: "
                f"{', '.join(role for role in able if role != 'recovered' or recovers)}."
            )
    if declared.get("OPTIMA"):
        optima(grid, name, entry, where)
    if declared.get("RETRAINS") and not any(retrains(points[0]) for points in trials.values()):
        raise UserError(f"{where}: methods: kind {entry.kind} needs one that retrains from scratch.")
    if "REPEATS" in declared:
        repeats(entry, trials, declared["REPEATS"], where)
    coordinates(grid, name, entry, trials, where)
    axes = [*filter(None, [entry.x]), *entry.lines, *entry.panels]
    for (scenario, method), points in trials.items() if entry.points == "all" and not declared.get("POINTS") else ():
        at = grid.at[f"{name}/{scenario}"]
        if len({tuple(at.get(key, trial.values.get(key)) for key in axes) for trial in points}) < len(points):
            raise UserError(
                f"{where}: points of {method!r} in {scenario!r} cannot be told apart; put every setting "
                "that its grid varies in x, lines or panels."
            )


def claimed(
    grid: Trials, name: str, claim: Claim, entry: Artefact, stated: Mapping[str, Sequence[Any]], where: str
) -> None:
    """Raise `UserError` unless an artefact has the rows that a claim reads; a preset may leave out values of a grid.

    `stated`: the values that the paper itself gives the settings of its grids.
    """
    catalogue.check("claims", claim.kind, where)
    p = plugins.params("claims", Choice(name=claim.kind, params=claim.params), where)
    made = catalogue.declared("artefacts", entry.kind).get("BY_SEED", ())
    reads = catalogue.reads(entry.kind)
    if not {"evaluations", "traces"}.intersection(reads) and not made:
        raise UserError(f"{where}: kind {entry.kind} has no per-seed rows; choose another table or figure.")
    if catalogue.declared("claims", claim.kind).get("INTERVAL") and not catalogue.audited(entry.kind):
        raise UserError(f"{where}: kind {claim.kind} judges audit results, but {claim.artefact} has none.")
    metrics = [one for one in entry.metrics if catalogue.metrics()[one].per == "model"] + [*made]
    along, all_points = getattr(p, "along", None), not catalogue.chooses(entry.kind, entry.points)
    for one in plugins.load("claims", claim.kind).operands(p):
        for what, value, known in (
            ("method", one.method, [ORIGINAL, *entry.shown]),
            ("metric", one.metric, metrics),
        ):
            if value not in known:
                raise UserError(f"{where}: {claim.artefact} has no {what} {value!r}{nearest(value, known)}.")
        coordinates = {key for scenario in claim.scenarios for key in grid.at[f"{name}/{scenario}"]}
        for key in (*one.at, *filter(None, [along])) if claim.scenarios else ():  # a preset may leave out all
            known = sorted({*coordinates, *(stated if all_points else ())})
            if key not in known:
                raise UserError(f"{where}: rows of {claim.artefact} have no {key!r}{nearest(key, known)}.")
        for scenario in claim.scenarios if one.method != ORIGINAL else ():
            trials = grid.of(f"{name}/{scenario}", one.method)
            _staged(one, trials, f"{where}: {claim.artefact}")
            if all_points:
                _pointed(one, trials, stated, along, f"{where}: {claim.artefact}")


def _staged(one: Operand, trials: Sequence[Trial], where: str) -> None:
    """Raise `UserError` where a claim names a stage that a training or a method does not have."""
    stages = [ORIGINAL] if trials[0].method is None else ["unlearned"] + ["recovered"] * trials[0].recovers
    if one.stage not in (None, *stages):
        raise UserError(f"{where}: {one.method!r} has no stage {one.stage!r}; allowed: {', '.join(stages)}.")


def _pointed(
    one: Operand, trials: Sequence[Trial], stated: Mapping[str, Sequence[Any]], along: str | None, where: str
) -> None:
    """Raise `UserError` where a claim names no point of a grid, or several."""
    wanted = {key: value for key, value in one.at.items() if key in stated}
    for key, value in wanted.items():
        known = [*dict.fromkeys([*stated[key], *(trial.values.get(key) for trial in trials)])]
        if value not in known:
            raise UserError(
                f"{where}: {one.method!r} has no point {key} = {value}; allowed: {', '.join(map(str, known))}."
            )
    matching = [trial for trial in trials if all(trial.values.get(key) == value for key, value in wanted.items())]
    if len(matching) > (len({trial.values.get(str(along)) for trial in matching}) if along in stated else 1):
        varied = sorted({key for trial in matching for key in trial.values} - {*wanted, along})
        raise UserError(f"{where}: {one.method!r} has {len(matching)} points; select one with at: {', '.join(varied)}.")


def optima(grid: Trials, name: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` unless models are compared with an optimum of all clients and one of the retained clients.

    Each must have trained for as many rounds as any model that is shown.
    """
    for scenario in entry.scenarios:
        of = {one: grid.of(f"{name}/{scenario}", one) for one in entry.shown}
        again = [one for one in entry.against if retrains(of[one][0])]
        trains = [one for one in entry.against if of[one][0].method is None]
        if [len(trains), len(again), len(entry.against)] != [1, 1, 2]:
            raise UserError(
                f"{where}: against: kind {entry.kind} needs a training of all clients and a method that retrains "
                f"without the forgotten clients, got {', '.join(entry.against) or 'nothing'}."
            )
        rounds = {one: max(map(_trained, trials)) for one, trials in of.items()}
        others = [one for one in entry.shown if one not in entry.against]
        short = [(one, other) for one in entry.against for other in others if rounds[one] < rounds[other]]
        if short:
            one, other = short[0]
            raise UserError(
                f"{where}: against: {one!r} has {rounds[one]} rounds in {scenario!r}, fewer than {other!r} with "
                f"{rounds[other]}; an optimum needs at least as many."
            )


def repeats(entry: Artefact, trials: Mapping[tuple[str, str], list[Trial]], least: int, where: str) -> None:
    """Raise `UserError` unless so many or more repeats are named of every training's retraining, and nothing else."""
    others = [one for (_, one), points in trials.items() if one in entry.against and not retrains(points[0])]
    if others:
        raise UserError(f"{where}: against: {others[0]!r} is not a retraining; kind {entry.kind} needs repeats of one.")
    for (scenario, one), [first, *_] in trials.items():
        started = first.trained.partition("+")[0]
        again = [other for other in entry.against if trials[scenario, other][0].trained.partition("+")[0] == started]
        if len(again) < least:
            raise UserError(
                f"{where}: against: kind {entry.kind} needs at least {least} repeats of retraining by {started!r}, "
                f"which {one!r} starts from, got {len(again)}."
            )
        if one not in entry.against:
            continue
        same = [other for other in again if _params(trials[scenario, other][0]) == _params(first)]
        if len(same) > 1:
            raise UserError(
                f"{where}: against: {' and '.join(same[:2])} are identical; give each its own params.repeat."
            )
        rounds, wanted = _trained(first), first.settings.training.rounds
        if rounds < wanted:
            raise UserError(
                f"{where}: against: {one!r} has {rounds} rounds in {scenario!r}, fewer than the {wanted} of the "
                "original model, which it replaces."
            )


def retrains(trial: Trial) -> bool:
    """Return whether a trial is retraining without anything of the forgotten clients."""
    plugin = trial.method.plugin if trial.method else None
    declared = catalogue.declared("methods", plugin) if plugin else {}
    return bool(declared.get("RETRAINS")) and not {"LEFT", "CONTROL"} & declared.keys()


def _left(trial: Trial) -> Any:
    """Return how much of the forgotten clients a control has left; None: it is none."""
    plugin = trial.method.plugin if trial.method else None
    return _params(trial).get(catalogue.declared("methods", plugin).get("LEFT", "")) if plugin else None


def _reads_tests(trial: Trial) -> str:
    """Return the hyper-parameter with which a method reads test samples, as "variant: as-published"; "" if it does not.

    By default no method does (tests/contract).
    """
    plugin = trial.method.plugin if trial.method else None
    key, value = (catalogue.declared("methods", plugin) if plugin else {}).get("TESTS", ("", ""))
    return f"{key}: {value}" if key and _params(trial).get(key) == value else ""


def _params(trial: Trial) -> Mapping[str, Any]:
    return trial.method.params if trial.method else {}


def _trained(trial: Trial) -> int:
    """Return for how many rounds the model of a trial was trained in all."""
    after = trial.settings.total_rounds or 0
    if trial.method is None:
        return trial.settings.training.rounds
    return after if retrains(trial) else trial.settings.training.rounds + after


def coordinates(
    grid: Trials, name: str, entry: Artefact, trials: Mapping[tuple[str, str], list[Trial]], where: str
) -> None:
    """Raise `UserError` where an axis, line or panel is no coordinate of the scenarios and no setting of a grid."""
    shown = [method for method in entry.shown if method not in entry.against]
    for field, wanted in (("x", [entry.x] if entry.x else []), ("lines", entry.lines), ("panels", entry.panels)):
        for key in wanted:
            for scenario in entry.scenarios:
                at = grid.at[f"{name}/{scenario}"]
                grids = {value for method in shown for trial in trials[scenario, method] for value in trial.values}
                if key not in at and key not in grids:
                    known = [*at, *sorted(grids)]
                    raise UserError(
                        f"{where}: {field}: {key!r} is neither a coordinate of {scenario!r} nor in a grid"
                        f"{nearest(key, known) if known else ''}."
                    )


def sampled(grid: Trials, name: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` where scenarios of which nothing is trained lack what their sampling or their place needs."""
    for scenario in entry.scenarios:
        training = grid.trials[f"{name}/{scenario}", ORIGINAL].settings.training
        if training.clients_per_round is None or training.local_steps is None:
            raise UserError(
                f"{where}: kind {entry.kind} needs settings.training.clients_per_round and local_steps of {scenario!r}."
            )
    placed(grid, name, entry, where)


def placed(grid: Trials, name: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` where the axis is no coordinate of every scenario, or a line or panel of none."""
    places = [grid.at[f"{name}/{scenario}"] for scenario in entry.scenarios]
    for field, wanted in (("x", [entry.x] if entry.x else []), ("lines", entry.lines), ("panels", entry.panels)):
        for key in wanted:
            known_by = [key in at for at in places]
            if not (all(known_by) if field == "x" else any(known_by)):
                of = f"{entry.scenarios[known_by.index(False)]!r}" if field == "x" else "any scenario"
                known = sorted({short for at in places for short in at})
                raise UserError(
                    f"{where}: {field}: {key!r} is not a coordinate of {of}{nearest(key, known) if known else ''}."
                )


def evaluated(grid: Trials, name: str, scenario: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` where no evaluation of a scenario has a metric that is to be shown."""
    if "evaluations" not in catalogue.reads(entry.kind):
        return
    place = f"{name}/{scenario}"
    first = next((trial for shown in entry.shown for trial in grid.names[place, shown]), None)
    if first is None:  # a preset may leave all of them out of a scenario
        return
    settings = grid.trials[place, first].settings
    evaluations = settings.evaluations
    for metric in entry.metrics:
        if not evaluations_with([metric], evaluations):
            raise UserError(f"{where}: no evaluation of {scenario!r} has the metric {metric!r}; add its evaluator.")
        if catalogue.metrics()[metric].per == "client":
            of_clients(entry.kind, metric, settings, where)


def audited(grid: Trials, name: str, entry: Artefact, seeds: Sequence[int], where: str) -> None:
    """Raise `UserError` unless all seeds of every scenario are repeats, enough for every audit, of models that forget.

    Each training that a method starts from needs its own retraining in `against`.
    """
    home = {
        metric.name: audit
        for audit in catalogue.available("audits")
        for metric in catalogue.metrics_of(audit, "audits")
    }
    for metric in entry.metrics:
        if metric not in home:
            raise UserError(f"{where}: no audit has the metric {metric!r}{nearest(metric, home)}.")
        if len(seeds) < (least := catalogue.declared("audits", home[metric])["LEAST"]):
            raise UserError(
                f"{where}: {metric!r} needs at least {least} repeats, got {len(seeds)} seed{'s' * (len(seeds) != 1)}; "
                "use more seeds, or leave this paper out (PAPERS=..., or papers in config.yaml)."
            )
    declared = catalogue.declared("artefacts", entry.kind)
    if declared.get("FIRSTS"):
        lacking = [end for end in ends(entry.metrics[0]) if end not in entry.metrics]
        if lacking:
            raise UserError(
                f"{where}: metrics: kind {entry.kind} needs {lacking[0]!r} as well as {entry.metrics[0]!r}."
            )
    if declared.get("SCORES"):
        scores = {catalogue.declared("audits", audit)["SCORE"] for audit in home.values()}
        if wrong := next((one for one in entry.metrics if one not in scores), None):
            raise UserError(
                f"{where}: metrics: kind {entry.kind} needs an audit's score, and {wrong!r} is none; allowed: "
                f"{', '.join(sorted(scores))}."
            )
    if declared.get("DIFFERENCES"):
        differences = [one for one in home if {*ends(one), f"{one}_worse", f"{one}_p"} <= {*home}]
        if wrong := next((one for one in entry.metrics if one not in differences), None):
            raise UserError(
                f"{where}: metrics: kind {entry.kind} needs differences that have an interval and a p-value, and "
                f"{wrong!r} is none; allowed: {', '.join(sorted(differences))}."
            )
    placed(grid, name, entry, where)
    pictures = "exposed" in catalogue.reads(entry.kind)
    if pictures:
        pictured(entry, home, where)
    for scenario in entry.scenarios:
        repeated(grid, name, scenario, entry, where)
        data = grid.trials[f"{name}/{scenario}", ORIGINAL].settings.data
        if pictures and about(data.dataset).text:
            raise UserError(f"{where}: kind {entry.kind} needs images, but {data.dataset} of {scenario!r} has text.")
        for one in entry.methods:
            if key := _reads_tests(grid.of(f"{name}/{scenario}", one)[0]):
                raise UserError(
                    f"{where}: methods: {one!r} reads test samples ({key}), which audits probe; leave it out."
                )
        left = [_left(grid.of(f"{name}/{scenario}", one)[0]) for one in entry.methods]
        if not (pictures or {0, 1} <= {*left}):
            raise UserError(
                f"{where}: methods: kind {entry.kind} needs two controls to validate the audits: one without the "
                "forgotten client (retrain_partly with share: 0) and one with all of its data (share: 1)."
            )


def relearned(grid: Trials, name: str, entry: Artefact, seeds: Sequence[int], where: str) -> None:
    """Raise `UserError` unless models of two seeds or more can train on, and what comes back is measured."""
    known = [metric for one in RELEARNED for metric in catalogue.declared("evaluation", one)["TRACE"]]
    for metric in entry.metrics:
        if metric not in known:
            raise UserError(
                f"{where}: {metric!r} is not measured in relearning{nearest(metric, known)}; allowed: "
                f"{', '.join(known)}."
            )
    if FORGET_SET not in entry.metrics:
        raise UserError(f"{where}: metrics: kind {entry.kind} needs {FORGET_SET}.")
    for scenario in entry.scenarios:
        repeated(grid, name, scenario, entry, where)
        settings = grid.trials[f"{name}/{scenario}", ORIGINAL].settings
        data, training = settings.data, settings.relearning
        if data.forget is None or data.forget.samples:
            raise UserError(
                f"{where}: {scenario!r} needs data.forget.clients: kind {entry.kind} trains the forgotten clients."
            )
        if "asr" in entry.metrics and data.attack is None:
            raise UserError(f"{where}: asr needs data.attack, which {scenario!r} does not have.")
        if (number := len(seeds[: training.repeats])) < 2:
            raise UserError(f"{where}: kind {entry.kind} needs at least 2 repeats of {scenario!r}, got {number}.")
        _, train, held_out = data.fewest
        if training.samples >= train - held_out:
            raise UserError(
                f"{where}: relearning.samples of {scenario!r}: {training.samples} of the smallest client's at most "
                f"{train - held_out} training samples leave none to measure on; use fewer."
            )


def repeated(grid: Trials, name: str, scenario: str, entry: Artefact, where: str) -> None:
    """Raise `UserError` unless the seeds of a scenario are repeats, and `against` names each training's retraining."""
    of = {one: grid.of(f"{name}/{scenario}", one)[0] for one in entry.shown}
    data = next(iter(of.values())).settings.data
    if not data.one_partition:
        raise UserError(f"{where}: {scenario!r} needs data.one_partition: true, so that its seeds are repeats.")
    if data.forget is None or data.forget.requests > 1:
        raise UserError(f"{where}: {scenario!r} needs data.forget with one request.")
    if wrong := next((one for one in entry.against if not retrains(of[one])), None):
        raise UserError(
            f"{where}: against: {wrong!r} is not a retraining; kind {entry.kind} compares only with retrainings."
        )
    for one in entry.methods:
        if grid.reference(f"{name}/{scenario}", one, entry.against) is None:
            method, training = of[one].method, of[one].trained.partition("+")[0]
            lacking = repr(method.reference) if method and method.reference else f"retraining of {training!r}"
            raise UserError(f"{where}: against: lists no {lacking}, with which {one!r} is compared.")


def pictured(entry: Artefact, home: Mapping[str, str], where: str) -> None:
    """Raise `UserError` unless one audit that says which samples are exposed, and one method, are named.

    `home`: metric -> audit.
    """
    able = [one for one in catalogue.available("audits") if catalogue.defines("audits", one, "indices")]
    if len(used := {home[metric] for metric in entry.metrics}) != 1 or not used <= {*able}:
        allowed = ", ".join(metric for metric, audit in home.items() if audit in able)
        raise UserError(
            f"{where}: metrics: kind {entry.kind} needs a metric of one audit that ranks samples: {allowed}."
        )
    shown = [one for one in entry.methods if one not in entry.against]
    if len(shown) != 1:
        raise UserError(f"{where}: methods: kind {entry.kind} needs exactly one, got {', '.join(shown) or 'none'}.")


def of_clients(kind: str, metric: str, settings: Settings, where: str) -> None:
    """Raise `UserError` where a number that every client has cannot be shown."""
    able = [name for name in catalogue.available("artefacts") if catalogue.declared("artefacts", name).get("CLIENTS")]
    if kind not in able:
        allowed = f"; allowed: {', '.join(able)}" if able else ""
        raise UserError(f"{where}: kind {kind} cannot show {metric!r}, which has a value per client{allowed}.")
    if settings.data.test == "global":
        raise UserError(f"{where}: {metric!r} needs a test set per client; set data.test: clients.")


def fits(kind: str, chosen: Choice, settings: Settings, where: str) -> None:
    """Raise `UserError` where a method or training refuses the scenario's model."""
    facts = about(settings.data.dataset)
    cached.check_fit(kind, chosen, settings.model, facts.shape, facts.classes, where)


def training(settings: Settings, where: str) -> None:
    """Raise `UserError` where a training lacks a setting that it needs, or refuses the model."""
    phase = settings.training
    declared = catalogue.declared("training", phase.method.name)
    if phase.history and declared.get("RECORDS") is False:
        raise UserError(f"{where}: training.history: no history of {phase.method.name} can be recorded; allowed: [].")
    fits("training", phase.method, settings, where)
    for key in declared.get("NEEDS", ()):
        if not getattr(phase, key):
            needed = "true" if getattr(phase, key) is False else "a number"
            raise UserError(f"{where}: training.{key}: {phase.method.name} needs {needed}.")


def request(settings: Settings, entry: Method, where: str) -> None:
    """Raise `UserError` where a method cannot meet the request, or continues a training that has other settings.

    Nor can one that reads pixels forget text.
    """
    asked, phase, training = settings.data.forget, settings.unlearning, settings.training
    if entry.plugin is None or asked is None or phase is None:
        return
    declared = catalogue.declared("methods", entry.plugin)
    if asked.samples and not declared.get("SAMPLES"):
        able = [name for name in catalogue.available("methods") if catalogue.declared("methods", name).get("SAMPLES")]
        raise UserError(
            f"{where}: data.forget.samples: {entry.plugin} forgets only whole clients; allowed: {', '.join(able)}."
        )
    if declared.get("IMAGES") and about(settings.data.dataset).text:
        raise UserError(f"{where}: {entry.plugin} needs images, but {settings.data.dataset} has text.")
    fits("methods", Choice(name=entry.plugin, params=entry.params), settings, where)
    if declared.get("MOMENTUM") and phase.momentum:
        raise UserError(f"{where}: unlearning.momentum: {entry.plugin} has its own momentum; allowed: 0.")
    continued = declared.get("CONTINUES")
    if not continued:
        return
    if training.method.name != continued:
        raise UserError(
            f"{where}: {entry.plugin} continues training by {continued}, got {training.method.name}; set trained_by."
        )
    other = [key for key in INHERITED if key not in MEASURED and getattr(phase, key) != getattr(training, key)]
    if other:
        raise UserError(
            f"{where}: unlearning.{other[0]}: {entry.plugin} continues the training; "
            f"allowed: {getattr(training, other[0])}, as in training."
        )
    if asked.requests > 1 and not catalogue.defines("methods", entry.plugin, "again"):
        raise UserError(f"{where}: data.forget.requests: {entry.plugin} supports only one request; allowed: 1.")
    completes = catalogue.defines("methods", entry.plugin, "done")
    if completes and phase.rounds != training.rounds * asked.requests:
        raise UserError(
            f"{where}: unlearning.rounds: {entry.plugin} completes the training; "
            f"allowed: {training.rounds * asked.requests}, the rounds of training for each request."
        )


def statistics(settings: Settings, entry: Method | None, where: str) -> None:
    """Raise `UserError` where a model has running statistics, and something that is not made for them meets it."""
    model, projection = settings.model.name, settings.recovery and settings.recovery.projection
    if not catalogue.declared("models", model).get("STATISTICS"):
        return
    plugin = entry.plugin if entry else None
    for kind, name in (("training", settings.training.method.name), *([("methods", plugin)] if plugin else [])):
        able = [one for one in catalogue.available(kind) if catalogue.declared(kind, one).get("STATISTICS")]
        if name not in able:
            raise UserError(
                f"{where}: {name} does not average the running statistics (batch normalisation) of {model}; allowed: "
                f"{', '.join(able)}."
            )
    if entry and projection:
        raise UserError(
            f"{where}: recovery.projection: no projection supports the running statistics (batch normalisation) of "
            f"{model}; set it to null."
        )


def selection(grid: Trials, name: str, scenario: str, shown: Sequence[str]) -> None:
    """Raise `UserError` where the best point of a grid cannot be chosen on validation data."""
    where = f"{grid.where[name]}: scenarios.{scenario}"
    for method in shown:
        names = grid.names[f"{name}/{scenario}", method]
        if len(names) < 2:
            continue
        settings = grid.trials[f"{name}/{scenario}", names[0]].settings
        data, known = settings.data, catalogue.metrics()
        for metric in settings.chosen_by:
            if metric not in known:
                raise UserError(f"{where}: chosen_by: there is no metric {metric!r}{nearest(metric, known)}.")
            if known[metric].better == "neither":
                raise UserError(f"{where}: chosen_by: {metric!r} has no better direction, higher or lower.")
        judged = [one for one in settings.chosen_by if _get(settings, NEEDS.get(one, "data"))]
        homes = [evaluations_with([metric], settings.evaluations) for metric in judged]
        if not homes or len(homes[0]) != 1 or any(home != homes[0] for home in homes):
            raise UserError(
                f"{where}: evaluations: {method} has a grid; its best point is chosen by "
                f"{' and '.join(judged)}, so their evaluators must be in the same evaluation."
            )
        if not data.validation_share and not data.held_out:
            raise UserError(
                f"{where}: data.validation_share is 0, but {method} has a grid; "
                "its best point is chosen on validation data, so hold some samples out."
            )
        _, train, held_out = data.fewest
        if data.validation_share and not held_out:
            raise UserError(
                f"{where}: data.validation_share: {data.validation_share} holds out none of "
                f"the smallest client's training samples (at most {train}), but {method} needs some to "
                "choose the best point of its grid; hold out more or use fewer clients."
            )


def _get(settings: Settings, path: str) -> Any:
    """Return a part of the settings; None where a part above it is left out."""
    value: Any = settings
    for key in path.split("."):
        value = getattr(value, key) if value is not None else None
    return value


def evaluations_with(metrics: Iterable[str], evaluations: Mapping[str, Sequence[str]]) -> list[str]:
    """Return, in order, the evaluations with an evaluator that returns any of the metrics."""
    wanted = set(metrics)
    return [
        name
        for name, evaluators in evaluations.items()
        if any(metric.name in wanted for evaluator in evaluators for metric in catalogue.metrics_of(evaluator))
    ]
