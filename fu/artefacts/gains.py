"""Gain of one training over another, paired by seed; rows and columns are coordinates (SAFARI Tables 1 and 2).

Panels: the gain over the first training in `against`, the gain over the better of them, and the accuracies themselves
with what was chosen.
"""

from collections.abc import Hashable
from itertools import product
from math import inf, nan, sqrt
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.drawing import number, setting_name
from fu.artefacts.entry import ORIGINAL, Entry
from fu.artefacts.panels import OURS, Panels, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import printed, summary
from fu.artefacts.words import in_a_row, plus_minus
from fu.errors import UserError

INPUTS = ("evaluations",)
TABLE = True
ALSO = ("accuracy",)  # of the last round alone
NEEDS = ("x", "lines", "against")
PUBLISHED = {"metrics": ("gain", "within")}  # within: the paper prints '-', its error bar in points is the value
WITHIN = 2.0  # percentage points: a gain whose interval reaches into [-2, 2] says nothing (SAFARI Tables 1 and 2)
PAPERS_OWN = "– in the paper: “no statistical difference within 2% error bar”."
GAIN, BETTER = "gain", "gain_over_better"
BY_SEED = ("gain", "gain_over_better")
Row = dict[Hashable, Any]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the gains with their intervals, and the accuracies behind them."""
    found, score = collect(frame, entry), entry.metrics[0]
    over = _listed(entry)[0]
    shown: Panels = [(f"Gain over {over}, percentage points", _panel(entry, found, GAIN))]
    names = [GAIN, score.name]
    if len(entry.against) > 1:
        over = f"the better of {in_a_row(_listed(entry))}"
        shown.append((f"Gain over {over}, percentage points", _panel(entry, found, BETTER)))
        names.insert(1, BETTER)
    shown.append((score.label, _panel(entry, found, score.name)))
    return of_table(found, shown, _notes(entry, found), names=tuple(names))


def collect(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, training and metric: coordinates, what its grid sets, mean, std, 95% interval.

    Accuracies are fractions, gains percentage points over `against`. `seeds`: how many a mean is over, `diverged`: how
    many it leaves out. `beyond`: 1 where a gain exceeds `WITHIN` points with its whole interval (of one seed: by its
    number), -1 where a loss does, else 0. `published_within`: the paper's own error bar, where it prints '-'.
    """
    score = entry.metrics[0]
    if score.better != "higher" or score.unit != "fraction":
        raise UserError(f"{entry.artefact}: gains need a fraction that is better when higher; {score.name} is not one.")
    ours, theirs = frame[~frame["published"] & (frame["stage"] == ORIGINAL)], printed(frame, entry)
    paper = theirs.set_index(["scenario", "method", "metric"])["value"].to_dict()
    trainings, settings = [method for method in entry.methods if method.trains], _settings(entry)
    coordinates = [str(entry.x), *entry.lines]
    rows: list[dict[str, Any]] = []
    for (line, x), scenario in places(entry).items():
        names = dict.fromkeys([*(metric.name for metric in entry.metrics), *ALSO])
        values = {name: _values(ours, entry, scenario, name) for name in names}
        over = gains_over(values[score.name], entry)
        for method in trainings:
            chosen = entry.trial(scenario, method).values
            about = {"scenario": scenario, **dict(zip(coordinates, (x, *line), strict=True)), "method": method.name}
            about |= {setting: chosen.get(setting) for setting in settings}
            rows += [{**about, "metric": name, **_summary(found[method.name])} for name, found in values.items()]
            for name, (rival, each) in over.items() if method.name not in entry.against else ():
                gains = each[method.name]
                row = {**about, "metric": name, "against": rival, **_summary(gains), **_interval(gains)}
                if name == GAIN:
                    row["published"] = paper.get((scenario, method.name, "gain"), nan)
                    row["published_within"] = paper.get((scenario, method.name, "within"), nan)
                    row["difference"] = row["mean"] - row["published"]
                rows.append(row)
    columns = ["scenario", *coordinates, "method", *settings, "metric", "against", "mean", "std", "low", "high"]
    columns += ["seeds", "diverged", "beyond", "published", "published_within", "difference"]
    return pd.DataFrame(rows).reindex(columns=columns)


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return the gains of each training on each seed, in percentage points.

    -inf where the training diverged, inf where only its rival did; no row where both did.
    """
    ours, rows = frame[~frame["published"] & (frame["stage"] == ORIGINAL)], []
    for scenario in places(entry).values():
        over = gains_over(_values(ours, entry, scenario, entry.metrics[0].name), entry, -inf)
        for method in (one for one in entry.methods if one.trains and one.name not in entry.against):
            about = {"scenario": scenario, "method": method.name, "trial": entry.trial(scenario, method).name}
            for name, (_, gains) in over.items():
                each = gains[method.name].dropna().items()
                rows += [{**about, "metric": name, "seed": seed, "value": gain} for seed, gain in each]
    columns = ["scenario", "method", "trial", "metric", "seed", "value"]
    return pd.DataFrame(rows, columns=columns).assign(stage=ORIGINAL)


def gains_over(scores: pd.DataFrame, entry: Entry, diverged: float = nan) -> dict[str, tuple[str, pd.DataFrame]]:
    """Return, by metric, over whom, and percentage points by seed and training; `scores`: fractions, the same way.

    `diverged`: the score of a run that diverged; whom a training is compared with does not depend on it.
    """
    rivals = {GAIN: entry.against[0]}
    if len(entry.against) > 1:
        rivals[BETTER] = better(scores[list(entry.against)])
    whole = scores.fillna(diverged)
    return {name: (rival, 100 * whole.sub(whole[rival], axis=0)) for name, rival in rivals.items()}


def _values(ours: pd.DataFrame, entry: Entry, scenario: str, metric: str) -> pd.DataFrame:
    """Return a metric by seed and training."""
    here = ours[(ours["scenario"] == scenario) & (ours["metric"] == metric)]
    table = here.pivot(index="seed", columns="method", values="value")
    columns = [method.name for method in entry.methods if method.trains]
    return table.reindex(index=entry.seeds, columns=columns).astype(float)


def places(entry: Entry) -> dict[tuple[tuple[Any, ...], Any], str]:
    """Return the scenario at each place: the coordinates of its line, and x."""
    found: dict[tuple[tuple[Any, ...], Any], str] = {}
    for scenario in entry.scenarios:
        *line, x = (entry.at(name, scenario.name) for name in (*entry.lines, str(entry.x)))
        if x is None or None in line or (tuple(line), x) in found:
            wanted = in_a_row([*entry.lines, str(entry.x)])
            raise UserError(
                f"{entry.artefact}: every scenario needs {wanted} of its own; {scenario.name!r} lacks them."
            )
        found[tuple(line), x] = scenario.name
    return found


def better(scores: pd.DataFrame) -> str:
    """Return the column with the highest mean over the seeds that all have; columns without any number aside."""
    there = scores.dropna(axis=1, how="all")
    whole = there.dropna()
    means = (whole if len(whole) else there).mean()
    return str(means.idxmax() if len(means) else scores.columns[0])


def _listed(entry: Entry) -> list[str]:
    """Return the labels of those that others are compared with, in their order."""
    labels = {method.name: method.label for method in entry.methods}
    return [labels[name] for name in entry.against]


def _settings(entry: Entry) -> list[str]:
    """Return what the grids of the trainings set, in order."""
    trials = [t for method in entry.methods if method.trains for found in method.trials.values() for t in found]
    return list(dict.fromkeys(key for trial in trials for key in trial.values))


def _called(entry: Entry, setting: str) -> str:
    return entry.names.get(setting, setting_name(setting).removeprefix("params."))


def _summary(values: "pd.Series[float]") -> dict[str, Any]:
    mean, std, n = summary(values)
    return {"mean": mean, "std": std, "seeds": n, "diverged": len(values) - n}


def _interval(gains: "pd.Series[float]") -> dict[str, Any]:
    """Return the 95% interval of the mean of paired gains (t), and whether it lies beyond `WITHIN` points."""
    from scipy.special import stdtrit  # half a second that other kinds need not pay

    mean, std, seeds = summary(gains)
    half = stdtrit(seeds - 1, 0.975) * std / sqrt(seeds) if seeds > 1 else nan
    low, high = (mean, mean) if seeds < 2 else (mean - half, mean + half)
    beyond = int(round(low, 9) > WITHIN) - int(round(high, 9) < -WITHIN)
    return {"low": mean - half, "high": mean + half, "beyond": beyond}


def _panel(entry: Entry, frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a row for each line and training; the cells of each x beside each other, in a group if it has several."""
    here = frame[frame["metric"] == metric].to_dict("records")
    cells = {(row["scenario"], row["method"]): _cells(entry, row) for row in here}
    blank = dict.fromkeys(next(iter(cells.values())), "")
    at, rows = places(entry), []
    for line, method in product(dict.fromkeys(line for line, _ in at), entry.methods):
        if not any(name == method.name for _, name in cells):
            continue
        row: dict[Any, str] = {name: number(value) for name, value in zip(entry.lines, line, strict=True)}
        row["Training"] = method.marked
        for x in dict.fromkeys(x for _, x in at):
            head = f"{entry.x} = {number(x)}"
            own = cells[at[line, x], method.name] if (line, x) in at else blank
            row |= {(head, name) if len(own) > 1 else head: text for name, text in own.items()}
        rows.append(row)
    return grid(rows)


