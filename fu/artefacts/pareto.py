"""Cost of a method against what it leaves behind: a panel per cost, with the Pareto front.

Costs are those of unlearning and post-training together (`spending`), mean over repeats. Points are methods, and as
references one more retraining, of which nothing is left, and doing nothing, which is on no front.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, floor, isnan, log10, nan
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fu.artefacts import drawing
from fu.artefacts.audit import GREY, audits, uncontrolled, unjudged
from fu.artefacts.entry import Entry, Method, Metric, Scenario
from fu.artefacts.escaping import paragraph
from fu.artefacts.panels import markdown, plain
from fu.artefacts.result import Result
from fu.artefacts.spending import spent
from fu.artefacts.words import in_a_row

INPUTS = ("audits", "traces", "costs")
NEEDS = ("against",)
SCORES = True  # of metrics that grow with what is left
ALSO = ("seconds", "bytes_up", "bytes_down", "stored", "forgotten_rounds", "client_rounds")
COSTS = {
    "seconds": "seconds of computation",
    "bytes_up": "bytes up",
    "bytes_down": "bytes down",
    "stored": "bytes stored",
    "forgotten_rounds": "rounds of the forgotten client",
    "client_rounds": "rounds of all clients",
}
COLUMNS = ["scenario", "metric", "method", "cost", "spent", "left", "front", "fails"]
SPREAD = 10  # between the least and the largest cost, from where on the axis is logarithmic
FRONT: dict[str, Any] = {"color": "0.5", "linewidth": 1.2}


class Point(NamedTuple):
    """A method in a panel."""

    method: Method
    cost: float
    left: float


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return every method's costs beside its scores, and who is on a front."""
    found = tidy(frame, entry)
    parts = [
        (scenario, metric, found[(found["scenario"] == scenario.name) & (found["metric"] == metric.name)])
        for scenario in entry.scenarios
        for metric in entry.metrics
    ]
    shown = [(f"{one.label}: {metric.label}", _table(here, entry, metric)) for one, metric, here in parts]
    words = [in_words(here, entry, _alone(frame, entry, scenario, metric)) for scenario, metric, here in parts]
    names = tuple(f"{scenario.name}-{metric.name}" for scenario, metric, _ in parts)
    devices = "; ".join(sorted({str(one) for one in frame["device"].dropna()}))
    notes = (
        "Lower left is better: less cost, less left. Costs add up unlearning and post-training (bytes stored: the "
        "larger of both), mean over repeats; one that diverged counts as far as it ran. On the front is whom no other "
        "beats in cost or score without being worse in the other; doing nothing is left out. Scores are estimates: "
        "neighbours on a front may be tied."
    )
    notes += f" Seconds: {devices}; they differ from run to run." if devices else ""
    body = f"{markdown(shown, words)}\n{paragraph(notes)}\n"
    return Result(found, body, _picture(entry, found), shown, notes, words, names, beside=True)


