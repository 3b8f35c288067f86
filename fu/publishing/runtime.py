"""Computation time of every method, from the cost files (FedOSD Table 12): clients and server, scaled to 200 rounds.

Times lie outside the promise of equal bytes: this artefact is made again when the work is, not when a time differs.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from fu.evaluation.metrics import METRICS
from fu.publishing.result import Result, read, shown
from fu.publishing.table import picture

READS = "traces"
ROUNDS = 200  # FedOSD Table 12


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return seconds per 200 rounds, mean and standard deviation over seeds, beside the published ones, and the counts
    of the trace that the artefact names.
    """
    parts, devices = [], set()
    for scenario in spec["scenarios"]:
        for method in spec["methods"]:
            for seed in spec["seeds"]:
                folder = root / spec["paper"] / scenario / f"seed{seed}"
                stems = shown(spec, root, scenario, method).models
                traces = [read(folder / f"{stem}.csv") for stem in stems]
                costs = [json.loads((folder / f"{stem}.cost.json").read_text()) for stem in stems]
                devices |= {f"{cost['device']}, {cost['threads']} thread(s)" for cost in costs}
                if any(trace.empty for trace in traces) or not traces[-1]["round"].iloc[-1]:
                    continue  # diverged in its first round, or before
                scale = ROUNDS / traces[-1]["round"].iloc[-1]
                values = {name: sum(trace[name].iloc[-1] for trace in traces) * scale for name in spec["metrics"]}
                values["seconds"] = sum(cost["seconds"] for cost in costs) * scale
                parts += [(scenario, method, "total", metric, value) for metric, value in values.items()]
    keys = ["scenario", "method", "stage", "metric"]
    long = pd.DataFrame(parts, columns=[*keys, "value"])
    frame = long.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    frame["published"] = frame["published_std"] = float("nan")
    if spec["published"]:
        published = pd.read_csv(Path("workflow/published") / spec["paper"] / f"{spec['artefact']}.csv")
        frame["published"] = frame[keys].merge(published, on=keys, how="left")["value"]
        spread = published[published["metric"] == "seconds_std"].assign(metric="seconds")
        frame["published_std"] = frame[keys].merge(spread, on=keys, how="left")["value"]
    frame["difference"] = frame["mean"] - frame["published"]
    panels = {scenario: _panel(spec, frame, scenario) for scenario in spec["scenarios"]}
    notes = f"Per {ROUNDS} rounds, without evaluation. Ours: {'; '.join(sorted(devices))}. * not in the paper."
    body = "\n".join(
        f"## {spec['scenarios'][name]['label']}\n\n{rows.to_markdown(index=False, disable_numparse=True)}\n"
        for name, rows in panels.items()
    )
    return Result(frame, f"{body}\n{notes}\n", picture(spec, panels, notes))


def _panel(spec: dict[str, Any], frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    rows = []
    for method, about in spec["methods"].items():
        here = frame[(frame["scenario"] == scenario) & (frame["method"] == method)].set_index("metric")
        label = about["label"] + ("" if about["in_paper"] else " *")
        if here.empty:
            rows.append({"Method": label, "seconds": "diverged"})
            continue
        seconds = here.loc["seconds"]
        spread = f" ±{seconds['std']:.2f}" if seconds["n"] > 1 else ""
        row = {"Method": label, "seconds": f"{seconds['mean']:.2f}{spread}"}
        if spec["published"]:
            theirs = f"{seconds['published']:.2f} ±{seconds['published_std']:.2f}"
            row["seconds paper"] = theirs if pd.notna(seconds["published"]) else "–"
            row["seconds diff"] = f"{seconds['difference']:+.2f}" if pd.notna(seconds["difference"]) else "–"
        row |= {METRICS[name].label: f"{here.loc[name, 'mean']:.0f}" for name in spec["metrics"]}
        rows.append(row)
    columns = ["Method", "seconds", *(["seconds paper", "seconds diff"] if spec["published"] else [])]
    columns += [METRICS[name].label for name in spec["metrics"]]
    return pd.DataFrame(rows, columns=columns).astype(object).fillna("–")