def _cells(entry: Entry, row: Row) -> dict[str, str]:
    """Return an accuracy with what was chosen, or a gain, – where its interval reaches into the error bar.

    Beside a gain stands the paper's, or over whom it is.
    """
    gain = row["metric"] in (GAIN, BETTER)
    text = plus_minus(row["mean"], row["std"])
    if gain:
        text = "–" if row["seeds"] > 1 and not row["beyond"] else f"{row['mean']:.2f}"
    text += f", {row['diverged']} diverged" if row["diverged"] else ""
    text = text if row["seeds"] else "diverged"
    if not gain:
        settings = {_called(entry, key): "–" if pd.isna(row[key]) else number(row[key]) for key in _settings(entry)}
        return {"mean": text, **settings}
    if row["metric"] == BETTER:
        rival = dict(zip(entry.against, _listed(entry), strict=True))[row["against"]]
        return {OURS: text, "over": rival if row["seeds"] else "–"}
    if not entry.compares:
        return {OURS: text}
    theirs: str = "" if pd.isna(row["published"]) else f"{row['published']:.2f}"
    diff: str = "" if pd.isna(row["difference"]) else f"{row['difference']:+.2f}"
    return {OURS: text, "paper": theirs if pd.isna(row["published_within"]) else "–", "diff": diff}


def _notes(entry: Entry, frame: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    score = entry.metrics[0].label
    names = {name: entry.names.get(name, name) for name in (*entry.lines, str(entry.x))}
    called = " ".join(f"{name}: {full.removesuffix(f', {name}')}." for name, full in names.items() if full != name)
    chosen = any(len(trials) > 1 for method in entry.methods for trials in method.trials.values())
    settings = in_a_row([_called(entry, key) for key in _settings(entry)])
    return notes.joined(
        entry,
        entry.footnotes,
        called,
        f"Gain: difference in {score} between two models of the same seed, mean over seeds.",
        f"–: the 95% interval of the mean gain (paired t) reaches into [−{WITHIN:g}, {WITHIN:g}] points; number and "
        "interval are in the csv. One seed has no interval, and its gain is not marked.",
        notes.deviations(entry),
        f"over: the one with the higher mean {score}, over the seeds that all have." if len(entry.against) > 1 else "",
        "Diverged: seeds left out, of a gain those in which either model diverged." if frame["diverged"].any() else "",
        notes.comparison(entry),
        PAPERS_OWN if frame["published_within"].notna().any() else "",
        f"{settings}: chosen{f': {entry.rule}' if entry.rule else ''}." if chosen else "",
    )