def tidy(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, score, method and cost; `fails`: why no method is judged by the audit."""
    rows = []
    for scenario in entry.scenarios:
        here = frame[frame["scenario"] == scenario.name]
        judged = audits(frame, entry, scenario)
        means = {
            method.name: spent(here[here["method"] == method.name]).groupby("metric")["value"].mean()
            for method in _shown(entry)
        }
        for metric in entry.metrics:
            audit = next(one for one in judged if metric.name in one.audit.metrics)
            alone = _alone(frame, entry, scenario, metric)
            for cost in COSTS:
                points = [
                    Point(method, float(means[method.name].get(cost, nan)), audit.values[method.name][metric.name])
                    for method in _shown(entry)
                    if metric.name in audit.values.get(method.name, {})
                ]
                asked = [one for one in points if one.method.name not in alone]
                best = set() if audit.fails else {point.method.name for point in front(asked)}
                rows += [
                    {"scenario": scenario.name, "metric": metric.name, "method": method.name, "cost": cost}
                    | {"spent": value, "left": left, "front": method.name in best, "fails": audit.fails}
                    for method, value, left in points
                ]
    return pd.DataFrame(rows, columns=COLUMNS)


def front(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other is below in one and not above in the other, the cheapest first.

    Doing nothing is left out: it costs nothing, and would be on every front. So is whose cost is not known.
    """
    asked = [point for point in points if not point.method.control and not isnan(point.cost)]
    best = [
        one
        for one in asked
        if not any(
            other.cost <= one.cost and other.left <= one.left and (other.cost < one.cost or other.left < one.left)
            for other in asked
        )
    ]
    return sorted(best, key=lambda point: (point.cost, point.left))


def _shown(entry: Entry) -> list[Method]:
    """Return methods, one more retraining and doing nothing: what has forgotten in part is no way to forget."""
    return [
        method for method in entry.methods if method.name not in entry.against and not (method.left and method.left[1])
    ]


def _table(here: pd.DataFrame, entry: Entry, metric: Metric) -> pd.DataFrame:
    rows = []
    for method in _shown(entry):
        own = here[here["method"] == method.name]
        if len(own):
            costs = {
                COSTS[row["cost"]]: "–" if isnan(row["spent"]) else f"{row['spent']:.4g}"
                for row in own.to_dict("records")
            }
            rows.append({"Method": method.marked, metric.label: f"{own['left'].iloc[0]:.3f}", **costs})
    return plain(rows or [{"Method": "–"}])


def in_words(here: pd.DataFrame, entry: Entry, alone: Collection[str] = ()) -> list[str]:
    """Return sentences on who is on a front, or why nobody is; `alone`: methods that are not judged."""
    if here.empty:
        return ["Too few models are left that did not diverge."]
    if reason := here["fails"].iloc[0]:
        return [f"No front is drawn, as the audit judges nobody here: {reason}."]
    labels = {method.name: method.label for method in entry.methods}
    counted = here[here["front"]].groupby("method", sort=False)["cost"].nunique()
    costs = here[here["spent"].notna()]["cost"].nunique()
    always = [labels[str(name)] for name, number in counted.items() if number == costs]
    out = {*counted.index, *alone, *(method.name for method in entry.methods if method.control)}
    never = [labels[name] for name in here["method"].unique() if name not in out]
    said = [f"On every front: {in_a_row(always)}."] if always else []
    said += [f"On none: {in_a_row(never)}."] if never else []
    return said + unjudged(entry, alone)


def _alone(frame: pd.DataFrame, entry: Entry, scenario: Scenario, metric: Metric) -> set[str]:
    """Return the methods that the audit with this metric cannot judge; none where it only describes."""
    audit = next(one for one in audits(frame, entry, scenario) if metric.name in one.audit.metrics)
    return uncontrolled(entry, scenario) if audit.found else set()


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Return a row of panels for each scenario and score: a marker for each method, and the front as a line."""
    groups = [(scenario, metric) for scenario in entry.scenarios for metric in entry.metrics]
    figure, cells = drawing.panels(len(groups) * len(COSTS), 1, 2.1)
    axes = [[axis for [axis] in cells[k : k + len(COSTS)]] for k in range(0, len(cells), len(COSTS))]
    styles = drawing.looks(_shown(entry))
    for row, (scenario, metric) in zip(axes, groups, strict=True):
        drawing.head(row[0], entry.heading_of(scenario.label), drawing.BESIDE)
        for axis, (cost, label) in zip(row, COSTS.items(), strict=True):
            here = found[
                (found["scenario"] == scenario.name) & (found["metric"] == metric.name) & (found["cost"] == cost)
            ]
            points = [
                Point(next(m for m in entry.methods if m.name == name), value, left)
                for name, value, left in here[["method", "spent", "left"]].dropna().itertuples(index=False)
            ]
            _draw(axis, points, styles, fails=bool(len(here) and here["fails"].iloc[0]))
            axis.set(xlabel=label, ylabel=metric.label)
    marks = [
        Line2D([], [], label=method.marked, **styles[method.name].point(not _reference(method)))
        for method in _shown(entry)
    ]
    drawing.legend(figure, [*marks, Line2D([], [], label="front: none is better in both", **FRONT)])
    return figure


def _reference(method: Method) -> bool:
    return bool(method.left or method.control)


def _draw(axis: Axes, points: Sequence[Point], styles: Mapping[str, drawing.Look], fails: bool) -> None:
    positive = [point.cost for point in points if point.cost > 0 and not point.method.control]
    if positive:
        low, high = min(positive), max(positive)
        if high > SPREAD * low:
            axis.set_xscale("symlog", linthresh=low, linscale=0.5)
            decades = [10.0**k for k in range(ceil(log10(low)), floor(log10(high)) + 1)]
            axis.set_xticks([0, *decades[:: ceil(len(decades) / 3)]])
            axis.set_xlim(-0.15 * low, 2 * high)
        else:
            axis.set_xlim(-0.06 * high, 1.08 * high)
            axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.minorticks_off()
    axis.xaxis.set_major_formatter(lambda value, _: amount(value))
    for method, cost, left in points:
        grey = {"color": GREY} if fails else {}
        axis.plot(cost, left, **styles[method.name].point(not _reference(method), clip_on=False, zorder=3, **grey))
    best = [] if fails else front(points)
    if best:
        steps = [[point.cost for point in best], [point.left for point in best]]
        axis.plot(*steps, drawstyle="steps-post", zorder=2, **FRONT)
    axis.margins(y=0.08)


def amount(value: float) -> str:
    """Return a number as it stands at an axis: 0.1, 100, 10k, 1M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"
