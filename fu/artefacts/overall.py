"""All methods over several forgotten clients: like retraining or not, better than fine-tuning or not, at what cost.

`x` names the coordinate of scenarios that tells which client is forgotten; scenarios of one client differ in their
partition. `against` names repeats of retraining. A difference is that of one client, partition and seed: from the mean
of the repeats that share them, or from fine-tuning. A method is judged by its mean for each client; intervals are
Student's t over clients, at 95% for all differences of the table together (Bonferroni).
"""

from collections.abc import Mapping
from math import isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fu.artefacts import drawing, notes
from fu.artefacts.audit import BLACK
from fu.artefacts.entry import Entry, Method, Metric
from fu.artefacts.floor import DIGITS, gap, noise_floor
from fu.artefacts.matrix import final, repeats
from fu.artefacts.panels import LIKE, grid
from fu.artefacts.pareto import Point, front
from fu.artefacts.result import Result, of_table
from fu.artefacts.spending import SPENT
from fu.artefacts.statistics import evaluated
from fu.artefacts.words import plus_minus

INPUTS = ("evaluations", "costs")
REPEATS = 2  # that `against` names at least, of each training
NEEDS = ("against", "x")
ALSO = ("client_rounds", "seconds")
BASELINE = "fine_tuning"  # the plug-in that a method should beat
OUTSIDE = 0.05  # chance that any of the table's intervals misses its mean
FROM_RETRAINING, FROM_BASELINE = "retraining", "fine-tuning"
LIKELY, BEYOND, BETTER, WORSE, UNDECIDED = "like retraining", "beyond retraining", "better", "worse", "undecided"
COLUMNS = ["method", "metric", "against", "mean", "low", "high", "margin", "verdict", "clients", "runs"]
BAND = "0.9"
SIGNS: dict[str, dict[str, Any]] = {
    BEYOND: BLACK,
    LIKELY: {**BLACK, "markerfacecolor": "0.7"},
    UNDECIDED: {**BLACK, "markerfacecolor": "white"},
}
READ = (
    "Differences: mean over {clients} clients of the mean over seeds and partitions. In parentheses: their intervals "
    "over clients, 95% for all {number} differences together. Margin: how far one further retraining lies from the "
    f"others with 95%. {LIKE}, grey: like retraining, as the interval lies within the margin. Bold: beyond it. Plain: "
    "undecided."
)
BEATS = "Against fine-tuning, bold: better, as the interval excludes 0. “(worse)”: the other way round."
COST = (
    "Costs add up unlearning and post-training, mean over clients and seeds. Bold: on the front of client rounds "
    "against the distance from retraining in {metric}. Points: how many settings of its grid a method was chosen from."
)
LOST = "A client of whom a method has no model that did not diverge leaves it without a verdict."


class Difference(NamedTuple):
    """Mean difference of a method, its interval over clients, the margin (NaN: none), the verdict, and numbers."""

    mean: float
    low: float
    high: float
    margin: float
    verdict: str
    clients: int
    runs: int


