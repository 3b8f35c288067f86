"""Table of metrics: one panel per scenario, one row per model, beside the published number and the difference.

With `marks: bars` its numbers are drawn as bars.
"""

from collections.abc import Hashable
from dataclasses import replace
from math import nan, sqrt
from statistics import fmean
from typing import Any

import pandas as pd

from fu.artefacts import bars, notes
from fu.artefacts.entry import ORIGINAL, Entry, Method, Scenario
from fu.artefacts.panels import OURS, grid
from fu.artefacts.result import Result, of_figure, of_table
from fu.artefacts.statistics import KEYS, evaluated, printed, summaries
from fu.artefacts.words import FORGOT, as_printed, forgets, in_a_row, in_words, took_hold

INPUTS = ("evaluations",)
TABLE = True  # unless `marks` says otherwise
ALSO = ("asr", "distance")  # who forgot, and whether a model comes back to the original one
PUBLISHED = {"metrics": ("reverts",)}  # the paper's mark behind an ASR
MARKS = {"bars": ("unlearned", "recovered")}  # the stages that have a panel each
RISE = 0.01  # of ASR in post-training, where one seed shows no spread
RATE = "Rate: learning rate of unlearning (¹) or post-training (²)"
RISES = (
    "↑: ASR rises in post-training. r: it rises by more than its standard deviation over seeds (of one seed: "
    f"{RISE:g}), and the weights move back towards ω⁰ (of the paper's numbers: r as printed)."
)
BOLD = (
    "Bold: the best{} at each stage, without diverged methods{}, where the 95% interval over seeds of its difference "
    "from the runner-up excludes 0 (Welch); where higher is better, only among methods that forgot (ASR at most "
    f"{FORGOT:g} above retraining's); never without a spread, or where the backdoor hardly took hold."
)
Cell = dict[Hashable, Any]
Cells = dict[tuple[str, str, str], Cell]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds, with the published values."""
    found = collect(frame, entry)
    panels = [(scenario.label, panel(entry, found, scenario)) for scenario in entry.scenarios]
    if entry.marks == "bars":
        more = [notes.no_backdoor(entry, notes.original_asr(found, "mean")), notes.deviations(entry, "Error bars")]
        shown = of_figure(found, panels, notes_of(entry, found, *more), bars.picture(entry, found))
        return replace(shown, notes=notes.joined(entry, entry.footnotes, notes.rates(entry), *more))
    words = [
        in_words(found, entry, scenario, _held_out(frame, entry, scenario), _original(frame, scenario, "asr"))
        for scenario in entry.scenarios
    ]
    return of_table(found, panels, notes_of(entry, found), words)


def _held_out(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> float | None:
    """Return the original model's ASR on validation data, where it was measured and something was chosen by it."""
    chosen = any(len(method.trials[scenario.name]) > 1 for method in entry.methods)
    values = _original(frame, scenario, "asr_validation").values()
    return fmean(values) if chosen and values else None


def _original(frame: pd.DataFrame, scenario: Scenario, metric: str) -> dict[int, float]:
    """Return the original model's value by seed, where it was measured."""
    rows = frame[(frame["scenario"] == scenario.name) & (frame["stage"] == ORIGINAL) & (frame["metric"] == metric)]
    rows = rows[(rows["published"] == 0) & rows["value"].notna()]
    return dict(zip(rows["seed"], rows["value"], strict=True))


def notes_of(entry: Entry, frame: pd.DataFrame, *more: str) -> str:
    """Explain rows, columns and marks."""
    parts = [entry.footnotes, notes.deviations(entry)]
    for metric in entry.metrics:
        parts += [f"In parentheses: {spread.formula}." for spread in entry.spreads if spread.name == metric.spread]
    parts += [notes.LEFT_OUT if frame["diverged"].any() else "", notes.comparison(entry)]
    if any(_best(entry, _cells(frame, scenario)) for scenario in entry.scenarios):
        alone = [method.label for method in _compared(entry) if method.post_training == "own"]
        without = f" and those that train for all rounds themselves ({in_a_row(alone)})" if alone else ""
        parts.append(BOLD.format(" of the paper's methods" if entry.in_paper else "", without))
    if (frame["mark"] != "").any() or (frame["published_mark"] != "").any():
        parts.append(RISES)
    if any(len(trials) > 1 for method in entry.methods for trials in method.trials.values()):
        parts.append(f"{RATE}; in parentheses where it was fixed beforehand, else the best of a grid: {entry.rule}.")
    elif entry.methods:
        parts.append(f"{RATE}, fixed beforehand.")
    return notes.joined(entry, *parts, *more)


