"""Convergence of an audit's epsilon over the first N repeats, with its interval and the maximum that N can prove.

`metrics` names the epsilon, its ends (`_low`, `_high`) and, if these are to be drawn, its ceiling (`_ceiling`) and its
lower limits at other deltas than 0, in percent (`_low_delta_5`): with all repeats, these are a curve of their own.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fu.artefacts import drawing, notes
from fu.artefacts.auditing import MODELS, tested
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
    "N: number of first repeats of each kind of model, without diverged ones. Above 0 (filled): the lower limit lies "
    "above 0. This is not corrected for the number of rows and, unlike a verdict, does not depend on whether U-LiRA "
    "passes its controls. Grey area above the ceiling: N models cannot prove such an epsilon; a lower limit at the "
    "ceiling is compatible with any larger one. The models of a smaller N are among those of a larger."
)
CURVE = (
    "Curves over delta: the lower limit with all models, 0 if it is negative, as in the table. Each (epsilon, "
    "delta) guarantee below the curve is refuted with 95% confidence (two ratios, each at 2.5%)."
)
COLUMNS = ["scenario", "method", "repeats", "models", "epsilon", "low", "high", "ceiling", "above_0"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return epsilon of each method over the number of repeats."""
    found, deltas = tidy(frame, entry), _deltas(entry)
    labels, shown, words = {method.name: method.marked for method in entry.methods}, [], []
    for scenario in entry.scenarios:
        rows = [
            {
                "Method": labels[row["method"]],
                "N": f"{row['models']:.0f}",
                entry.metrics[0].label: f"{row['epsilon']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
                "Ceiling": plus_minus(row["ceiling"], digits=2),
                **{
                    f"Lower limit, delta = {at:g}": plus_minus(max(row[name], 0), digits=2)
                    for name, at in deltas.items()
                },
                "Above 0": "yes" if row["above_0"] else "not shown",
            }
            for row in found[found["scenario"] == scenario.name].to_dict("records")
        ]
        shown.append((scenario.label, grid(rows)))
        words.append([] if rows else ["Too few models are left that did not diverge."])
    curve = CURVE if deltas else ""
    return of_table(found, shown, notes.joined(entry, READ, curve), words, figure=_picture(entry, found))


def tidy(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, method and number of repeats that an audit can judge."""
    middle = entry.metrics[0].name
    names = dict(zip((MODELS, middle, *ends(middle), f"{middle}_ceiling"), COLUMNS[3:-1], strict=True))
    names |= {f"{middle}_{name}": name for name in _deltas(entry)}
    rows = frame[frame["metric"].isin(names)]
    wide = rows.pivot_table("value", ["scenario", "method", "first"], "metric").reset_index().rename_axis(columns=None)
    wide = wide.rename(columns={"first": "repeats", **names}).reindex(columns=[*COLUMNS[:3], *names.values()])
    wide = wide.dropna(subset="epsilon").astype({"repeats": int}).assign(above_0=lambda rows: rows["low"] > 0)
    place = [[one.name for one in several] for several in (entry.scenarios, entry.methods)]
    order = [(place[0].index(s), place[1].index(m), n) for s, m, n in wide[COLUMNS[:3]].itertuples(index=False)]
    return wide.iloc[sorted(range(len(wide)), key=order.__getitem__)].reset_index(drop=True)


def _deltas(entry: Entry) -> dict[str, float]:
    """Return the deltas of the lower limits that are listed, by column."""
    middle = entry.metrics[0].name
    start = f"{ends(middle)[0]}_delta_"
    return {
        one.name.removeprefix(f"{middle}_"): int(one.name.removeprefix(start)) / 100
        for one in entry.metrics
        if one.name.startswith(start)
    }


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Return a panel over N for each scenario and method and, below, one over delta."""
    methods, deltas = tested(entry), _deltas(entry)
    figure, lines = drawing.panels(len(entry.scenarios) * (2 if deltas else 1), len(methods), 2.0)
    styles, rows = drawing.looks(methods), iter(lines)
    top, bottom = (found["high"].max(), found["low"].min()) if len(found) else (1, 0)
    for scenario in entry.scenarios:
        heading, row, below = entry.heading_of(scenario.label), next(rows), next(rows) if deltas else []
        for k, method in enumerate(methods):
            here = found[(found["scenario"] == scenario.name) & (found["method"] == method.name)]
            _draw(row[k], here, entry.firsts, styles[method.name])
            row[k].set(xlabel="repeats N", ylabel=f"{heading}\n{entry.metrics[0].label}")
            row[k].set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))
            drawing.head(row[k], method.marked)
            for axis in below[k : k + 1]:
                limits = here.tail(1)[["low", *deltas]].clip(lower=0)
                axis.plot([0, *deltas.values()], limits.to_numpy().T, **styles[method.name].point(linestyle="-"))
                axis.set(xlabel="delta", ylabel=f"{heading}\n{entry.metrics[0].label}, lower limit")
                drawing.head(axis, method.marked)
        for several in filter(None, (row, below)):
            drawing.share_y(several)
    black: dict[str, Any] = {"color": "0.25", "marker": "o", "markersize": drawing.POINT}
    signs = [
        Line2D([], [], label="lower limit above 0", **black),
        Line2D([], [], label="not shown to be above 0", markerfacecolor="white", **black),
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
    for repeats, value, told in rows[["repeats", "epsilon", "above_0"]].itertuples(index=False):
        axis.plot(repeats, value, **look.point(told, zorder=3))
