"""Convergence of an audit's epsilon over the first N repeats, with its interval and the maximum that N can prove.

`metrics` names the epsilon, its ends (`_low`, `_high`) and, if it is to be drawn, its ceiling (`_ceiling`).
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fu.artefacts import drawing, notes
from fu.artefacts.auditing import tested, uncontrolled
from fu.artefacts.entry import Entry
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus
from fu.claims.rows import ends

INPUTS = ("audits",)
NEEDS = ("against",)
FIRSTS = True  # audits are read of the first repeats, too
CEILING = "0.88"  # what no epsilon can prove
READ = (
    "N: number of first repeats of each kind of model. Distinguishable, filled: the lower limit is above 0; –: not "
    "judged, as no control has its training. Grey area above the ceiling: N models cannot prove such an epsilon; a "
    "lower limit at the ceiling is compatible with any larger one. The models of a smaller N are among those of a "
    "larger, so the verdicts are not independent."
)
COLUMNS = ["scenario", "method", "repeats", "epsilon", "low", "high", "ceiling", "found"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return epsilon of each method over the number of repeats, and its verdict."""
    found = tidy(frame, entry)
    labels, alone = {method.name: method.marked for method in entry.methods}, uncontrolled(entry)
    shown = []
    for scenario in entry.scenarios:
        rows = [
            {
                "Method": labels[row["method"]],
                "N": row["repeats"],
                entry.metrics[0].label: f"{row['epsilon']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
                "Ceiling": plus_minus(row["ceiling"], digits=2),
                "Distinguishable": "–" if row["method"] in alone else "yes" if row["found"] else "no",
            }
            for row in found[found["scenario"] == scenario.name].to_dict("records")
        ]
        shown.append((scenario.label, grid(rows)))
    return of_table(found, shown, notes.joined(entry, READ), figure=_picture(entry, found))


def tidy(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, method and number of repeats that an audit can judge."""
    middle = entry.metrics[0].name
    names = dict(zip((middle, *ends(middle), f"{middle}_ceiling"), COLUMNS[3:-1], strict=True))
    rows = frame[frame["metric"].isin(names)]
    wide = rows.pivot_table("value", ["scenario", "method", "first"], "metric").reset_index().rename_axis(columns=None)
    wide = wide.rename(columns={"first": "repeats", **names}).reindex(columns=COLUMNS)
    wide = wide.astype({"repeats": int}).assign(found=wide["low"] > 0)
    place = [[one.name for one in several] for several in (entry.scenarios, entry.methods)]
    order = [(place[0].index(s), place[1].index(m), n) for s, m, n in wide[COLUMNS[:3]].itertuples(index=False)]
    return wide.iloc[sorted(range(len(wide)), key=order.__getitem__)].reset_index(drop=True)


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Return a panel for each scenario and method."""
    methods = tested(entry)
    figure, lines = drawing.panels(len(entry.scenarios), len(methods), 2.0)
    styles = drawing.looks(methods)
    top, bottom = found["high"].max(), found["low"].min()
    for row, scenario in zip(lines, entry.scenarios, strict=True):
        for axis, method in zip(row, methods, strict=True):
            here = found[(found["scenario"] == scenario.name) & (found["method"] == method.name)]
            _draw(axis, here, entry.firsts, styles[method.name])
            axis.set(xlabel="repeats N", ylabel=f"{entry.heading_of(scenario.label)}\n{entry.metrics[0].label}")
            axis.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))
            drawing.head(axis, method.marked)
        drawing.share_y(row)
    black: dict[str, Any] = {"color": "0.25", "marker": "o", "markersize": drawing.POINT}
    signs = [
        Line2D([], [], label="distinguishable from retraining", **black),
        Line2D([], [], label="indistinguishable", markerfacecolor="white", **black),
    ]
    drawing.legend(figure, [*signs, Patch(color=CEILING, label="more than N models can prove")])
    return figure


def _draw(axis: Axes, rows: pd.DataFrame, numbers: tuple[int, ...], look: drawing.Look) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xlim(numbers[0] / 1.3, numbers[-1] * 1.3)
    axis.set_xticks(numbers, [str(number) for number in numbers])
    axis.minorticks_off()
    axis.axhline(0, color="0.4", linewidth=0.6)
    if rows["ceiling"].notna().any():
        edges = [rows["repeats"].iloc[0] / 1.3, *rows["repeats"].iloc[1:-1], rows["repeats"].iloc[-1] * 1.3]
        ceiling = rows["ceiling"] if len(rows) > 1 else [rows["ceiling"].iloc[0]] * 2
        axis.fill_between(edges, ceiling, 1e3, color=CEILING, linewidth=0)
    away = [rows["epsilon"] - rows["low"], rows["high"] - rows["epsilon"]]
    axis.errorbar(rows["repeats"], rows["epsilon"], away, color=look.colour, linewidth=0.8, capsize=2)
    for repeats, value, told in rows[["repeats", "epsilon", "found"]].itertuples(index=False):
        axis.plot(repeats, value, **look.point(told, zorder=3))
