"""Means over an axis, a line for each method: in a table, and drawn.

Points: panel, line, metric, x, mean, std, n, how many seeds `diverged`, and the `published` number, if any. What has no
place on the axis (x is None) is a horizontal line; what is `BEFORE` the first value stands left of it.
"""

from collections.abc import Hashable, Sequence
from itertools import product
from typing import Any, NamedTuple

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from fu.artefacts import drawing
from fu.artefacts.entry import Entry
from fu.artefacts.groups import Groups
from fu.artefacts.panels import Panels, grid
from fu.artefacts.words import plus_minus

PAPER = "the paper"
BEFORE = "before"
SIGNS: dict[str, dict[str, Any]] = {
    BEFORE: {"color": "0.35", "marker": "o", "markerfacecolor": "white", "linestyle": ":"},
    PAPER: {"color": "0.35", "marker": "D", "markersize": 7, "markerfacecolor": "none", "linestyle": "none"},
    drawing.DIVERGED: {"color": "0.35", **drawing.CROSS},
}
CALLED = {BEFORE: "before post-training"}
LABELS = {CALLED.get(sign, sign): style for sign, style in SIGNS.items()}
AXIS, STEP, LEAST = 1.0, 0.6, 4  # inches of a panel that its labels take and each value on its axis, of which at least
CROWDED = {True: 16, False: 10}  # values that have room below a row of panels, in even steps or not


class Places(NamedTuple):
    """Where values lie on an axis, `scale`: even, linear or log."""

    at: dict[Any, float]
    scale: str = "even"


def even(values: Sequence[Any]) -> Places:
    """Return places in equal steps, what is before them at -1."""
    return Places({**{value: float(k) for k, value in enumerate(values)}, BEFORE: -1.0})


def scaled(values: Sequence[Any]) -> Places:
    """Return places in proportion, on a logarithmic axis where all are positive; words in equal steps."""
    if any(isinstance(value, str) for value in values):
        return even(values)
    least, most, steps = values[0], values[-1], max(len(values), 4)
    if least > 0:
        return Places({**dict(zip(values, values, strict=True)), BEFORE: least * (least / most) ** (1 / steps)}, "log")
    return Places({**dict(zip(values, values, strict=True)), BEFORE: least - (most - least) / steps}, "linear")


def tables(entry: Entry, groups: Groups, points: pd.DataFrame, values: Sequence[Any], first: str) -> Panels:
    """Return a table for each panel and metric; `first`: head of what has no value."""
    shown: Panels = []
    for panel, metric in product(groups.panels, entry.metrics):
        here = points[(points["panel"] == panel.name) & (points["metric"] == metric.name)]
        aside = [*([first] if here["x"].isna().any() else []), *([BEFORE] if (here["x"] == BEFORE).any() else [])]
        rows = []
        for line in groups.lines:
            own = here[here["line"] == line.name].to_dict("records")
            cells = {first if pd.isna(row["x"]) else drawing.number(row["x"]): _text(row) for row in own}
            columns = {column: cells.get(column, "–") for column in [*aside, *map(drawing.number, values)]}
            rows += [{"Method": line.marked, **columns}] if cells else []
        shown.append((f"{panel.label}: {metric.label}", grid(rows)))
    return shown


def _text(row: dict[Hashable, Any]) -> str:
    """Return the mean with its deviation, beside it the paper's number and the difference."""
    ours = plus_minus(row["mean"], row["std"]) if row["n"] else drawing.DIVERGED if row["diverged"] else "–"
    if pd.isna(row["published"]):
        return ours
    difference = f", diff {row['mean'] - row['published']:+.3f}" if row["n"] else ""
    return f"{ours} (paper {row['published']:.3f}{difference})"


