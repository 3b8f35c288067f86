"""Unlearning time of FATS against a coordinate of scenarios, from the sampling history alone (FATS Figures 2, 3, 6).

Every point is the mean over requests that are drawn; beside it stand the exact mean, the paper's bounds and FRS.
"""

from collections.abc import Hashable, Iterator
from itertools import groupby
from math import isnan
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fu.artefacts import notes
from fu.artefacts.drawing import Look, head, legend, looks, number, panels, share_y
from fu.artefacts.entry import ORIGINAL, Entry, Method, Scenario
from fu.artefacts.groups import axis_name
from fu.artefacts.panels import grid
from fu.artefacts.requests import FRS, asked, counted, draw_retrained, draw_times, retrained, times
from fu.artefacts.result import Result, of_figure
from fu.artefacts.words import plus_minus
from fu.errors import UserError

INPUTS = ()
REQUESTS = True
NEEDS = ("scenarios", "x")
EXACT = 0.7  # points: the width of a line
BY_SEED = ("time_share", "room")
COLUMNS = ["panel", "line", "x", "scenario", "rho", "targets", "n", "spared", "spared_exact", "spared_bound"]
COLUMNS += ["probability_bound", "number_bound", "time", "error", "time_exact", "frs"]
TERMS = (
    "time: time steps computed again, the mean over all requests. spared: the share of requests that compute nothing "
    "again, of which the paper says that it is at least 1 - wρ; re-computed: the others, at most wρ by Theorem 1; "
    "section 5.3 says that they are at most 4wρ re-computations (w targets at once). exact: the mean over all draws."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Draw `entry.draws` requests for every scenario in which rho is at most 1, where the paper's lines end."""
    rows = [{**_place(entry, entry.scenario(one["scenario"])), **one} for one in _times(frame, entry)]
    if not rows:
        raise UserError(f"{entry.artefact}: rho exceeds 1 in every scenario; name smaller systems.")
    found = pd.DataFrame(rows)
    parts = found.groupby("panel", sort=False)
    tables = [(str(panel), grid(_cells(entry, row) for row in part.to_dict("records"))) for panel, part in parts]
    shown = found.rename(columns={"mean": "time", "exact": "time_exact"})[COLUMNS]
    words = [*([] for _ in tables[1:]), [TERMS]]
    return of_figure(shown, tables, _notes(entry, found), _picture(entry, found), words)


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return, of each scenario, the mean time as a share of FRS's, and what Theorem 1's bound of wρ leaves.

    The time is exact where that is known, else a mean over the draws; what is left is exact, and given where the bound
    is below 1.
    """
    rows = []
    for one in _times(frame, entry):
        numbers = {"time_share": (one["mean"] if isnan(one["exact"]) else one["exact"]) / one["frs"]}
        if one["probability_bound"] < 1 and not isnan(one["spared_exact"]):
            numbers["room"] = one["probability_bound"] - (1 - one["spared_exact"])
        rows += [{"scenario": one["scenario"], "metric": name, "value": value} for name, value in numbers.items()]
    return pd.DataFrame(rows).assign(method=ORIGINAL, trial=ORIGINAL, stage=ORIGINAL, seed=-1)


def _times(frame: pd.DataFrame, entry: Entry) -> Iterator[dict[str, Any]]:
    for scenario in entry.scenarios:
        requests = asked(frame, entry, scenario)
        if requests.rho <= 1:
            yield times(entry, scenario, requests)


def _place(entry: Entry, scenario: Scenario) -> dict[str, Any]:
    """Return panel, line and x of a scenario: a panel for each level and value of `entry.panels`."""
    assert scenario.asked is not None
    several = {other.asked.number for other in entry.scenarios if other.asked} != {1}
    own = [f"{short} = {number(scenario.at[short])}" for short in entry.panels if short in scenario.at]
    targets = f"{scenario.asked.level}s" if several else f"a {scenario.asked.level}"
    panel = ", ".join([f"{scenario.family or scenario.label}: {targets} to forget", *own])
    line = ", ".join(f"{short} = {number(scenario.at[short])}" for short in entry.lines if short in scenario.at)
    return {"panel": panel, "line": line, "x": scenario.at[str(entry.x)]}


def _cells(entry: Entry, row: dict[Hashable, Any]) -> dict[str, str]:
    spared = {"spared": row["spared"], "spared, exact": row["spared_exact"], "spared, paper ≥": row["spared_bound"]}
    again = {"Theorem 1 ≤": row["probability_bound"], "section 5.3 ≤": row["number_bound"]}
    shares = {**spared, "re-computed": 1 - row["spared"], **again}
    return {
        **({"line": str(row["line"])} if row["line"] else {}),
        str(entry.x): number(row["x"]),
        "ρ": plus_minus(row["rho"]),
        **{head: plus_minus(share) for head, share in shares.items()},
        "time": plus_minus(row["mean"], row["error"], 0),
        "time, exact": plus_minus(row["exact"], digits=0),
        "of FRS": plus_minus(row["mean"] / row["frs"]),
        "of FRS, exact": plus_minus(row["exact"] / row["frs"]),
    }


def _notes(entry: Entry, found: pd.DataFrame) -> str:
    beyond = len(entry.scenarios) - len(found)
    return notes.joined(
        entry,
        retrained(found),
        "Lines: exact means." if found["exact"].notna().any() else "",
        f"Markers: {counted(entry, found)}",
        f"Lines end where ρ reaches 1; points beyond, which are left out: {beyond}." if beyond else "",
        entry.note,
    )


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    heads = list(found["panel"].unique())
    figure, axes = panels(len(heads), 1, 2.5, widest=3.5)
    lines = [_line(line) for line in found["line"].unique()]
    styles: dict[str, Look] = {}
    for _, several in groupby(lines, lambda line: line.label.partition(" = ")[0]):  # shades of each coordinate
        styles |= looks([*several], shaded=True)
    low, high = found["x"].min(), found["x"].max()
    pad = 0.06 * (high - low) or 0.5
    limits = low - pad, high + pad
    for [axis], panel in zip(axes, heads, strict=True):
        head(axis, entry.heading_of(panel))
        part = found[found["panel"] == panel]
        for line in (one for one in lines if one.label in [*part["line"]]):
            own, look = part[part["line"] == line.label], styles[line.name]
            draw_times(axis, own, "x", {"color": look.colour, "linewidth": EXACT}, _marks(look))
        draw_retrained(axis, part)
        axis.set_xlabel(axis_name(entry, str(entry.x)))
    for [axis] in axes:
        axis.set_xticks(sorted(found["x"].unique()))
        axis.set_xlim(*limits)
    if found["frs"].nunique() == 1:
        share_y([axis for [axis] in axes])
    shown = [
        Line2D([], [], label=line.label or "FATS", linewidth=EXACT, **_marks(styles[line.name]) | {"linestyle": "-"})
        for line in lines
    ]
    legend(figure, [*shown, Line2D([], [], label="FRS", **FRS)])
    return figure


def _line(label: str) -> Method:
    """Return a line in place of a method."""
    return Method(name=f"fats.{label}", label=label, in_paper=True, post_training="none", trials={})


def _marks(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "markersize": 4.5, "mew": 0, "linestyle": "none"}
