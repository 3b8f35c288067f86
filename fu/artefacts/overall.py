"""All methods over several forgotten clients: like retraining or not, better than fine-tuning or not, and their costs.

`x` names the coordinate of scenarios that says which client is forgotten; scenarios of one client differ in their
partition. `against` names repeats of retraining. Differences are paired by client, partition and seed: from the mean of
the repeats, and from fine-tuning. Each client counts with its mean. Confidence intervals are Student's t over clients,
wider where clients form two groups, with a simultaneous level of 95% for all differences of the table (Bonferroni).
They hold for further clients with the same seeds. Attack success rates are compared in runs in which the backdoor took
hold in the original model, which need not be of the same seeds for all clients.
"""

from collections.abc import Collection, Mapping
from itertools import product
from math import inf, isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fu.artefacts import drawing, notes, words
from fu.artefacts.entry import ORIGINAL, Entry, Method, Metric
from fu.artefacts.floor import DIGITS, gap, noise_floor
from fu.artefacts.matrix import BEFOREHAND, final, repeats
from fu.artefacts.panels import LIKE, grid
from fu.artefacts.pareto import Point, front
from fu.artefacts.result import Result, of_table
from fu.artefacts.spending import SPENT
from fu.artefacts.statistics import evaluated
from fu.artefacts.words import BACKDOOR, plus_minus, took_hold

INPUTS = ("evaluations", "costs")
REPEATS = 2  # the least number of repeats per training in `against`
NEEDS = ("against", "x")
COSTS = ("client_rounds", "seconds")
ALSO = ("asr", "client_rounds", "seconds")
BASELINE = "fine_tuning"  # the plug-in that a method should beat
ERROR = 0.05  # family-wise error rate of the intervals
RETRAINING, FINE_TUNING = "retraining", "fine-tuning"  # what a difference is from
SIMILAR, UNLIKE, BETTER, WORSE, UNDECIDED = "like retraining", "unlike retraining", "better", "worse", "undecided"
COLUMNS = ["method", "metric", "against", "mean", "low", "high", "margin", "verdict", "clients", "runs"]
COLUMNS += ["std_clients", "std_seeds"]
BLACK: dict[str, Any] = {"color": "0.25", "marker": "o", "markersize": 3, "linestyle": "none"}
SIGNS = {
    UNLIKE: BLACK,
    SIMILAR: {**BLACK, "markerfacecolor": "0.7"},
    UNDECIDED: {**BLACK, "markerfacecolor": "white"},
}
NOTHING = "–"
LINE: dict[str, Any] = {"color": "0.25", "linewidth": 1}
BAND: dict[str, Any] = {"color": "0.9", "linewidth": 0}
READ = (
    "Differences are means over {clients} clients. In parentheses: confidence intervals over clients (for further "
    "clients with the same seeds), 95% for all {number} differences of the table together. Margin: one more retraining "
    f"of a client and seed differs from the mean of their repeats by at most this in 95% of cases. {LIKE}, grey: like "
    "retraining (the interval lies within the margin). Bold: unlike retraining (it lies outside). Otherwise undecided."
)
SPREAD = "Deviations: of the clients' mean differences from retraining, and of the seeds of a client, pooled."
BEATS = (
    "Differences from fine-tuning: bold if better, marked if worse, as the interval excludes 0; in the column “better "
    "than fine-tuning” bold only if the method costs no more client rounds."
)
COST = (
    f"Costs are those of unlearning and post-training, means over runs. {BEFOREHAND} Bold: on the Pareto front of "
    "client rounds and the distance from retraining in {metric}. Methods with post-training have the same number of "
    "rounds after the request: those that unlearn in fewer have more for post-training."
)
CHOSEN = (
    "Grid: number of settings from which each method's were chosen{rule}. Methods without "
    "post-training are chosen by their final models."
)
LOST = "A method is not judged if for some client all of its runs diverged, or the backdoor took hold in none."
HELD = (
    "The backdoor took hold in {held} of {all} original models"
    f" (ASR of {words.LEAST:g} at least); attack success rates are compared in those runs alone, so that the seeds may "
    "differ between clients."
)

RUN = ["client", "scenario", "seed"]
Costs = Mapping[str, Mapping[str, float]]  # mean costs by method
Labels = Mapping[str, str]  # of the methods


class Difference(NamedTuple):
    """Mean difference of a method over clients, its confidence interval, the margin (NaN: none) and the verdict.

    `std_clients`: deviation of the clients' means; `std_seeds`: of a client's seeds, pooled; NaN where there is one.
    """

    mean: float
    low: float
    high: float
    margin: float
    verdict: str
    clients: int
    runs: int
    std_clients: float
    std_seeds: float