def collect(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return tidy rows: scenario, method, stage, metric, mean, std, n, published, difference, diverged, marks.

    `forgot`: whether the ASR of a row is at most `FORGOT` above that of the retrained model of its scenario; None where
    one of them diverged in a seed, as the two would be means over different ones.
    `took_hold`: whether the original model's ASR leaves something to forget; None where it is not known.
    """
    (kept, by_trial, _), theirs = evaluated(frame), printed(frame, entry)
    lost = {(scenario, method, stage): seeds for (scenario, method, _, stage), seeds in by_trial.items()}
    wanted = [m.name for m in entry.metrics] + [m.spread for m in entry.metrics if m.spread]
    found = summaries(kept, KEYS).set_index(KEYS)
    shown = [(s.name, method, stage) for s in entry.scenarios for method, stage, _ in entry.rows(s.name)]
    index = pd.MultiIndex.from_tuples([(*row, metric) for row in shown for metric in wanted], names=KEYS)
    out = found.reindex(index).reset_index()
    out["n"] = out["n"].fillna(0).astype(int)
    out["published"] = out[KEYS].merge(theirs, on=KEYS, how="left")["value"]
    marked = set(theirs[theirs["metric"] == "reverts"][KEYS[:3]].itertuples(index=False, name=None))
    keys = list(out[KEYS].itertuples(index=False, name=None))
    out["published_mark"] = ["r" if key[3] == "asr" and key[:3] in marked else "" for key in keys]
    out["difference"] = out["mean"] - out["published"]
    marks = {row[:2]: _mark(kept, *row[:2]) for row in shown if row[2] == "recovered"}
    out["mark"] = [marks[key[:2]] if key[2:] == ("recovered", "asr") else "" for key in keys]
    out["diverged"] = [len(lost.get(key[:3], {})) for key in keys]
    out["diverged_round"] = [min(lost.get(key[:3], {}).values(), default=nan) for key in keys]
    whole = found["mean"][[not lost[row[:3]] for row in found.index]]
    out["forgot"] = [_forgot(entry, whole, *key[:3]) for key in keys]
    original = {s.name: found["mean"].get((s.name, ORIGINAL, ORIGINAL, "asr"), nan) for s in entry.scenarios}
    out["took_hold"] = [None if pd.isna(original[key[0]]) else took_hold(original[key[0]]) for key in keys]
    return out


def _mark(rows: pd.DataFrame, scenario: str, method: str) -> str:
    """Return r where post-training brings backdoor and model back, ↑ where the printed ASR merely rises."""
    rows = rows[(rows["scenario"] == scenario) & (rows["method"] == method)]
    values = rows.pivot_table("value", "seed", ["metric", "stage"])
    if not {("asr", "unlearned"), ("asr", "recovered")} <= set(values):
        return ""
    before, after = values["asr", "unlearned"], values["asr", "recovered"]
    rise, printed = (after - before).round(9), as_printed(as_printed(after.mean()) - as_printed(before.mean()))
    if printed <= 0:
        return ""
    beyond = rise.mean() > rise.std() if len(rise) > 1 else printed > RISE
    far = values.get("distance")
    return "r" if beyond and far is not None and far["recovered"].mean() < far["unlearned"].mean() else "↑"


def _forgot(entry: Entry, means: "pd.Series[float]", scenario: str, method: str, stage: str) -> bool | None:
    """Return whether a model's ASR is near that of the retrained one; None where one of the two lacks seeds."""
    if entry.retraining is None:
        return None
    last = list(entry.trial(scenario, entry.retraining).models)[-1]
    reference = means.get((scenario, entry.retraining.name, last, "asr"), nan)
    asr = means.get((scenario, method, stage, "asr"), nan)
    return None if pd.isna(reference + asr) else forgets(asr, reference)


def panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    """Return one scenario's rows as text: the rate, then for each metric ours, the paper's and the difference.

    Of a metric of which the paper prints no number in the table, ours alone.
    """
    cells = _cells(frame, scenario)
    compared = set(frame["metric"][frame["published"].notna()]) if entry.compares else set()
    methods = {method.name: method for method in entry.methods}
    best = _best(entry, cells)
    rows = []
    for name, stage, label in entry.rows(scenario.name):
        row: dict[Any, str] = {"Method": label, "Rate": "–"}
        if name in methods:
            setting = entry.trial(scenario.name, methods[name]).setting(stage)
            varies = len({trial.setting(stage) for trial in methods[name].trials[scenario.name]}) > 1
            row["Rate"] = setting if varies or setting == "–" else f"({setting})"
        for metric in entry.metrics:
            cell = cells[name, stage, metric.name]
            spread = cells[name, stage, metric.spread] if metric.spread else None
            text, first = _ours(cell, spread), metric is entry.metrics[0]
            text += f", {cell['diverged']} diverged" if cell["diverged"] and first else ""
            text = f"**{text}**" if (name, stage, metric.name) in best else text
            if cell["diverged"] and not cell["n"]:
                text = f"diverged in {cell['diverged_round']:.0f}" if first else "–"
            if not compared & {metric.name, metric.spread}:
                row[metric.label] = text
                continue
            theirs = _number(cell["published"], spread["published"] if spread is not None else None)
            row[metric.label, OURS] = text
            row[metric.label, "paper"] = f"{theirs} {cell['published_mark']}".strip()
            row[metric.label, "diff"] = "–" if pd.isna(cell["difference"]) else f"{cell['difference']:+.3f}"
        rows.append(row)
    return grid(rows)


def _cells(frame: pd.DataFrame, scenario: Scenario) -> Cells:
    records = frame[frame["scenario"] == scenario.name].to_dict("records")
    return {(record["method"], record["stage"], record["metric"]): record for record in records}


def _best(entry: Entry, cells: Cells) -> set[tuple[str, str, str]]:
    """Return the cells that are better than all others of their column over seeds, after each stage."""
    found: set[tuple[str, str, str]] = set()
    rivals = {method.name for method in _compared(entry) if method.post_training != "own"}
    for metric in entry.metrics:
        sign = {"lower": -1, "higher": 1, "neither": 0}[metric.better]
        for stage in ("unlearned", "recovered") if sign else ():
            column = [
                (sign * cell["mean"], key)
                for key, cell in cells.items()
                if key[1:] == (stage, metric.name) and cell["n"] and not cell["diverged"] and key[0] in rivals
                if cell["took_hold"] is not False
                if sign < 0 or cell["forgot"]  # who does not forget keeps accuracy for free
            ]
            first, second = ([*sorted(column, reverse=True), None, None])[:2]
            if first and second and differs(first[0] - second[0], cells[first[1]], cells[second[1]]):
                found.add(first[1])
    return found


def _compared(entry: Entry) -> list[Method]:
    """Return the methods that bold compares: the paper's, or all in a table of ours."""
    return [method for method in entry.methods if method.in_paper or not entry.in_paper]


def differs(difference: float, one: Cell, other: Cell) -> bool:
    """Whether the 95% interval over seeds of a difference of means (Welch 1947) excludes 0; without a spread never."""
    from scipy.special import stdtrit  # half a second that other kinds need not pay

    if min(one["n"], other["n"]) < 2:
        return False
    errors = [cell["std"] ** 2 / cell["n"] for cell in (one, other)]
    parts = sum(error**2 / (cell["n"] - 1) for error, cell in zip(errors, (one, other), strict=True))
    return bool(parts and abs(difference) > stdtrit(sum(errors) ** 2 / parts, 0.975) * sqrt(sum(errors)))


def _number(value: float, spread: float | None = None) -> str:
    if pd.isna(value):
        return "–"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
    return text if spread is None or pd.isna(spread) else f"{text} ({spread:.3f})"


def _ours(cell: Cell, spread: Cell | None) -> str:
    text = _number(cell["mean"], None if spread is None else spread["mean"])
    if cell["n"] > 1:
        text += f" ±{cell['std']:.3f}"
    return f"{text} {cell['mark']}".strip()
