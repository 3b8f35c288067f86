"""Computation time of every method (FedOSD Table 12): clients and server, scaled to 200 rounds.

Times lie outside the promise of equal bytes: this artefact is made again when the work is, not when a time differs.
"""

import pandas as pd

from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.result import Result
from fu.artefacts.table import KEYS, picture, text_of

READS = "traces"
COUNTS = ("client_rounds", "steps", "samples", "bytes_up", "bytes_down")  # of a trace: what adds up over rounds
PUBLISHED = {"stages": ("total",), "metrics": ("seconds", "seconds_std")}
ROUNDS = 200  # FedOSD Table 12


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return seconds per 200 rounds, mean and standard deviation over seeds, beside the published ones, and the counts
    of the trace that the artefact names.
    """
    ours, theirs = frame[~frame["published"]], frame[frame["published"]]
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
                    value = sum(ends[(*run, metric)][1] for run in runs) * (ROUNDS / rounds[-1])
                    parts.append((scenario.name, method.name, "total", metric, value))
    long = pd.DataFrame(parts, columns=[*KEYS, "value"])
    found = long.groupby(KEYS, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    found["published"] = found[KEYS].merge(theirs, on=KEYS, how="left")["value"].astype(float)
    spread = theirs[theirs["metric"] == "seconds_std"].assign(metric="seconds")
    found["published_std"] = found[KEYS].merge(spread, on=KEYS, how="left")["value"].astype(float)
    found["difference"] = found["mean"] - found["published"]
    panels = [(scenario.label, _panel(entry, found, scenario)) for scenario in entry.scenarios]
    devices = sorted(set(ours[ours["metric"] == "seconds"]["device"]))
    notes = f"Per {ROUNDS} rounds, without evaluation. Ours: {'; '.join(devices)}. * not in the paper."
    return Result(found, f"{text_of(panels)}\n{notes}\n", picture(panels, notes))


def _panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    rows = []
    for method in entry.methods:
        here = frame[(frame["scenario"] == scenario.name) & (frame["method"] == method.name)].set_index("metric")
        if here.empty:
            rows.append({"Method": method.marked, "seconds": "diverged"})
            continue
        seconds = here.loc["seconds"]
        spread = f" ±{seconds['std']:.2f}" if seconds["n"] > 1 else ""
        row = {"Method": method.marked, "seconds": f"{seconds['mean']:.2f}{spread}"}
        if entry.published:
            theirs = f"{seconds['published']:.2f} ±{seconds['published_std']:.2f}"
            row["seconds paper"] = theirs if pd.notna(seconds["published"]) else "–"
            row["seconds diff"] = f"{seconds['difference']:+.2f}" if pd.notna(seconds["difference"]) else "–"
        row |= {metric.label: f"{here['mean'][metric.name]:.0f}" for metric in entry.metrics}
        rows.append(row)
    columns = ["Method", "seconds", *(["seconds paper", "seconds diff"] if entry.published else [])]
    columns += [metric.label for metric in entry.metrics]
    return pd.DataFrame(rows, columns=columns).astype(object).fillna("–")
