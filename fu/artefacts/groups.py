"""Panels and lines of a figure: what coordinates of scenarios and settings of grids tell apart."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from fu.artefacts.drawing import number, setting_name
from fu.artefacts.entry import Entry, Method, Scenario, Trial
from fu.artefacts.words import in_a_row
from fu.errors import UserError

Value = float | int | str | None
Values = tuple[Value, ...]
KEYS = ["scenario", "method", "trial"]  # what tells the rows of a spot


class Spot(NamedTuple):
    """A trial that is shown, in which panel, on which line, and where on the axis (None: at no place of its own)."""

    panel: str
    line: str
    x: Value
    scenario: str
    method: str
    trial: Trial


class Groups(NamedTuple):
    """Panels in place of scenarios, lines in place of methods, and what is shown in them."""

    panels: tuple[Scenario, ...]
    lines: tuple[Method, ...]
    spots: tuple[Spot, ...]


def grouped(entry: Entry) -> bool:
    """Whether coordinates of scenarios or settings of grids make panels and lines; else scenarios and methods do."""
    return bool(entry.lines or entry.panels or any(entry.x in scenario.at for scenario in entry.scenarios))


def group(entry: Entry) -> Groups:
    """Return a panel for each value of `entry.panels`, and in it a line for each method and value of `entry.lines`.

    What lacks a value stands in all panels. A training in `entry.against` is one line where its model is the same for
    all lines. Where neither panels, lines nor a coordinate are named, panels are the scenarios, lines the methods.
    """
    shown = [
        (method, scenario, trial)
        for method in entry.methods
        for scenario in entry.scenarios
        for trial in entry.trials(scenario.name, method)
    ]
    if not grouped(entry):
        spots = [
            Spot(scenario.name, method.name, trial.values.get(str(entry.x)), scenario.name, method.name, trial)
            for scenario in entry.scenarios
            for method, s, trial in shown
            if s is scenario
        ]
        return Groups(entry.scenarios, entry.methods, tuple(spots))
    keys = [
        _values(entry, entry.panels, scenario, t) for scenario in entry.scenarios for _, s, t in shown if s is scenario
    ]
    panels = {key: _panel(entry, key) for key in keys if None not in key}
    once = {method.name for method in entry.methods if method.name in entry.against and _same(entry, method)}
    found: dict[tuple[str, str, Value], Spot] = {}
    lines: dict[str, Method] = {}
    for method, scenario, trial in shown:
        line = _line(entry, method, () if method.name in once else _values(entry, entry.lines, scenario, trial))
        own = _values(entry, entry.panels, scenario, trial)
        x = entry.at(entry.x, scenario.name, trial) if entry.x else None
        for key, panel in panels.items():
            if all(value in (None, there) for value, there in zip(own, key, strict=True)):
                spot = Spot(panel.name, line.name, x, scenario.name, method.name, trial)
                if found.setdefault(spot[:3], spot) is not spot and method.name not in once:
                    raise UserError(
                        f"{entry.artefact}: {spot.trial.name} of {spot.scenario} and {found[spot[:3]].trial.name} of "
                        f"{found[spot[:3]].scenario} would coincide; separate them by lines or panels."
                    )
                lines.setdefault(line.name, line)
    trials = {
        name: {
            panel.name: tuple(s.trial for s in found.values() if s[:2] == (panel.name, name))
            for panel in panels.values()
        }
        for name in lines
    }
    return Groups(
        tuple(panels.values()),
        tuple(line.model_copy(update={"trials": trials[name]}) for name, line in lines.items()),
        tuple(found.values()),
    )


def regrouped(entry: Entry, groups: Groups) -> Entry:
    """Return the entry with its panels as scenarios and its lines as methods, each with one trial in a panel."""
    for panel in groups.panels:
        shown = [entry.scenario(spot.scenario) for spot in groups.spots if spot.panel == panel.name]
        if len({(scenario.rounds, scenario.requests) for scenario in shown}) > 1:
            raise UserError(
                f"{entry.artefact}: {panel.label} has scenarios with different rounds; separate them by panels."
            )
    return entry.model_copy(update={"scenarios": groups.panels, "methods": groups.lines, "chosen": {}})


def of_spots(frame: pd.DataFrame, groups: Groups) -> pd.DataFrame:
    """Return the rows of what is shown, with panel, line and x; those that several panels show stand in each."""
    about = [
        {
            **dict(zip(KEYS, (s.scenario, s.method, s.trial.name), strict=True)),
            "panel": s.panel,
            "line": s.line,
            "x": s.x,
        }
        for s in groups.spots
    ]
    return frame.merge(pd.DataFrame(about, columns=[*KEYS, "panel", "line", "x"]).astype({"x": object}), on=KEYS)


def choices(entry: Entry, groups: Groups) -> list[str]:
    """Return which points of the trainings' grids were chosen, for which panels and lines, and how."""
    several = {
        m.name: [name for name, trials in m.trials.items() if len(trials) > 1] for m in entry.methods if m.trains
    }
    labels = {line.name: line.label for line in groups.lines}
    said: dict[str, list[str]] = {}
    for panel in groups.panels:
        points: dict[str, list[str]] = {}
        for spot in groups.spots:
            if entry.chooses and spot.panel == panel.name and spot.scenario in several.get(spot.method, ()):
                where = (
                    "" if spot.x is None or entry.x is None else f", {short_name(entry, entry.x)} = {number(spot.x)}"
                )
                point = ", ".join(f"{setting_name(key)} {number(value)}" for key, value in spot.trial.values.items())
                points.setdefault(point, []).append(f"{labels[spot.line]}{where}")
        if points:
            text = "; ".join(f"{point} ({'; '.join(whose)})" for point, whose in points.items())
            said.setdefault(text, []).append(panel.label)
    found = [
        f"Chosen for {'all panels' if 1 < len(where) == len(groups.panels) else in_a_row(where)}: {text}."
        for text, where in said.items()
    ]
    return [*found, *([f"How it is chosen: {entry.rule}."] if found and entry.rule else [])]


