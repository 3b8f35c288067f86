"""Metrics of models across a coordinate of scenarios or a setting of grids (as SAFARI Figures 2 and 4)."""

from collections.abc import Hashable
from math import nan
from typing import Any

import pandas as pd

from fu.artefacts import lines, notes
from fu.artefacts.drawing import ascending
from fu.artefacts.entry import Entry
from fu.artefacts.groups import Groups, Spot, axis_name, choices, group, short_name
from fu.artefacts.result import Result
from fu.artefacts.statistics import MODEL, Evaluated, Mean, Means, evaluated
from fu.artefacts.table import comparison, printed

READS = "evaluations"
NEEDS = ("x",)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds by panel, line and x, beside them the paper's numbers.

    Models are those of the last stage. Coordinates stand in the order of the scenarios, settings of a grid ascending.
    """
    assert entry.x is not None
    groups = group(entry)
    ours, theirs = evaluated(frame), printed(frame, entry) if entry.compares else frame.iloc[:0]
    means, paper = ours.means(), theirs.set_index([*MODEL[:2], "stage", "metric"])["value"].to_dict()
    found = pd.DataFrame([row for spot in groups.spots for row in _rows(ours, means, paper, entry, groups, spot)])
    found["difference"] = found["mean"] - found["published"]
    order = [scenario.at[entry.x] for scenario in entry.scenarios if entry.x in scenario.at]
    grid = sorted((spot.x for spot in groups.spots if spot.x is not None), key=ascending)
    values = [*dict.fromkeys(order or grid)]
    said, name = _notes(entry, groups, found), axis_name(entry, entry.x)
    text = lines.tables(entry, groups, found, values, name, f"any {short_name(entry, entry.x)}")
    places = {panel.name: lines.even(values) for panel in groups.panels}
    figure = lines.picture(entry, groups, found, places, name, shaded=True)
    return Result(found.drop(columns="diverged"), f"{text}\n{said}\n", figure, notes=said)


def _rows(
    ours: Evaluated, means: Means, paper: dict[Hashable, float], entry: Entry, groups: Groups, spot: Spot
) -> list[dict[str, Any]]:
    """Return the numbers of a spot; those of the paper only where it is the only point of the grid."""
    place, stage = spot[3:5], list(spot.trial.models)[-1]
    alone = len({s.trial.name for s in groups.spots if s[3:5] == place}) == 1
    model, rows = (*place, spot.trial.name, stage), []
    for metric in entry.metrics:
        about = {"panel": spot.panel, "line": spot.line, "x": spot.x, "training": spot.method, "metric": metric.name}
        printed = paper.get((*place, stage, metric.name), nan) if alone else nan
        mean = means.get((*model, metric.name), Mean())
        rows.append({**about, **mean._asdict(), "published": printed, "diverged": len(ours.diverged.get(model, ()))})
    return rows


def _notes(entry: Entry, groups: Groups, found: pd.DataFrame) -> str:
    assert entry.x is not None
    lost = found[found["metric"] == entry.metrics[0].name]["diverged"]
    models = [(spot.trial.trained, spot.trial.name) for spot in groups.spots]
    diverged = sum(dict(zip(models, lost, strict=True)).values())  # a model may stand in several panels
    compared = comparison(entry)
    said = [
        *choices(entry, groups),
        *([f"Horizontal: whatever {short_name(entry, entry.x)} is."] if found["x"].isna().any() else []),
        *notes.averages(entry),
        *notes.spread(entry, "Error bars and bands" if found["x"].isna().any() else "Error bars"),
        *([f"{diverged} models diverged and are left out."] if diverged else []),
        *compared,
        *notes.marks(entry, " ".join(compared)),
    ]
    return " ".join(said)