Differences = dict[tuple[str, str, str], Difference]  # by method, metric and what they are from


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return verdicts, differences and costs of every method, and a picture of the differences from retraining."""
    values = values_of(frame, entry)
    gone = without_backdoor(frame)
    known = differences(values, entry, gone)
    spent = values[values["metric"].isin(COSTS)].groupby(["method", "metric"])["value"].mean()
    costs = {method.name: spent.get(method.name, {}) for method in _shown(entry)}
    rows = [{"method": key[0], "metric": key[1], "against": key[2], **one._asdict()} for key, one in known.items()]
    rows += [
        {"method": name, "metric": metric, "mean": of[metric]}
        for name, of in costs.items()
        for metric in COSTS
        if metric in of
    ]
    labels = _labels(entry, values)
    tables = {
        "verdicts": _verdicts(entry, labels, known, costs),
        "difference from retraining": _table(entry, labels, known, RETRAINING),
    }
    if _baseline(entry):
        tables["difference from fine-tuning"] = _table(entry, labels, known, FINE_TUNING)
    tables["deviation over clients, over seeds"] = _spread(entry, labels, known)
    shown = [(f"{_family(entry)}: {label}", table) for label, table in tables.items()]
    names = tuple(label.replace(",", "").replace(" ", "-") for label in tables)
    clients = len({scenario.at[str(entry.x)] for scenario in entry.scenarios})
    planned = len(entry.scenarios) * len(entry.seeds)
    text = notes.joined(
        entry,
        READ.format(clients=clients, number=len(known)),
        BEATS if _baseline(entry) else "",
        SPREAD,
        COST.format(metric=_tested(entry)[0].label),
        CHOSEN.format(rule=f": {entry.rule}" if entry.rule else ""),
        LOST if any(one.clients < clients for one in known.values()) else "",
        HELD.format(held=planned - len(gone), all=planned) if gone else "",
    )
    return of_table(pd.DataFrame(rows, columns=COLUMNS), shown, text, names=names, figure=_picture(entry, known))


def values_of(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return method, metric, client, scenario, seed and value of all final models, without runs that diverged."""
    rows, parts = evaluated(frame).rows, []
    for scenario, method in product(entry.scenarios, entry.methods):
        trial = entry.trial(scenario.name, method)
        here = (rows["scenario"] == scenario.name) & (rows["method"] == method.name) & (rows["trial"] == trial.name)
        last = final(rows[here], trial)
        about = {"scenario": scenario.name, "method": method.name}
        parts.append(
            last[last["client"].isna() & last["value"].notna()].assign(**about, client=scenario.at[str(entry.x)])
        )
    return pd.concat(parts)


def without_backdoor(frame: pd.DataFrame) -> set[tuple[str, int]]:
    """Return the scenarios and seeds in which the backdoor did not take hold in the original model."""
    rows = frame[(frame["stage"] == ORIGINAL) & (frame["metric"] == "asr") & frame["value"].notna()]
    means = rows.groupby(["scenario", "seed"])["value"].mean().reset_index()
    return {(scenario, seed) for scenario, seed, asr in means.itertuples(index=False) if not took_hold(asr)}


def differences(values: pd.DataFrame, entry: Entry, gone: Collection[tuple[str, int]]) -> Differences:
    """Return the differences of all methods from retraining and from fine-tuning, with simultaneous intervals.

    `gone`: scenarios and seeds without a backdoor, which attack success rates leave out.
    """
    paired: dict[tuple[str, str, str], pd.Series[float]] = {}
    margins: dict[tuple[str, str], float] = {}
    baseline, first = _baseline(entry), entry.scenarios[0]
    again = repeats(entry, first)
    for metric in _tested(entry):
        of = values[values["metric"] == metric.name].pivot(index=RUN, columns="method", values="value")
        of = of.reindex(columns=[method.name for method in entry.methods])
        if metric.name in BACKDOOR:
            of = of[[(scenario, seed) not in gone for _, scenario, seed in of.index]]
        for method in _shown(entry):
            retrained = of[again[entry.trial(first.name, method).trained].names]
            away = (of[method.name] - retrained.mean(axis=1)).dropna()
            paired[method.name, metric.name, RETRAINING] = away
            margins[method.name, metric.name] = _margin(
                [row.dropna().tolist() for _, row in retrained.loc[away.index].iterrows()]
            )
            if baseline and baseline.name != method.name and metric.better != "neither":
                paired[method.name, metric.name, FINE_TUNING] = (of[method.name] - of[baseline.name]).dropna()
    signs = {metric.name: 1 if metric.better == "higher" else -1 for metric in entry.metrics}
    clients = {scenario.at[str(entry.x)] for scenario in entry.scenarios}
    known: Differences = {}
    for (name, metric_name, reference), runs in paired.items():
        of_clients = runs.groupby(level="client", sort=False).mean()
        of_seeds = runs.groupby(level=["client", "scenario"], sort=False).var()  # a client's partitions apart
        means, spread = of_clients.tolist(), (float(of_clients.std()), float(of_seeds.mean()) ** 0.5)
        low, high = _interval(means, ERROR / len(paired)) if len(means) == len(clients) else (nan, nan)
        if reference == RETRAINING:
            margin = margins[name, metric_name]
            word = similar(low, high, margin)
        else:
            margin = nan
            word = better(low, high, signs[metric_name])
        mean = fmean(means) if means else nan
        known[name, metric_name, reference] = Difference(mean, low, high, margin, word, len(means), len(runs), *spread)
    return known


