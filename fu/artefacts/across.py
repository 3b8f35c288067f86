"""Metrics of models across a coordinate of scenarios or a setting of grids (as SAFARI Figures 2 and 4)."""

from collections.abc import Hashable
from math import nan
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fu.artefacts import notes
from fu.artefacts.drawing import (
    CROSS,
    DIVERGED,
    WIDE,
    Look,
    ascending,
    draw_diverged,
    draw_means,
    handles,
    head,
    legend,
    looks,
    number,
    panels,
    show_shares,
    title,
)
from fu.artefacts.entry import Entry
from fu.artefacts.groups import Groups, Spot, axis_name, choices, group, short_name
from fu.artefacts.result import Result
from fu.artefacts.statistics import MODEL, Evaluated, Mean, Means, evaluated
from fu.artefacts.table import comparison, printed

READS = "evaluations"
NEEDS = ("x",)
PAPER = "the paper"
SIGNS: dict[str, dict[str, Any]] = {
    PAPER: {"color": "0.35", "marker": "D", "markersize": 7, "markerfacecolor": "none", "linestyle": "none"},
    DIVERGED: {"color": "0.35", **CROSS},
}
Places = dict[Any, float]  # value -> where it lies: in even steps


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds by panel, line and x, beside them the paper's numbers.

    Models are those of the last stage. What has no place on the axis is a horizontal line.
    """
    groups = group(entry)
    ours, theirs = evaluated(frame), printed(frame, entry) if entry.compares else frame.iloc[:0]
    means, paper = ours.means(), theirs.set_index([*MODEL[:2], "stage", "metric"])["value"].to_dict()
    found = pd.DataFrame([row for spot in groups.spots for row in _rows(ours, means, paper, entry, groups, spot)])
    found["difference"] = found["mean"] - found["published"]
    at = _places(entry, groups)
    said = _notes(entry, groups, found)
    body = f"{_tables(entry, groups, found, at)}\n{said}\n"
    return Result(found.drop(columns="diverged"), body, _picture(entry, groups, found, at), notes=said)


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


def _places(entry: Entry, groups: Groups) -> Places:
    """Return where values lie: coordinates in the order of the scenarios, settings of a grid ascending."""
    values = [spot.x for spot in groups.spots if spot.x is not None]
    order = [scenario.at[entry.x] for scenario in entry.scenarios if entry.x in scenario.at]
    return {x: k for k, x in enumerate(dict.fromkeys(order or sorted(values, key=ascending)))}


def _tables(entry: Entry, groups: Groups, found: pd.DataFrame, at: Places) -> str:
    assert entry.x is not None
    text = []
    for panel in groups.panels:
        for metric in entry.metrics:
            here = found[(found["panel"] == panel.name) & (found["metric"] == metric.name)]
            anywhere = f"any {short_name(entry, entry.x)}"
            columns = [*([anywhere] if here["x"].isna().any() else []), *map(number, at)]
            rows = []
            for line in groups.lines:
                own = here[here["line"] == line.name]
                cells = {
                    anywhere if pd.isna(row["x"]) else number(row["x"]): _text(row) for row in own.to_dict("records")
                }
                if cells:
                    rows.append({"Method": line.marked, **{name: cells.get(name, "–") for name in columns}})
            table = pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)
            about = f"Columns: {axis_name(entry, entry.x)}."
            text.append(f"## {title(panel)}: {metric.label}\n\n{about}\n\n{table}\n")
    return "\n".join(text)


def _text(row: dict[Hashable, Any]) -> str:
    """Return the mean with its deviation, beside it the paper's number and the difference."""
    ours = notes.texts(pd.DataFrame([row]))[0] if row["n"] else DIVERGED if row["diverged"] else "–"
    if pd.isna(row["published"]):
        return ours
    difference = f", diff {row['difference']:+.3f}" if row["n"] else ""
    return f"{ours} (paper {row['published']:.3f}{difference})"


def _notes(entry: Entry, groups: Groups, found: pd.DataFrame) -> str:
    assert entry.x is not None
    lost = found[found["metric"] == entry.metrics[0].name]["diverged"]
    models = [(spot.trial.home or spot.scenario, spot.trial.name) for spot in groups.spots]
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


def _picture(entry: Entry, groups: Groups, found: pd.DataFrame, at: Places) -> Figure:
    assert entry.x is not None
    figure, axes = panels(len(groups.panels), len(entry.metrics), 2.3)
    columns = axes[0][0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    styles, used = looks(groups.lines, True, entry.paper), set()
    for row, panel in zip(axes, groups.panels, strict=True):
        for axis, metric in zip(row, entry.metrics, strict=True):
            head(axis, title(panel) + (f": {metric.label}" if len(entry.metrics) > 1 else ""))
            here = found[(found["panel"] == panel.name) & (found["metric"] == metric.name)]
            for k, line in enumerate(groups.lines):
                own = here[here["line"] == line.name]
                own = own.assign(at=own["x"].map(at).astype(float)).sort_values("at")
                used |= _draw(axis, own, styles[line.name], k, at)
            axis.set_xticks([*at.values()], [*map(number, at)], rotation=60 if columns * len(at) > WIDE else 0)
            axis.set(xlabel=axis_name(entry, entry.x), ylabel=metric.label, xlim=(-0.5, len(at) - 0.5))
    for k, metric in enumerate(entry.metrics):
        if metric.unit == "fraction":
            show_shares([row[k] for row in axes])
    signs = [Line2D([], [], label=label, **style) for label, style in SIGNS.items() if label in used]
    legend(figure, [*_handles(entry, groups), *signs])
    return figure


def _draw(axis: Axes, own: pd.DataFrame, look: Look, k: int, at: Places) -> set[str]:
    """Draw a line, what is the same for all values as a horizontal one, and the paper's numbers; return the signs."""
    level, shown = own["x"].isna(), own["n"] > 0
    for mean, std, n in own[level & shown][["mean", "std", "n"]].itertuples(index=False, name=None):
        axis.axhline(mean, color=look.colour, linestyle="--", linewidth=look.width)
        if n > 1:
            axis.axhspan(mean - std, mean + std, color=look.colour, alpha=0.15, linewidth=0)
    if (~level & shown).any():
        draw_means(axis, own[~level & shown], look)
    gone = own[~shown & (own["diverged"] > 0)]
    for place in gone["at"].fillna(len(at) - 1):
        draw_diverged(axis, place, k, look)
    paper = own[own["published"].notna() & ~level]
    if len(paper):
        axis.plot(paper["at"], paper["published"], **SIGNS[PAPER] | {"color": look.colour}, zorder=4)
    return {*([DIVERGED] if len(gone) else []), *([PAPER] if len(paper) else [])}


def _handles(entry: Entry, groups: Groups) -> list[Artist]:
    """Return what stands in the legend for each line: no marker where it is horizontal."""
    placed = {spot.line for spot in groups.spots if spot.x is not None}
    found = handles(groups.lines, True, entry.paper)
    for line, handle in zip(groups.lines, found, strict=True):
        if line.name not in placed:
            handle.set(marker="none", linestyle="--")
    return found
