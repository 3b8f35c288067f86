"""Metrics of models against a coordinate of scenarios or a setting of grids (as SAFARI Figures 2 and 4).

Models are those of the last stage. For a setting of post-training, what it starts from is shown first.
"""

from collections.abc import Hashable
from itertools import product
from math import nan

import pandas as pd

from fu.artefacts import lines, notes
from fu.artefacts.drawing import ascending
from fu.artefacts.entry import Entry
from fu.artefacts.groups import Groups, axis_name, choices, group, grouped, short_name
from fu.artefacts.result import Result, of_figure
from fu.artefacts.statistics import KEYS, Evaluated, Mean, evaluated, printed

INPUTS = ("evaluations",)
NEEDS = ("x",)
COLUMNS = {  # of the numbers, where coordinates make panels and lines, or scenarios and methods do
    True: ["panel", "line", "x", "training", "metric", "mean", "std", "n", "published", "difference"],
    False: ["scenario", "method", "setting", "x", "stage", "metric", "last", "mean", "std", "n"],
}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds by panel, line and x, beside them the paper's numbers.

    Coordinates stand in the order of the scenarios, settings of a grid ascending.
    """
    assert entry.x is not None
    groups, ours, shaded = group(entry), evaluated(frame), grouped(entry)
    paper = printed(frame, entry).set_index(KEYS)["value"].to_dict()
    found = _collect(entry, groups, ours, paper)
    points = found[found["place"].notna() | found["last"]].assign(x=lambda rows: rows["place"])
    order = [scenario.at[entry.x] for scenario in entry.scenarios if entry.x in scenario.at]
    grid = sorted((spot.x for spot in groups.spots if spot.x is not None), key=ascending)
    values = [*dict.fromkeys(order or grid)]
    places = (lines.even if order or len(groups.panels) > len(entry.metrics) else lines.scaled)(values)
    name = axis_name(entry, entry.x)
    tables = lines.tables(entry, groups, points, values, f"any {short_name(entry, entry.x)}")
    figure = lines.picture(entry, groups, points, places, name, shaded=shaded)
    shown = found[found["last"] if shaded else found["n"] > 0][COLUMNS[shaded]]
    words = [*([] for _ in tables[1:]), [f"Columns: {name}."]]
    return of_figure(shown, tables, _notes(frame, entry, groups, points, ours), figure, words)


def _collect(entry: Entry, groups: Groups, ours: Evaluated, paper: dict[Hashable, float]) -> pd.DataFrame:
    """Return the numbers of every model that is shown; `place`: x, or that it stands before the others of its line."""
    means, rows = ours.means(), []
    first = {spot[:2]: spot for spot in reversed(groups.spots)}
    for spot in groups.spots:
        alone = len({other.trial.name for other in groups.spots if other[3:5] == spot[3:5]}) == 1  # of its grid
        before = lines.BEFORE if str(entry.x).startswith("recovery.") and first[spot[:2]] is spot else None
        for stage, metric in product(spot.trial.models, entry.metrics):
            last, model = stage == [*spot.trial.models][-1], (*spot[3:5], spot.trial.name, stage)
            rows.append(
                {
                    **spot._asdict(),
                    "training": spot.method,
                    "setting": entry.x,
                    "stage": stage,
                    "metric": metric.name,
                    "last": last,
                    "place": spot.x if last else before,
                    **means.get((*model, metric.name), Mean())._asdict(),
                    "published": paper.get((*spot[3:5], stage, metric.name), nan) if alone else nan,
                    "diverged": len(ours.diverged.get(model, ())),
                }
            )
    found = pd.DataFrame(rows)
    return found.assign(difference=found["mean"] - found["published"])


def _notes(frame: pd.DataFrame, entry: Entry, groups: Groups, points: pd.DataFrame, ours: Evaluated) -> str:
    assert entry.x is not None
    diverged = {  # a model may stand in several panels
        (model, seed)
        for spot in groups.spots
        for stage, model in spot.trial.models.items()
        for seed in ours.diverged.get((*spot[3:5], spot.trial.name, stage), ())
    }
    level = points["x"].isna().any()
    return notes.joined(
        entry,
        notes.no_backdoor(entry, notes.original_asr(frame[~frame["published"]])),
        notes.rates(entry, entry.x, *entry.lines, *entry.panels),
        *choices(entry, groups),
        f"Horizontal: whatever {short_name(entry, entry.x)} is." if level else "",
        "before: after unlearning." if (points["x"] == lines.BEFORE).any() else "",
        notes.seeds(entry, 0),
        notes.deviations(entry, "±, error bars and bands"),
        f"{len(diverged)} models diverged and are left out." if diverged else "",
        notes.comparison(entry) if grouped(entry) else "",
    )