Runs = dict[tuple[str, int], float]  # values by scenario and seed
Values = Mapping[tuple[str, str], Runs]  # of a method and a metric
Labels = Mapping[str, str]
Found = dict[tuple[str, str, str], Difference]  # by method, metric and what it is compared with


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return verdicts, differences and costs of every method, and a picture of the differences from retraining."""
    values = values_of(frame, entry)
    found = differences(values, entry)
    rows = [{"method": key[0], "metric": key[1], "against": key[2], **one._asdict()} for key, one in found.items()]
    costs = {method.name: _costs(values, method) for method in _shown(entry)}
    rows += [
        {"method": name, "metric": metric, "mean": value} for name, of in costs.items() for metric, value in of.items()
    ]
    labels = _labels(entry, values)
    tables = {
        "verdicts": _verdicts(entry, labels, found, costs),
        "difference from retraining": _table(entry, labels, found, FROM_RETRAINING),
    }
    if _baseline(entry):
        tables["difference from fine-tuning"] = _table(entry, labels, found, FROM_BASELINE)
    shown = [(f"{_family(entry)}: {label}", table) for label, table in tables.items()]
    names = tuple(label.replace(" ", "-") for label in tables)
    clients = len({_client(entry, scenario.name) for scenario in entry.scenarios})
    text = notes.joined(
        entry,
        READ.format(clients=clients, number=len(found)),
        BEATS if _baseline(entry) else "",
        COST.format(metric=entry.metrics[0].label),
        LOST if any(one.clients < clients for one in found.values()) else "",
        notes.no_backdoor(entry, notes.original_asr(frame)),
    )
    return of_table(pd.DataFrame(rows, columns=COLUMNS), shown, text, names=names, figure=_picture(entry, found))


def values_of(frame: pd.DataFrame, entry: Entry) -> Values:
    """Return the values of every final model, and its costs, by method and metric; without seeds that diverged."""
    known, values = evaluated(frame).rows, dict[tuple[str, str], Runs]()
    for scenario in entry.scenarios:
        here = known[known["scenario"] == scenario.name]
        for method in entry.methods:
            trial = entry.trial(scenario.name, method)
            last = final(here[(here["method"] == method.name) & (here["trial"] == trial.name)], trial)
            last = last[last["client"].isna() & last["value"].notna()]
            for metric, seed, value in zip(last["metric"], last["seed"], last["value"], strict=True):
                values.setdefault((method.name, metric), {})[scenario.name, seed] = value
    return values


def differences(values: Values, entry: Entry) -> Found:
    """Return every method's differences from retraining and from fine-tuning, judged together."""
    own, margins, shown = {}, {}, _shown(entry)
    baseline = _baseline(entry)
    again = {method.name: _repeats(entry, method) for method in shown}
    for metric in _judged(entry):
        for method in shown:
            runs, key = values.get((method.name, metric.name), {}), (method.name, metric.name)
            several = [values.get((name, metric.name), {}) for name in again[method.name]]
            common = {run: [one[run] for one in several if run in one] for run in runs}
            margins[key] = _margin([one for one in common.values() if one])
            own[*key, FROM_RETRAINING] = {run: runs[run] - fmean(one) for run, one in common.items() if one}
            if baseline and baseline != method and metric.better != "neither":
                least = values.get((baseline.name, metric.name), {})
                own[*key, FROM_BASELINE] = {run: value - least[run] for run, value in runs.items() if run in least}
    better = {metric.name: 1 if metric.better == "higher" else -1 for metric in entry.metrics}
    wanted = len({_client(entry, scenario.name) for scenario in entry.scenarios})
    found: Found = {}
    for (name, of, against), paired in own.items():
        clients: dict[Any, list[float]] = {}
        for (place, _), value in paired.items():
            clients.setdefault(_client(entry, place), []).append(value)
        means = [fmean(values) for values in clients.values()]
        low, high = _interval(means, OUTSIDE / len(own)) if len(means) == wanted else (nan, nan)
        from_retraining = against == FROM_RETRAINING
        margin = margins[name, of] if from_retraining else nan
        word = verdict(low, high, margin, 0 if from_retraining else better[of])
        mean = fmean(means) if means else nan
        found[name, of, against] = Difference(mean, low, high, margin, word, len(means), len(paired))
    return found


def verdict(low: float, high: float, margin: float, better: int) -> str:
    """Return the verdict of an interval: against a margin around 0, or where `better` is a sign against 0 itself."""
    if better:
        low, high = (low, high) if better > 0 else (-high, -low)
        return BETTER if low > 0 else WORSE if high < 0 else UNDECIDED
    if -margin <= low and high <= margin:
        return LIKELY
    return BEYOND if low > margin or high < -margin else UNDECIDED


def _interval(means: list[float], outside: float) -> tuple[float, float]:
    """Return the interval of a mean over clients; NaN of too few, or where all are equal."""
    from fu.claims.testing import LEAST, Mean  # half a second that others need not pay

    return Mean(np.array(means).round(DIGITS)).ends(outside / 2) if len(means) >= LEAST else (nan, nan)


def _margin(several: list[list[float]]) -> float:
    """Return how far one further repeat lies from the mean of the others at most, with 95%."""
    floor = noise_floor(dict(enumerate(several)))
    return max((gap(floor, {run: mean}).half_width for run, mean in floor.means.items()), default=nan)


def _family(entry: Entry) -> str:
    """Return what the scenarios are called without their coordinates."""
    return entry.scenarios[0].family or entry.scenarios[0].label


def _client(entry: Entry, scenario: str) -> Any:
    return entry.scenario(scenario).at[str(entry.x)]


def _shown(entry: Entry) -> list[Method]:
    return [method for method in entry.methods if method.name not in entry.against]


def _judged(entry: Entry) -> list[Metric]:
    """Return the metrics that are no costs, which are not tested."""
    return [metric for metric in entry.metrics if metric.name not in SPENT]


def _labels(entry: Entry, values: Values) -> dict[str, str]:
    """Return the methods' labels, each with how many of its runs diverged."""
    first, wanted, labels = _judged(entry)[0].name, len(entry.scenarios) * len(entry.seeds), {}
    for method in _shown(entry):
        lost = wanted - len(values.get((method.name, first), {}))
        labels[method.name] = method.marked + (f" ({lost} of {wanted} diverged)" if lost else "")
    return labels


def _baseline(entry: Entry) -> Method | None:
    return next((method for method in _shown(entry) if method.plugin == BASELINE), None)


def _repeats(entry: Entry, method: Method) -> list[str]:
    """Return the repeats of retraining of the training that a method starts from."""
    scenario = entry.scenarios[0]
    return repeats(entry, scenario)[entry.trial(scenario.name, method).trained].names


