"""Computation time of every method relative to retraining (FedOSD Table 12): clients and server, per 200 rounds.

A run of fewer rounds is scaled up, but not an unlearning of a single round, as FedRecovery's is at any scale. Times lie
outside the promise of equal bytes: this artefact is made again when the work is, not when a time differs.
"""

from math import nan
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import OURS, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import KEYS, printed, summaries
from fu.artefacts.words import plus_minus

INPUTS = ("traces", "costs")
TABLE = True
# Of a trace: what adds up over rounds.
SUMMED = ("client_rounds", "steps", "samples", "time_steps", "replayed", "bytes_up", "bytes_down")
PUBLISHED = {"stages": ("total",), "metrics": ("seconds", "seconds_std")}
ROUNDS = 200  # FedOSD Table 12


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return seconds per 200 rounds and their ratio to retraining's, mean and standard deviation over seeds, beside the
    published ones, and the counts of the trace that the artefact names.
    """
    ours, theirs = frame[~frame["published"]], printed(frame, entry)
    counted = [metric.name for metric in entry.metrics]
    keys = ["scenario", "method", "seed", "model", "metric"]
    last = ours.groupby(keys)[["round", "value"]].last().reset_index()
    ends = {row[:5]: (int(row[5]), float(row[6])) for row in last.itertuples(index=False, name=None)}
    parts = []
    for scenario in entry.scenarios:
        for method in entry.methods:
            models = entry.trial(scenario.name, method).models.values()
            for seed in entry.seeds:
                runs = [(scenario.name, method.name, seed, model) for model in models]
                rounds = [ends.get((*run, counted[0]), (0, 0.0))[0] for run in runs]
                if any((*run, counted[0]) not in ends for run in runs) or not rounds[-1]:
                    continue  # diverged in its first round, or before
                for metric in (*counted, "seconds"):
                    spent = [ends[(*run, metric)][1] for run in runs]
                    parts.append((scenario.name, method.name, "total", metric, seed, scaled(spent, rounds)))
    long = _with_ratios(pd.DataFrame(parts, columns=[*KEYS, "seed", "value"]), entry)
    found = summaries(long, KEYS)
    numbers = _with_ratios(theirs, entry)
    found["published"] = found[KEYS].merge(numbers, on=KEYS, how="left")["value"].astype(float)
    spread = theirs[theirs["metric"] == "seconds_std"].assign(metric="seconds")
    found["published_std"] = found[KEYS].merge(spread, on=KEYS, how="left")["value"].astype(float)
    found["difference"] = found["mean"] - found["published"]
    panels = [(scenario.label, _panel(entry, found, scenario)) for scenario in entry.scenarios]
    devices = sorted(set(ours[ours["metric"] == "seconds"]["device"]))
    text = notes.joined(
        entry,
        f"Scaled to {ROUNDS} rounds, without evaluation. Seconds: {'; '.join(devices)}.",
        "Ratio: seconds over retraining's of the same seed." if entry.retraining else "",
        notes.deviations(entry),
        notes.comparison(entry),
    )
    return of_table(found, panels, text)


def scaled(spent: list[float], rounds: list[int]) -> float:
    """Return what `ROUNDS` rounds take, from what each phase took and the number of its last round."""
    if len(spent) == 2 and rounds[0] == 1 < rounds[1]:
        return spent[0] + spent[1] * (ROUNDS - 1) / (rounds[1] - 1)
    return sum(spent) * ROUNDS / rounds[-1]


def _with_ratios(rows: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Add the ratio of each time to retraining's of the same scenario and seed, where there is one."""
    times = rows[rows["metric"] == "seconds"]
    retrained = times[times["method"] == (entry.retraining.name if entry.retraining else None)]
    both = times.merge(retrained[["scenario", "seed", "value"]], on=["scenario", "seed"], suffixes=("", "_retrained"))
    ratios = both.assign(metric="ratio", value=both["value"] / both["value_retrained"])
    return pd.concat([rows, ratios[rows.columns]], ignore_index=True)


def _panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    ratio = ("Ratio", OURS) if entry.compares else "Ratio"
    rows = []
    for method in entry.methods:
        here = frame[(frame["scenario"] == scenario.name) & (frame["method"] == method.name)].set_index("metric")
        row: dict[Any, str] = {"Method": method.marked, ratio: "diverged" if here.empty else _mean(here, "ratio")}
        if entry.compares:
            paper, diff = (here[name].get("ratio", nan) for name in ("published", "difference"))
            row["Ratio", "paper"] = plus_minus(paper, digits=2)
            row["Ratio", "diff"] = "–" if pd.isna(diff) else f"{diff:+.2f}"
        row["Seconds"] = _mean(here, "seconds")
        lost = len(entry.seeds) - here["n"].get("seconds", len(entry.seeds))
        row["Seconds"] += f", {lost} diverged" if lost else ""
        means = {metric: here["mean"].get(metric.name, nan) for metric in entry.metrics}
        rows.append(row | {metric.label: plus_minus(mean, digits=0) for metric, mean in means.items()})
    return grid(rows)


def _mean(frame: pd.DataFrame, metric: str) -> str:
    return plus_minus(frame["mean"].get(metric, nan), frame["std"].get(metric, nan), 2)
