"""Curves of metrics over rounds, through unlearning and post-training (as FedOSD Figures 5, 8 and 9)."""

from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fu.evaluation.metrics import METRICS
from fu.publishing.result import Result, read, shown

READS = "traces"


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return metric by round, mean and standard deviation over seeds, with a panel per scenario and metric."""
    long = pd.concat(
        [_trace(spec, root, s, m, n) for s in spec["scenarios"] for m in spec["methods"] for n in spec["seeds"]]
    )
    keys = ["scenario", "method", "stage", "round", "metric"]
    frame = long.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    return Result(frame, _summary(spec, frame, long), _picture(spec, long))


def _trace(spec: dict[str, Any], root: Path, scenario: str, method: str, seed: int) -> pd.DataFrame:
    folder = root / spec["paper"] / scenario / f"seed{seed}"
    stems = shown(spec, root, scenario, method).models
    parts = [read(folder / f"{stem}.csv").assign(stage=stem.rpartition(".")[2]) for stem in stems]
    joined = pd.concat([parts[0], *(part.iloc[1:] for part in parts[1:])])  # the first row repeats the last
    tidy = joined.melt(["round", "stage"], spec["metrics"], "metric").dropna(subset="value")
    return tidy.assign(scenario=scenario, method=method, seed=seed)


def _label(spec: dict[str, Any], method: str) -> str:
    entry = spec["methods"][method]
    return entry["label"] + ("" if entry["in_paper"] else " *")


def _ends(spec: dict[str, Any], curves: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each seed's curve that breaks off before the last round: there the run diverged.

    Methods with rounds of their own are not judged.
    """
    last = curves.sort_values("round").groupby(["scenario", "method", "seed", "metric"], sort=False).tail(1)
    total = last["scenario"].map(lambda scenario: spec["scenarios"][scenario]["rounds"][1])
    after = last["method"].map(lambda method: spec["methods"][method]["post_training"] == "after")
    return last[after & (last["round"] < total)]


def _summary(spec: dict[str, Any], frame: pd.DataFrame, long: pd.DataFrame) -> str:
    """Return the values at the start, after unlearning and at the end."""
    text, broken = [], _ends(spec, long)
    for scenario, about in spec["scenarios"].items():
        rows = []
        for method in spec["methods"]:
            here = frame[(frame["scenario"] == scenario) & (frame["method"] == method)]
            row = {"Method": _label(spec, method)}
            for metric in spec["metrics"]:
                values = here[here["metric"] == metric].sort_values("round")
                if values.empty:
                    row[METRICS[metric].label] = "–"
                    continue
                turn = values[values["stage"] == "unlearned"].iloc[-1]
                lost = broken[(broken["scenario"] == scenario) & (broken["method"] == method)]
                rounds = sorted(lost[lost["metric"] == metric]["round"])
                after = f"diverged after {', '.join(map(str, rounds))}"
                if len(rounds) == len(spec["seeds"]):
                    row[METRICS[metric].label] = f"{values['mean'].iloc[0]:.3f} → {after}"
                    continue
                ends = {"start": values.iloc[0], f"round {turn['round']}": turn, "end": values.iloc[-1]}
                short = [f"{value['mean']:.3f}" for value in ends.values()]
                note = f" ({len(rounds)} of {len(spec['seeds'])} seeds {after})" if rounds else ""
                row[METRICS[metric].label] = " → ".join(short) + note
            rows.append(row)
        table = pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)
        text.append(f"## {about['label']}\n\nAt the start of the method → after unlearning → at the end:\n\n{table}\n")
    return "\n".join(text) + "\nThe paper prints no numbers for its curves.\n"


def _picture(spec: dict[str, Any], long: pd.DataFrame) -> Figure:
    scenarios, metrics = list(spec["scenarios"]), spec["metrics"]
    figure = Figure(figsize=(4.2 * len(metrics), 3.2 * len(scenarios) + 0.6), layout="constrained")
    axes = figure.subplots(len(scenarios), len(metrics), squeeze=False)
    order = [_label(spec, method) for method in spec["methods"]]
    named = long.assign(Method=long["method"].map(lambda method: _label(spec, method)))
    colours = dict(zip(spec["methods"], sns.color_palette(n_colors=len(order)), strict=True))
    broken = _ends(spec, long)
    for line, scenario in zip(axes, scenarios, strict=True):
        for axis, metric in zip(line, metrics, strict=True):
            part = named[(named["scenario"] == scenario) & (named["metric"] == metric)]
            sns.lineplot(
                part, x="round", y="value", hue="Method", hue_order=order, style="Method", style_order=order,
                errorbar="sd", palette=list(colours.values()), ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            for first in part[part["stage"] == "recovered"].groupby("method")["round"].min().unique():
                axis.axvline(first - 1, color="0.6", linestyle=":", linewidth=1)
            here = broken[(broken["scenario"] == scenario) & (broken["metric"] == metric)]
            for method, round, value in here[["method", "round", "value"]].itertuples(index=False):
                axis.plot(round, value, marker="X", color=colours[method], clip_on=False)
            axis.set_ylabel(METRICS[metric].label)
            axis.set_title(spec["scenarios"][scenario]["label"], fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
            if METRICS[metric].unit == "fraction":
                axis.set_ylim(-0.03, 1.03)
    if len(broken):
        axes[0, 0].plot([], [], marker="X", linestyle="none", color="0.4", label="diverged")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
