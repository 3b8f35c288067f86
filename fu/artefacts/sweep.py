"""Metrics over the values of one setting: all trials of the methods' grids, none chosen."""

from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from fu.artefacts.entry import Entry, Method
from fu.artefacts.result import Result
from fu.errors import UserError

READS = "evaluations"
TRIALS = "all"
SETTINGS = 1  # how many of them vary


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds after post-training (or unlearning, where nothing follows)."""
    setting = varied(entry)
    for method in entry.methods:
        if any(setting not in trial.values for trials in method.trials.values() for trial in trials):
            raise UserError(
                f"{entry.artefact}: a sweep needs {setting} in the grid of every method; {method.name!r} has none."
            )
    trials = {t.name: t for method in entry.methods for found in method.trials.values() for t in found}
    rows = frame[~frame["published"] & frame["trial"].isin(trials)]
    rows = rows.assign(
        x=[trials[name].values[setting] for name in rows["trial"]],
        last=[list(trials[name].models)[-1] == stage for name, stage in zip(rows["trial"], rows["stage"], strict=True)],
    )
    lost = rows[rows["metric"] == "diverged_round"]
    diverged = len(lost.drop_duplicates(["scenario", "seed", "model"]))
    long = rows[rows["metric"].isin([metric.name for metric in entry.metrics])]
    keys = ["scenario", "method", "x", "stage", "metric", "last"]
    means = long.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    means.insert(2, "setting", setting)
    return Result(means, _tables(entry, means, setting, diverged), _picture(entry, long, setting))


def varied(entry: Entry) -> str:
    """Return the one setting that differs between trials; `UserError` where there is none, or more than one."""
    several = sorted({key for method in entry.methods for key in _varied_by(method)})
    if len(several) != 1:
        raise UserError(
            f"{entry.artefact}: a sweep needs methods whose grids vary one setting, got {several or 'none'}."
        )
    return several[0]


def _varied_by(method: Method) -> set[str]:
    found: set[str] = set()
    for trials in method.trials.values():
        for key in {key for trial in trials for key in trial.values}:
            if len({trial.values[key] for trial in trials if key in trial.values}) > 1:
                found.add(key)
    return found


def _name(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _tables(entry: Entry, frame: pd.DataFrame, setting: str, diverged: int) -> str:
    text = []
    for scenario in entry.scenarios:
        for metric in entry.metrics:
            here = frame[(frame["scenario"] == scenario.name) & (frame["metric"] == metric.name)]
            rows = []
            for method in entry.methods:
                part = here[here["method"] == method.name]
                row = {"Method": method.marked}
                before = set(part[~part["last"]]["mean"].round(3))
                row["before"] = f"{before.pop():.3f}" if len(before) == 1 else "–"
                shown = part[part["last"]]
                row |= {_name(x): "–" for x in frame["x"].unique()}
                row |= {_name(x): f"{mean:.3f}" for x, mean in zip(shown["x"], shown["mean"], strict=True)}
                rows.append(row)
            table = pd.DataFrame(rows).fillna("–").to_markdown(index=False, disable_numparse=True)
            text.append(f"## {scenario.label}: {metric.label}\n\nColumns: {setting}.\n\n{table}\n")
    lost = f" {diverged} models diverged and are left out." if diverged else ""
    return "\n".join(text) + f"\nbefore: after unlearning. * not in the paper.{lost}\n"


def _picture(entry: Entry, long: pd.DataFrame, setting: str) -> Figure:
    size = (4.8 * len(entry.metrics), 3.4 * len(entry.scenarios) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(entry.scenarios), len(entry.metrics), squeeze=False)
    labels = {method.name: method.marked for method in entry.methods}
    order = list(labels.values())
    named = long[long["last"]].assign(Method=long["method"].map(labels))
    for line, scenario in zip(axes, entry.scenarios, strict=True):
        for axis, metric in zip(line, entry.metrics, strict=True):
            part = named[(named["scenario"] == scenario.name) & (named["metric"] == metric.name)]
            sns.lineplot(
                part, x="x", y="value", hue="Method", hue_order=order, style="Method", style_order=order, markers=True,
                errorbar="sd", ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            if len(part) and pd.api.types.is_numeric_dtype(part["x"]) and part["x"].min() > 0:
                axis.set_xscale("log")
                axis.xaxis.set_major_formatter(LogFormatter())
                axis.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
            axis.set(xlabel=setting, ylabel=metric.label)
            if metric.unit == "fraction":
                axis.set_ylim(-0.03, 1.03)
            axis.set_title(scenario.label, fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
    if axes[0, 0].get_legend():
        axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