def similar(low: float, high: float, margin: float) -> str:
    """Return whether an interval shows a method to be like retraining, unlike it, or neither."""
    if -margin <= low and high <= margin:
        return SIMILAR
    return UNLIKE if low > margin or high < -margin else UNDECIDED


def better(low: float, high: float, sign: int) -> str:
    """Return whether an interval shows a method to be better or worse; `sign`: that of an improvement."""
    low, high = (low, high) if sign > 0 else (-high, -low)
    return BETTER if low > 0 else WORSE if high < 0 else UNDECIDED


def _interval(means: list[float], error: float) -> tuple[float, float]:
    """Return the confidence interval of the mean over clients; NaN for fewer than `LEAST`, or if all are equal."""
    from fu.claims.testing import LEAST, Mean  # half a second that others need not pay

    return Mean(np.array(means).round(DIGITS)).ends(error / 2) if len(means) >= LEAST else (nan, nan)


def _margin(several: list[list[float]]) -> float:
    """Return the margin within which one more repeat lies around the mean of the others in 95% of cases."""
    floor = noise_floor(dict(enumerate(several)))
    return max((gap(floor, {run: mean}).half_width for run, mean in floor.means.items()), default=nan)


def _family(entry: Entry) -> str:
    """Return the label that the scenarios share."""
    return entry.scenarios[0].family or entry.scenarios[0].label


def _shown(entry: Entry) -> list[Method]:
    return [method for method in entry.methods if method.name not in entry.against]


def _tested(entry: Entry) -> list[Metric]:
    return [metric for metric in entry.metrics if metric.name not in SPENT]  # costs are not tested


def _baseline(entry: Entry) -> Method | None:
    return next((method for method in _shown(entry) if method.plugin == BASELINE), None)


def _labels(entry: Entry, values: pd.DataFrame) -> dict[str, str]:
    """Return the labels of the methods, with the number of runs that diverged."""
    runs = values[values["metric"] == _tested(entry)[0].name].groupby("method").size()
    planned = len(entry.scenarios) * len(entry.seeds)
    lost = {method.name: planned - runs.get(method.name, 0) for method in _shown(entry)}
    return {
        method.name: method.marked + (f" ({lost[method.name]} of {planned} diverged)" if lost[method.name] else "")
        for method in _shown(entry)
    }


def _verdicts(entry: Entry, labels: Labels, known: Differences, costs: Costs) -> pd.DataFrame:
    """Return a row for each method: the metrics with each verdict, its costs, and the size of its grid."""
    first, baseline = _tested(entry)[0].name, _baseline(entry)
    rounds = {name: of["client_rounds"] for name, of in costs.items() if "client_rounds" in of}
    away = {method: abs(one.mean) for (method, *key), one in known.items() if key == [first, RETRAINING]}
    points = [
        Point(method, rounds[method.name], away[method.name]) for method in _shown(entry) if method.name in rounds
    ]
    best = {point.method.name for point in front(point for point in points if not isnan(point.left))}
    rows = []
    for method in _shown(entry):
        row = {"Method": labels[method.name]}
        row |= {f"{word.capitalize()} in": _where(entry, known, method, RETRAINING, word) for word in (SIMILAR, UNLIKE)}
        if baseline:
            text = _where(entry, known, method, FINE_TUNING, BETTER)
            dearer = rounds.get(method.name, inf) > rounds.get(baseline.name, 0)
            row["Better than fine-tuning in"] = text if dearer or text == NOTHING else f"**{text}**"
            row["Worse in"] = _where(entry, known, method, FINE_TUNING, WORSE)
        text = f"{rounds[method.name]:.4g}" if method.name in rounds else "–"
        row["Client rounds"] = f"**{text}**" if method.name in best else text
        if baseline:
            both = method.name in rounds and rounds.get(baseline.name)
            row["× fine-tuning"] = f"{rounds[method.name] / rounds[baseline.name]:.2f}" if both else "–"
        seconds = costs[method.name].get("seconds")
        row["Seconds"] = "–" if seconds is None else f"{seconds:.3g}"
        row["Grid"] = str(max(map(len, method.trials.values())))
        rows.append(row)
    return grid(rows)


