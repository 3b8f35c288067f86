"""Bars of metrics by method: a panel for each scenario and stage (FedOSD Figure 6)."""

from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fu.evaluation.metrics import METRICS
from fu.publishing.result import Result, models_of
from fu.publishing.table import collect, notes_of, panel, text_of

READS = "evaluations"
TITLES = {"unlearned": "after unlearning", "recovered": "after post-training"}


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return the numbers of a table, drawn as bars beside the original model's."""
    frame = collect(spec, root)
    panels = {name: panel(spec, root, frame, name) for name in spec["scenarios"]}
    return Result(frame, f"{text_of(spec, panels)}\n{notes_of(spec, frame)}\n", _picture(spec, frame))


def _picture(spec: dict[str, Any], frame: pd.DataFrame) -> Figure:
    stages = [stage for stage in spec["stages"] if stage != "original"]
    scenarios = list(spec["scenarios"])
    figure = Figure(figsize=(5.6 * len(stages), 3.2 * len(scenarios) + 0.6), layout="constrained")
    axes = figure.subplots(len(scenarios), len(stages), squeeze=False)
    names = {metric: METRICS[metric].label for metric in spec["metrics"]}
    for line, scenario in zip(axes, scenarios, strict=True):
        for axis, stage in zip(line, stages, strict=True):
            labels = {method: label for method, role, label in models_of(spec, scenario) if role in ("original", stage)}
            part = frame[(frame["scenario"] == scenario) & frame["stage"].isin(["original", stage])]
            part = part[part["metric"].isin(names)]
            drawn = part.assign(Method=part["method"].map(labels), metric=part["metric"].map(names))
            sns.barplot(
                drawn, x="Method", y="mean", hue="metric", order=list(labels.values()), hue_order=list(names.values()),
                ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            axis.set_title(f"{spec['scenarios'][scenario]['label']}, {TITLES[stage]}", fontsize=9)
            axis.set(xlabel="", ylabel="", ylim=(0, 1.12))
            axis.tick_params(axis="x", labelrotation=30, labelsize=8)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(fontsize=7, ncols=3, loc="upper center", framealpha=0.9)
    return figure