def axis_name(entry: Entry, name: str) -> str:
    """Return what people call a coordinate or a setting of a grid, in full."""
    return entry.names.get(name, setting_name(name))


def short_name(entry: Entry, name: str) -> str:
    """Return the short name of a coordinate, or the name of a setting."""
    return name if name in entry.names else setting_name(name)


def _values(entry: Entry, names: Iterable[str], scenario: Scenario, trial: Trial) -> Values:
    return tuple(entry.at(name, scenario.name, trial) for name in names)


def _panel(entry: Entry, key: Values) -> Scenario:
    """Return a panel in place of the scenarios that have these values, as far as they have any."""
    named = dict(zip(entry.panels, key, strict=True))
    own = [s for s in entry.scenarios if all(s.at.get(name, value) == value for name, value in named.items())]
    label = "; ".join(f"{axis_name(entry, name)} = {number(value)}" for name, value in named.items())
    used = ", ".join(dict.fromkeys(scenario.data for scenario in own if scenario.replaces))
    replaces = next((scenario.replaces for scenario in own if scenario.replaces), None)
    name = "-".join(f"{short.rpartition('.')[2]}{number(value)}" for short, value in named.items()) or own[0].dataset
    if len(own) == 1 and (not label or not named.keys() & entry.names.keys()):
        label = own[0].label
    else:
        label = label or ", ".join(dict.fromkeys(scenario.replaces or scenario.data for scenario in own))
        label += f" [on {used}]" if used else ""
    return own[0].model_copy(update={"name": name, "label": label, "replaces": replaces})


def _line(entry: Entry, method: Method, key: Values) -> Method:
    """Return a line in place of a method: its variant with these values, as far as it has any."""
    named = {name: value for name, value in zip(entry.lines, key, strict=False) if value is not None}
    name = ".".join([method.name, *(f"{short.rpartition('.')[2]}{number(value)}" for short, value in named.items())])
    label = ", ".join(
        [method.label, *(f"{short_name(entry, short)} = {number(value)}" for short, value in named.items())]
    )
    return method.model_copy(update={"name": name, "label": label})


def _same(entry: Entry, method: Method) -> bool:
    """Whether a training has one model wherever panel and place on the axis are the same."""
    found: dict[Values, set[str]] = {}
    for scenario in entry.scenarios:
        for trial in entry.trials(scenario.name, method):
            at = _values(entry, [*entry.panels, *([entry.x] if entry.x else [])], scenario, trial)
            found.setdefault(at, set()).add(trial.trained)
    return all(len(models) == 1 for models in found.values())
