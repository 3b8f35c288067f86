"""Checks of scenarios, trainings and methods, before the first job."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from fu.data.dataset import about
from fu.errors import UserError, nearest
from fu.pipeline.plan.specs import Trials
from fu.pipeline.provenance import cached, catalogue
from fu.pipeline.settings.records import INHERITED, Method, Settings
from fu.plugins import Choice

MEASURED = ("evaluate_every", "evaluate_last", "traced")  # of what a phase inherits, what does not change its draws
NEEDS = {
    **dict.fromkeys(("asr", "asr_held_out", "asr_validation"), "data.attack"),
    "conflicts": "unlearning.conflicts",
}


def check_name(what: str, name: str, allowed: Collection[str], where: str) -> None:
    """Raise `UserError` for an unknown name of a scenario, method, ..., with the nearest one."""
    if name not in allowed:
        raise UserError(f"{where}: there is no {what} {name!r}{nearest(name, allowed)}.")


def supporting(kind: str, constant: str) -> str:
    """Return the names of a kind's plug-ins that declare a constant, separated by commas."""
    return ", ".join(name for name in catalogue.available(kind) if catalogue.declared(kind, name).get(constant))


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
    resumes = catalogue.defines("methods", entry.plugin, "again")
    if asked.requests > 1 and not resumes and not declared.get("REQUESTS"):
        raise UserError(f"{where}: data.forget.requests: {entry.plugin} supports only one request; allowed: 1.")
    if asked.requests > 1 and not resumes and phase.lr_decay != 1:
        raise UserError(f"{where}: unlearning.lr_decay: {entry.plugin} restarts at every request; allowed: 1.")
    if asked.samples and not declared.get("SAMPLES"):
        able = supporting("methods", "SAMPLES")
        raise UserError(f"{where}: data.forget.samples: {entry.plugin} forgets only whole clients; allowed: {able}.")
    if declared.get("IMAGES") and about(settings.data.dataset).text:
        raise UserError(f"{where}: {entry.plugin} needs images, but {settings.data.dataset} has text.")
    needed, recorder = sorted(catalogue.needs(entry.plugin)), training.method.name
    if needed and catalogue.declared("training", recorder).get("RECORDS") is False:
        raise UserError(f"{where}: {entry.plugin} needs the history {needed[0]!r}, which {recorder} cannot record.")
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
        if not catalogue.declared(kind, name).get("STATISTICS"):
            raise UserError(
                f"{where}: {name} does not average the running statistics (batch normalisation) of {model}; allowed: "
                f"{supporting(kind, 'STATISTICS')}."
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
            if known[metric].per != "model":
                raise UserError(f"{where}: chosen_by: {metric!r} has a value per client; choose by one per model.")
        if (need := NEEDS.get(first := settings.chosen_by[0])) and not setting_at(settings, need):
            raise UserError(f"{where}: chosen_by: {first!r} needs {need}; put it after a metric that does not.")
        judged = [one for one in settings.chosen_by if setting_at(settings, NEEDS.get(one, "data"))]
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


def setting_at(settings: Settings, path: str) -> Any:
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