def _costs(values: Values, method: Method) -> dict[str, float]:
    several = {metric: values.get((method.name, metric), {}).values() for metric in ALSO}
    return {metric: fmean(of) for metric, of in several.items() if of}


def _verdicts(entry: Entry, labels: Labels, found: Found, costs: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return a row for each method: where it is like retraining, beyond it, better than fine-tuning; its costs."""
    first, rows = _judged(entry)[0].name, []
    points = [
        Point(method, costs[method.name]["client_rounds"], abs(found[method.name, first, FROM_RETRAINING].mean))
        for method in _shown(entry)
        if "client_rounds" in costs[method.name]
    ]
    best = {point.method.name for point in front(point for point in points if not isnan(point.left))}
    baseline = _baseline(entry)
    least = costs[baseline.name].get("client_rounds") if baseline else None
    for method in _shown(entry):
        row = {"Method": labels[method.name]}
        row["Like retraining in"] = _where(entry, found, method, FROM_RETRAINING, LIKELY)
        row["Beyond retraining in"] = _where(entry, found, method, FROM_RETRAINING, BEYOND)
        if least:
            row["Better than fine-tuning in"] = _where(entry, found, method, FROM_BASELINE, BETTER)
            row["Worse in"] = _where(entry, found, method, FROM_BASELINE, WORSE)
        rounds, seconds = (costs[method.name].get(metric, nan) for metric in ALSO)
        text = _amount(rounds, "{:.4g}")
        row["Client rounds"] = f"**{text}**" if method.name in best else text
        if least:
            row["× fine-tuning"] = _amount(rounds / least, "{:.2f}")
        row["Seconds"] = _amount(seconds, "{:.3g}")
        row["Points"] = str(max(map(len, method.trials.values())))
        rows.append(row)
    return grid(rows)


def _where(entry: Entry, found: Found, method: Method, against: str, word: str) -> str:
    """Return the metrics in which a method has a verdict."""
    of = {metric.label: found.get((method.name, metric.name, against)) for metric in _judged(entry)}
    return ", ".join(label for label, one in of.items() if one and one.verdict == word) or "–"


def _amount(value: float, form: str) -> str:
    return "–" if isnan(value) else form.format(value)


def _table(entry: Entry, labels: Labels, found: Found, against: str) -> pd.DataFrame:
    rows = []
    for method in _shown(entry):
        row = {"Method": labels[method.name]}
        for metric in _judged(entry):
            if (one := found.get((method.name, metric.name, against))) is not None:
                row[metric.label] = _cell(metric, one)
        if len(row) > 1:
            rows.append(row)
    return grid(rows)


def _cell(metric: Metric, one: Difference) -> str:
    digits = 3 if metric.unit == "fraction" else 2
    low, mean, high = (plus_minus(value, digits=digits) for value in (one.low, one.mean, one.high))
    text = f"{mean} ({low} to {high})" if not isnan(one.low) else mean
    if one.verdict in (BEYOND, BETTER):
        return f"**{text}**"
    return text + {LIKELY: f" {LIKE}", WORSE: " (worse)"}.get(one.verdict, "")


def _picture(entry: Entry, found: Found) -> Figure:
    """Draw the differences from retraining with their intervals, over the margin, a panel for each metric."""
    methods, metrics = _shown(entry), _judged(entry)
    tall = 0.2 * len(methods) + 0.9
    figure, cells = drawing.panels(len(metrics), 1, tall)
    for [axis], metric in zip(cells, metrics, strict=True):
        margins = [found[method.name, metric.name, FROM_RETRAINING].margin for method in methods]
        for place, (method, margin) in enumerate(zip(methods, margins, strict=True)):
            one = found[method.name, metric.name, FROM_RETRAINING]
            if not isnan(margin):
                axis.fill_betweenx([place - 0.5, place + 0.5], -margin, margin, color=BAND, linewidth=0, zorder=0)
            if not isnan(one.low):
                axis.hlines(place, one.low, one.high, color="0.25", linewidth=1)
            axis.plot(one.mean, place, **SIGNS[one.verdict])
        axis.axvline(0, color="0.4", linewidth=0.6, zorder=0)
        axis.set_yticks(range(len(methods)), [method.marked for method in methods])
        axis.set_ylim(len(methods) - 0.5, -0.5)
        drawing.head(axis, entry.heading_of(f"{_family(entry)}: {metric.label}"))
        axis.set_xlabel("difference from retraining")
    marks = [
        *(Line2D([], [], label=word, **sign) for word, sign in SIGNS.items()),
        Line2D([], [], label="interval over clients", color="0.25", linewidth=1),
        Patch(color=BAND, label="95% of further retrainings"),
    ]
    drawing.legend(figure, marks)
    return figure
