"""The numbers of a table as bars by method, a panel for each scenario and stage (as FedOSD Figure 6)."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from fu.artefacts.drawing import head, legend, panels, shades
from fu.artefacts.entry import ORIGINAL, Entry, Metric

CROWDED = 0.6  # inches that the name of a method needs
TITLES = {"unlearned": "after unlearning", "recovered": "after post-training"}


def names(metrics: tuple[Metric, ...]) -> tuple[str, dict[str, str]]:
    """Return what the axis says, and metric -> what the legend says: of a mean, its best and its worst R-Acc alone."""
    labels = {metric.name: metric.label for metric in metrics}
    for base in metrics:
        others = [name for name in labels if name != base.name]
        if others and all(name.startswith(f"{base.name}_") for name in others) and base.formula.startswith("mean"):
            return base.label, labels | {base.name: "Mean"}
    return ", ".join(labels.values()), labels


def picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Draw the rows of a table, those of the original model in each panel."""
    stages = [stage for stage in entry.stages if stage != ORIGINAL]
    figure, lines = panels(len(entry.scenarios) * len(stages), 1, 1.5, beside=1)
    shown = [(scenario, stage) for scenario in entry.scenarios for stage in stages]
    fills = shades("0.55", len(entry.metrics))[::-1]
    width = 0.84 / len(entry.metrics)
    quantity, labelled = names(entry.metrics)
    for [axis], (scenario, stage) in zip(lines, shown, strict=True):
        rows = [row for row in entry.rows(scenario.name) if row[1] in (ORIGINAL, stage)]
        keys = pd.MultiIndex.from_tuples([row[:2] for row in rows])
        here = found[found["scenario"] == scenario.name]
        values = {name: part.set_index(["method", "stage"]).loc[keys] for name, part in here.groupby("metric")}
        for k, metric in enumerate(entry.metrics):
            at = np.arange(len(rows)) + (k - (len(entry.metrics) - 1) / 2) * width
            _draw(axis, at, width, values[metric.name], fills[k], labelled[metric.name])
        lost = values[entry.metrics[0].name]
        for k, (count, diverged) in enumerate(zip(lost["n"], lost["diverged"], strict=True)):
            if diverged and not count:
                axis.text(k, 0.02, "diverged", rotation=90, ha="center", transform=axis.get_xaxis_transform())
        labels = [
            label + (f"\n({diverged} of {len(entry.seeds)} diverged)" if diverged and count else "")
            for (_, _, label), count, diverged in zip(rows, lost["n"], lost["diverged"], strict=True)
        ]
        crowded = len(rows) * CROWDED > rcParams["figure.figsize"][0]
        turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if crowded else {}
        axis.set_xticks(range(len(rows)), labels, **turned)
        axis.tick_params(axis="x", length=0)
        head(axis, entry.heading_of(f"{scenario.label}: {TITLES[stage]}"))
        axis.set_ylabel(quantity)
        if all(metric.unit == "fraction" for metric in entry.metrics):
            axis.set(ylim=(0, 1.15), yticks=[0, 0.5, 1])
        axis.margins(x=0.01)
    legend(figure, [Patch(color=fill, label=label) for fill, label in zip(fills, labelled.values(), strict=True)])
    return figure


def _draw(axis: Axes, at: NDArray[np.floating[Any]], width: float, rows: pd.DataFrame, fill: Any, label: str) -> None:
    """Draw the bars of one metric, each with its value above; none where there is no number."""
    heights, spread = rows["mean"].to_numpy(float), rows["std"].where(rows["std"] > 0).to_numpy(float)
    drawn = axis.bar(at, heights, width, color=fill, label=label, yerr=spread, error_kw={"linewidth": 0.8})
    values = [short(height) if np.isfinite(height) else "" for height in heights]
    axis.bar_label(drawn, values, padding=1, fontsize=rcParams["xtick.labelsize"])


def short(value: float) -> str:
    """Return a share in two digits: .19, 0 where there is nothing, 1."""
    if value in (0, 1) or abs(value) > 1:
        return f"{value:.3g}"
    return f"{value:.2f}".removeprefix("0")