def _where(entry: Entry, known: Differences, method: Method, reference: str, word: str) -> str:
    """Return the labels of the metrics for which a method has this verdict."""
    of = {metric.label: known.get((method.name, metric.name, reference)) for metric in _tested(entry)}
    return ", ".join(label for label, one in of.items() if one and one.verdict == word) or NOTHING


def _table(entry: Entry, labels: Labels, known: Differences, reference: str) -> pd.DataFrame:
    rows = []
    for method in _shown(entry):
        of = {metric: known.get((method.name, metric.name, reference)) for metric in _tested(entry)}
        cells = {metric.label: _cell(metric, one) for metric, one in of.items() if one}
        rows += [{"Method": labels[method.name], **cells}] if cells else []
    return grid(rows)


def _spread(entry: Entry, labels: Labels, known: Differences) -> pd.DataFrame:
    """Return a row for each method: how its differences from retraining vary over clients, and over seeds."""
    rows = []
    for method in _shown(entry):
        row = {"Method": labels[method.name]}
        for metric in _tested(entry):
            one, digits = known[method.name, metric.name, RETRAINING], 3 if metric.unit == "fraction" else 2
            row[metric.label] = ", ".join(plus_minus(std, digits=digits) for std in (one.std_clients, one.std_seeds))
        rows.append(row)
    return grid(rows)


def _cell(metric: Metric, one: Difference) -> str:
    digits = 3 if metric.unit == "fraction" else 2
    low, mean, high = (plus_minus(value, digits=digits) for value in (one.low, one.mean, one.high))
    text = mean if isnan(one.low) else f"{mean} ({low} to {high})"
    if one.verdict in (UNLIKE, BETTER):
        return f"**{text}**"
    return text + {SIMILAR: f" {LIKE}", WORSE: " (worse)"}.get(one.verdict, "")


def _picture(entry: Entry, known: Differences) -> Figure:
    """Draw the differences from retraining with their intervals and margins, a panel for each metric.

    Controls do not set the scale; those that lie outside are arrows at its edge.
    """
    methods, metrics = _shown(entry), _tested(entry)
    figure, cells = drawing.panels(len(metrics), 1, 0.2 * len(methods) + 0.9)
    for [axis], metric in zip(cells, metrics, strict=True):
        every = [known[method.name, metric.name, RETRAINING] for method in methods]
        scaled = [one for method, one in zip(methods, every, strict=True) if not method.control] or every
        ends = [value for one in scaled for value in (one.low, one.mean, one.high, one.margin, -one.margin)]
        left, right = np.nanmin([0, *ends]), np.nanmax([0, *ends])
        around = 0.05 * (right - left) or 1
        axis.set_xlim(left - around, right + around)
        for place, one in enumerate(every):
            if not isnan(one.margin):
                axis.fill_betweenx([place - 0.5, place + 0.5], -one.margin, one.margin, zorder=0, **BAND)
            if not isnan(one.low):
                axis.hlines(place, one.low, one.high, **LINE)
            sign = SIGNS[one.verdict]
            if not left <= one.mean <= right:
                sign = {**sign, "marker": "<" if one.mean < left else ">", "markersize": 5}
            axis.plot(np.clip(one.mean, left, right), place, **sign)
        axis.axvline(0, color="0.4", linewidth=0.6, zorder=0)
        axis.set_yticks(range(len(methods)), [method.marked for method in methods])
        axis.set_ylim(len(methods) - 0.5, -0.5)
        drawing.head(axis, entry.heading_of(f"{_family(entry)}: {metric.label}"))
        axis.set_xlabel("difference from retraining")
        axis.xaxis.set_major_locator(MaxNLocator(4))
    signs = [Line2D([], [], label=word, **sign) for word, sign in SIGNS.items()]
    off = Line2D([], [], label="control, off the scale", **{**BLACK, "marker": "<", "markersize": 5})
    lines = [Line2D([], [], label="interval over clients", **LINE), Patch(label="margin: 95% of retrainings", **BAND)]
    drawing.legend(figure, [*signs, *([off] if any(method.control for method in methods) else []), *lines])
    return figure
