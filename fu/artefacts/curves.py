"""Curves of metrics over rounds, through unlearning and post-training (as FedOSD Figures 5, 8 and 9)."""

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fu.artefacts.entry import Entry
from fu.artefacts.result import Result

READS = "traces"


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return metric by round, mean and standard deviation over seeds, with a panel per scenario and metric."""
    first = frame.groupby(["scenario", "method", "seed", "model"], sort=False)["round"].transform("min")
    repeats = (frame["stage"] == "recovered") & (frame["round"] == first)  # the last round of unlearning once more
    long = frame[~repeats & frame["metric"].isin([metric.name for metric in entry.metrics])]
    keys = ["scenario", "method", "stage", "round", "metric"]
    means = long.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    return Result(means, _summary(entry, means, long), _picture(entry, long))


def _ends(entry: Entry, curves: pd.DataFrame) -> pd.DataFrame:
    """Return the last row of each seed's curve that breaks off before the last round: there the run diverged.

    Methods with rounds of their own are not judged.
    """
    last = curves.sort_values("round").groupby(["scenario", "method", "seed", "metric"], sort=False).tail(1)
    total = last["scenario"].map({scenario.name: scenario.rounds[1] for scenario in entry.scenarios})
    after = last["method"].map({method.name: method.post_training == "after" for method in entry.methods})
    return last[after.astype(bool) & (last["round"] < total)]


def _summary(entry: Entry, frame: pd.DataFrame, long: pd.DataFrame) -> str:
    """Return the values at the start, after unlearning and at the end."""
    text, broken = [], _ends(entry, long)
    for scenario in entry.scenarios:
        rows = []
        for method in entry.methods:
            here = frame[(frame["scenario"] == scenario.name) & (frame["method"] == method.name)]
            row = {"Method": method.marked}
            for metric in entry.metrics:
                values = here[here["metric"] == metric.name].sort_values("round")
                if values.empty:
                    row[metric.label] = "–"
                    continue
                turn = values[values["stage"] == "unlearned"].iloc[-1]
                lost = broken[(broken["scenario"] == scenario.name) & (broken["method"] == method.name)]
                rounds = sorted(lost[lost["metric"] == metric.name]["round"])
                after = f"diverged after {', '.join(map(str, rounds))}"
                if len(rounds) == len(entry.seeds):
                    row[metric.label] = f"{values['mean'].iloc[0]:.3f} → {after}"
                    continue
                ends = {"start": values.iloc[0], f"round {turn['round']}": turn, "end": values.iloc[-1]}
                short = [f"{value['mean']:.3f}" for value in ends.values()]
                note = f" ({len(rounds)} of {len(entry.seeds)} seeds {after})" if rounds else ""
                row[metric.label] = " → ".join(short) + note
            rows.append(row)
        table = pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)
        text.append(f"## {scenario.label}\n\nAt the start of the method → after unlearning → at the end:\n\n{table}\n")
    return "\n".join(text) + "\nThe paper prints no numbers for its curves.\n"


def _picture(entry: Entry, long: pd.DataFrame) -> Figure:
    size = (4.2 * len(entry.metrics), 3.2 * len(entry.scenarios) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(entry.scenarios), len(entry.metrics), squeeze=False)
    labels = {method.name: method.marked for method in entry.methods}
    order = list(labels.values())
    named = long.assign(Method=long["method"].map(labels))
    colours = dict(zip(labels, sns.color_palette(n_colors=len(order)), strict=True))
    broken = _ends(entry, long)
    for line, scenario in zip(axes, entry.scenarios, strict=True):
        for axis, metric in zip(line, entry.metrics, strict=True):
            part = named[(named["scenario"] == scenario.name) & (named["metric"] == metric.name)]
            sns.lineplot(
                part, x="round", y="value", hue="Method", hue_order=order, style="Method", style_order=order,
                errorbar="sd", palette=list(colours.values()), ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            for first in part[part["stage"] == "recovered"].groupby("method")["round"].min().unique():
                axis.axvline(first - 1, color="0.6", linestyle=":", linewidth=1)
            here = broken[(broken["scenario"] == scenario.name) & (broken["metric"] == metric.name)]
            for method, round, value in here[["method", "round", "value"]].itertuples(index=False):
                axis.plot(round, value, marker="X", color=colours[method], clip_on=False)
            axis.set_ylabel(metric.label)
            axis.set_title(scenario.label, fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
            if metric.unit == "fraction":
                axis.set_ylim(-0.03, 1.03)
    if len(broken):
        axes[0, 0].plot([], [], marker="X", linestyle="none", color="0.4", label="diverged")
    axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
