"""Harm to the retained clients: how many more errors unlearned models make than retrained ones.

`metrics` names differences of which the audit also gives both ends (`_low`, `_high`), the chance of being worse
(`_worse`) and a p-value (`_p`). P-values are adjusted by Holm's method for all that are shown: metrics, methods and
scenarios together.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fu.artefacts import drawing, notes
from fu.artefacts.auditing import counted, tested
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus
from fu.artefacts.wrapping import fill, width
from fu.claims.correction import adjusted
from fu.claims.rows import ends

INPUTS = ("audits",)
NEEDS = ("against",)
DIFFERENCES = True
LEVEL = 0.05
PAD = 20  # points of a panel's width for its margins and for the label of its row
COLUMNS = ["scenario", "method", "metric", "difference", "low", "high", "worse", "p", "adjusted"]
BLACK: dict[str, Any] = {"color": "0.25", "marker": "o", "markersize": 3, "linestyle": "none"}
SIGNS = {
    "worse than retraining": BLACK,
    "not shown to be worse": {**BLACK, "markerfacecolor": "white"},
}
READ = (
    "In parentheses: 95% bootstrap interval over models. Chance: that an unlearned model is worse than a retrained one "
    "(a half: as often as not). p: one-sided permutation test over models, adjusted by Holm's method for the {tests} "
    "tests shown here. Bold, filled: p below .05, so that the chance of any false one among them is at most 5%. What "
    "is not shown to be worse may still be, by as much as its interval allows."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return every method's differences from retraining with intervals and adjusted p-values, and a picture."""
    found = tidy(frame, entry)
    shown = [(one.label, _table(frame, found, entry, one)) for one in entry.scenarios]
    read = notes.joined(entry, READ.format(tests=len(found)), *(audit.caveat for audit in entry.audits.values()))
    return of_table(found, shown, read, figure=_picture(entry, found))


def tidy(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, method and metric of which there is a number."""
    values = frame.set_index(["scenario", "method", "metric"])["value"].to_dict()
    rows = []
    for scenario in entry.scenarios:
        for method in tested(entry):
            for metric in (one.name for one in entry.metrics):
                names = (metric, *ends(metric), f"{metric}_worse", f"{metric}_p")
                keys = [(scenario.name, method.name, name) for name in names]
                if keys[0] in values:
                    numbers = dict(zip(COLUMNS[3:], (values[key] for key in keys), strict=False))
                    rows.append({"scenario": scenario.name, "method": method.name, "metric": metric, **numbers})
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.assign(adjusted=adjusted(found["p"].to_list()))


def _table(frame: pd.DataFrame, found: pd.DataFrame, entry: Entry, scenario: Scenario) -> pd.DataFrame:
    own = found[found["scenario"] == scenario.name]
    here = {(row["method"], row["metric"]): row for row in own.to_dict("records")}
    rows = []
    for name, label in counted(frame, entry, scenario).items():
        row: dict[Any, str] = {"Method": label}
        for metric in entry.metrics:
            if one := here.get((name, metric.name)):
                digits = 3 if metric.unit == "fraction" else 1
                middle, low, high = (plus_minus(one[end], digits=digits) for end in ("difference", "low", "high"))
                p = plus_minus(one["adjusted"], digits=4)
                row[metric.label, "difference"] = f"{middle} ({low} to {high})"
                row[metric.label, "chance"] = plus_minus(one["worse"], digits=2)
                row[metric.label, "p (Holm)"] = f"**{p}**" if one["adjusted"] < LEVEL else p
        rows.append(row)
    return grid(rows)


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Return a row of panels for each scenario, one for each metric: a point with its interval for each method."""
    methods, wide = tested(entry), rcParams["figure.figsize"][0]
    figure = Figure(figsize=(wide, (0.17 * len(methods) + 0.6) * len(entry.scenarios)), layout="constrained")
    axes = figure.subplots(len(entry.scenarios), len(entry.metrics), squeeze=False, sharex="col", sharey=True)
    styles = drawing.looks(methods)
    labels = [method.marked for method in methods]
    margin = PAD + max(width(label, rcParams["ytick.labelsize"]) for label in labels) / len(entry.metrics)
    for line, scenario in zip(axes, entry.scenarios, strict=True):
        for axis, metric in zip(line, entry.metrics, strict=True):
            here = found[(found["scenario"] == scenario.name) & (found["metric"] == metric.name)]
            _draw(axis, here, styles)
            if scenario is entry.scenarios[0]:
                drawing.head(axis, metric.label, margin=margin)
            if scenario is entry.scenarios[-1]:
                axis.set_xlabel(fill(metric.unit, 12))
        line[0].set_yticks(range(len(methods)), labels)
        line[0].set_ylabel(entry.heading_of(scenario.label))
    axes[0, 0].invert_yaxis()  # of all, as they share it
    drawing.legend(figure, drawing.signs(SIGNS, SIGNS))
    return figure


def _draw(axis: Axes, here: pd.DataFrame, styles: Mapping[str, drawing.Look]) -> None:
    rows = {row["method"]: row for row in here.to_dict("records")}
    axis.axvline(0, color="0.4", linewidth=0.6, zorder=0)
    for place, (name, look) in enumerate(styles.items()):
        if row := rows.get(name):
            axis.hlines(place, row["low"], row["high"], color=look.colour, linewidth=1.2)
            axis.plot(row["difference"], place, **look.point(row["adjusted"] < LEVEL, zorder=3))
    axis.xaxis.set_major_locator(MaxNLocator(3))
    axis.grid(axis="y", linewidth=0.4, color="0.9")
    axis.set_axisbelow(True)