def picture(entry: Entry, groups: Groups, points: pd.DataFrame, places: Places, name: str, *, shaded: bool) -> Figure:
    """Draw a panel for each panel and metric. Metrics stand below each other where more panels than metrics have
    room side by side.
    """
    count, metrics = len(groups.panels), len(entry.metrics)
    across = not shaded and metrics < count <= int(rcParams["figure.figsize"][0] / drawing.NARROW)
    widest = AXIS + STEP * max(len(places.at), LEAST)
    figure, cells = drawing.panels(*((metrics, count, 1.9) if across else (count, metrics, 2.3)), widest=widest)
    axes = [list(line) for line in zip(*cells, strict=True)] if across else cells
    columns = figure.axes[0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    styles, used, (at, scale) = drawing.looks(groups.lines, shaded, entry.paper), set(), places
    for row, panel in zip(axes, groups.panels, strict=True):
        for axis, metric in zip(row, entry.metrics, strict=True):
            if metric is entry.metrics[0]:
                beside, margin = (1, drawing.NONE) if across else (min(metrics, columns), drawing.MARGIN)
                drawing.head(axis, entry.heading_of(panel.label), beside, margin)
            here = points[(points["panel"] == panel.name) & (points["metric"] == metric.name)]
            if scale != "even":
                axis.set_xscale(scale)
                axis.xaxis.set_minor_locator(NullLocator())
            marks = set[str]()
            for k, line in enumerate(groups.lines):
                marks |= _draw(axis, here[here["line"] == line.name], styles[line.name], k, at)
            ticks = {x: place for x, place in at.items() if x != BEFORE or BEFORE in marks}
            turned = 60 if columns * len(ticks) > CROWDED[scale == "even"] else 0
            axis.set_xticks([*ticks.values()], [*map(drawing.number, ticks)], rotation=turned)
            axis.set(xlabel=name, ylabel=metric.label)
            if scale == "even":
                axis.set_xlim(min(ticks.values()) - 0.5, max(ticks.values()) + 0.5)
            if across and metric.unit == "fraction":  # on one axis
                axis.label_outer()
            used |= marks
    for k, metric in enumerate(entry.metrics):
        if metric.unit == "fraction":
            drawing.show_shares([row[k] for row in axes])
    placed = set(points[points["x"].notna()]["line"])
    found = drawing.handles(groups.lines, shaded, entry.paper)
    for line, handle in zip(groups.lines, found, strict=True):
        if line.name not in placed:
            handle.set(marker="none", linestyle="--")
    drawing.legend(figure, [*found, *drawing.signs({CALLED.get(sign, sign) for sign in used}, LABELS)])
    return figure


def _draw(axis: Axes, own: pd.DataFrame, look: drawing.Look, k: int, at: dict[Any, float]) -> set[str]:
    """Draw a line, what is the same for all values as a horizontal one, and the paper's numbers; return the signs."""
    own = own.assign(at=own["x"].map(at).astype(float)).sort_values("at")
    level, first, shown = own["x"].isna(), own["x"] == BEFORE, own["n"] > 0
    for mean, std, n in own[level & shown][["mean", "std", "n"]].itertuples(index=False, name=None):
        axis.axhline(mean, color=look.colour, linestyle="--", linewidth=look.width)
        if n > 1:
            axis.axhspan(mean - std, mean + std, color=look.colour, alpha=0.15, linewidth=0)
    means, before = own[~level & ~first & shown], own[first & shown]
    if len(means):
        drawing.draw_means(axis, means, look)
    if len(before):
        begun = pd.concat([before, means.head(1)])
        axis.plot(begun["at"], begun["mean"], color=look.colour, linestyle=":", linewidth=0.8)
        drawing.draw_means(axis, before, look, markerfacecolor="white", mew=1)
    gone = own[~shown & (own["diverged"] > 0) & ~first]
    for place in gone["at"].fillna(max(at.values())):
        drawing.draw_diverged(axis, place, k, look)
    paper = own[own["published"].notna() & ~level]
    if len(paper):
        axis.plot(paper["at"], paper["published"], **SIGNS[PAPER] | {"color": look.colour}, zorder=4)
    return {sign for sign, rows in ((BEFORE, before), (drawing.DIVERGED, gone), (PAPER, paper)) if len(rows)}
