"""Cost of a method against what it leaves behind: a panel per cost, with the Pareto front.

Costs are those of unlearning and post-training together (`spending`), mean over repeats. Points are methods, and as
references one more retraining, of which nothing is left, and doing nothing, which is on no front.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from math import floor, isnan, log10, nan
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fu.artefacts import drawing, notes
from fu.artefacts.auditing import Judged, audits, counted, diverged, marked, silent, tested, uncontrolled
from fu.artefacts.entry import Entry, Method, Metric, Scenario
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.spending import spent

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
GREY = "0.78"  # of a method that the audit does not judge
SPREAD = 10  # between the least and the largest cost, from where on the axis is logarithmic
FRONT: dict[str, Any] = {"color": "0.5", "linewidth": 1.2}


READ = (
    "Lower left is better: less cost, less left. Costs are sums over unlearning and post-training (bytes stored: the "
    "larger of both), mean over repeats; one that diverged counts as far as it ran. Bold, on the front: no other beats "
    "it in cost or score without being worse in the other; left out are doing nothing, and a method of which more runs "
    "diverged than of a control. Scores are estimates: neighbours "
    "on a front may be tied."
)


class Point(NamedTuple):
    """A method in a panel."""

    method: Method
    cost: float
    left: float


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return every method's costs beside its scores, and who is on a front."""
    found, shown, words = tidy(frame, entry), [], []
    for scenario, metric in product(entry.scenarios, entry.metrics):
        here = found[(found["scenario"] == scenario.name) & (found["metric"] == metric.name)]
        audit = _audit(frame, entry, scenario, metric)
        labels = counted(frame, entry, scenario)
        shown.append((f"{scenario.label}: {metric.label}", _table(here, entry, metric, bool(audit.audit.p), labels)))
        fails = silent(entry, metric.label, audit.fails)
        words.append(fails if len(here) else ["Too few models are left that did not diverge."])
    names = tuple(f"{scenario.name}-{metric.name}" for scenario, metric in product(entry.scenarios, entry.metrics))
    devices = "; ".join(sorted({str(one) for one in frame["device"].dropna()}))
    timed = f"Seconds: {devices}; they differ from run to run." if devices else ""
    return of_table(found, shown, notes.joined(entry, READ, timed), words, names, _picture(entry, found))


def tidy(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, score, method and cost; `fails`: why no method is judged by the audit."""
    rows = []
    for scenario, metric in product(entry.scenarios, entry.metrics):
        here, audit = frame[frame["scenario"] == scenario.name], _audit(frame, entry, scenario, metric)
        scores = {method: of[metric.name] for method, of in audit.values.items() if metric.name in of}
        shown = [method for method in _shown(entry) if method.name in scores]
        spends = {one.name: spent(here[here["method"] == one.name]).groupby("metric")["value"].mean() for one in shown}
        out = (uncontrolled(entry) if audit.audit.p else set()) | diverged(frame, entry, scenario)
        for cost in COSTS:
            points = [Point(one, float(spends[one.name].get(cost, nan)), scores[one.name]) for one in shown]
            judged = [point for point in points if point.method.reference not in audit.fails]
            best = front(point for point in judged if point.method.name not in out)
            rows += [
                {"scenario": scenario.name, "metric": metric.name, "method": point.method.name, "cost": cost}
                | {"spent": point.cost, "left": point.left, "front": point in best}
                | {"fails": audit.fails.get(point.method.reference, "")}
                for point in points
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _audit(frame: pd.DataFrame, entry: Entry, scenario: Scenario, metric: Metric) -> Judged:
    return next(one for one in audits(frame, entry, scenario) if metric.name in one.audit.metrics)


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
    return [method for method in tested(entry) if not (method.left and method.left[1])]


def _table(here: pd.DataFrame, entry: Entry, metric: Metric, judges: bool, labels: Mapping[str, str]) -> pd.DataFrame:
    rows = []
    for method in _shown(entry):
        own = here[here["method"] == method.name].to_dict("records")
        if own:
            texts = {row["cost"]: "–" if isnan(row["spent"]) else f"{row['spent']:.4g}" for row in own}
            best = {row["cost"] for row in own if row["front"]}
            costs = {COSTS[cost]: f"**{text}**" if cost in best else text for cost, text in texts.items()}
            label = marked(entry, method, judges) + labels[method.name].removeprefix(method.marked)
            rows.append({"Method": label, metric.label: f"{own[0]['left']:.3f}", **costs})
    return grid(rows)


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Return a row of panels for each scenario and score: a marker for each method, and the front as a line."""
    groups = [*product(entry.scenarios, entry.metrics)]
    figure, cells = drawing.panels(len(groups) * len(COSTS), 1, 2.1)
    axes = [axis for [axis] in cells]
    looks = drawing.looks(_shown(entry))
    styles = {method.name: (looks[method.name], method) for method in _shown(entry)}
    for k, (axis, ((scenario, metric), cost)) in enumerate(zip(axes, product(groups, COSTS), strict=True)):
        here = found[(found["scenario"] == scenario.name) & (found["metric"] == metric.name) & (found["cost"] == cost)]
        _draw(axis, here.dropna(subset=["spent", "left"]).sort_values(["spent", "left"]), styles)
        axis.set(xlabel=COSTS[cost], ylabel=metric.label)
        if k % len(COSTS) == 0:
            drawing.head(axis, entry.heading_of(scenario.label), drawing.BESIDE)
    marks = [
        Line2D([], [], label=method.marked, **look.point(not _reference(method))) for look, method in styles.values()
    ]
    drawing.legend(figure, [*marks, Line2D([], [], label="front: none is better in both", **FRONT)])
    return figure


def _reference(method: Method) -> bool:
    return bool(method.left or method.control)


def _draw(axis: Axes, here: pd.DataFrame, styles: Mapping[str, tuple[drawing.Look, Method]]) -> None:
    costs = [cost for name, cost in zip(here["method"], here["spent"], strict=True) if not styles[name][1].control]
    least = min((cost for cost in costs if cost > 0), default=0.0)
    if max(costs, default=0) > SPREAD * least > 0:
        first, last = (floor(log10(cost)) for cost in (least, max(costs)))
        axis.set_xscale("symlog", linthresh=10.0**first, linscale=0.5)
        axis.set_xticks([0, *(10.0**k for k in range(first, last + 1, 1 + (last - first) // 4))])
    else:
        axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.minorticks_off()
    axis.xaxis.set_major_formatter(lambda value, _: amount(value))
    for name, cost, left, fails in here[["method", "spent", "left", "fails"]].itertuples(index=False):
        look, method = styles[name]
        axis.plot(cost, left, **look.point(not _reference(method), zorder=3, **({"color": GREY} if fails else {})))
    best = here[here["front"].astype(bool)]
    if len(best):
        axis.plot(best["spent"], best["left"], drawstyle="steps-post", zorder=2, **FRONT)
    axis.margins(0.08)


def amount(value: float) -> str:
    """Return a number as it stands at an axis: 0.1, 100, 10k, 1M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"
