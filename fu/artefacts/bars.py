"""Bars of metrics by method: a panel for each scenario and stage (FedOSD Figure 6)."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fu.artefacts.entry import ORIGINAL, Entry
from fu.artefacts.panels import markdown
from fu.artefacts.result import Result
from fu.artefacts.table import collect, notes_of, panel

READS = "evaluations"
ALSO = ("asr", "distance")
PUBLISHED = {"metrics": ("reverts",)}
STAGES = ("unlearned", "recovered")  # those that have a panel
TITLES = {"unlearned": "after unlearning", "recovered": "after post-training"}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the numbers of a table, drawn as bars beside the original model's."""
    found = collect(frame, entry)
    panels = [(scenario.label, panel(entry, found, scenario)) for scenario in entry.scenarios]
    return Result(found, f"{markdown(panels)}\n{notes_of(entry, found)}\n", _picture(entry, found))


def _picture(entry: Entry, frame: pd.DataFrame) -> Figure:
    stages = [stage for stage in entry.stages if stage != ORIGINAL]
    figure = Figure(figsize=(5.6 * len(stages), 3.2 * len(entry.scenarios) + 0.6), layout="constrained")
    axes = figure.subplots(len(entry.scenarios), len(stages), squeeze=False)
    names = {metric.name: metric.label for metric in entry.metrics}
    for line, scenario in zip(axes, entry.scenarios, strict=True):
        rows = entry.rows(scenario.name)
        for axis, stage in zip(line, stages, strict=True):
            labels = {method: label for method, role, label in rows if role in (ORIGINAL, stage)}
            part = frame[(frame["scenario"] == scenario.name) & frame["stage"].isin([ORIGINAL, stage])]
            part = part[part["metric"].isin(names)]
            drawn = part.assign(Method=part["method"].map(labels), metric=part["metric"].map(names))
            sns.barplot(
                drawn, x="Method", y="mean", hue="metric", order=list(labels.values()), hue_order=list(names.values()),
                ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            axis.set_title(f"{scenario.label}, {TITLES[stage]}", fontsize=9)
            axis.set(xlabel="", ylabel="", ylim=(0, 1.12))
            axis.tick_params(axis="x", labelrotation=30, labelsize=8)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(fontsize=7, ncols=3, loc="upper center", framealpha=0.9)
    return figure
