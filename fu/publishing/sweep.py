"""Metrics over the values of one setting: all points of the methods' grids, none chosen."""

from pathlib import Path
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fu.errors import UserError
from fu.evaluation.metrics import METRICS
from fu.publishing.result import Result, read

READS = "evaluations"
POINTS = "all"


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return mean and standard deviation over seeds after post-training (or unlearning, where nothing follows)."""
    setting = varied(spec)
    for method, about in spec["methods"].items():
        if any(setting not in found["coordinates"] for points in about["points"].values() for _, found in points):
            raise UserError(
                f"{spec['artefact']}: a sweep needs {setting} in the grid of every method; {method!r} has none."
            )
    parts = []
    for scenario in spec["scenarios"]:
        for method, about in spec["methods"].items():
            for point, found in about["points"][scenario]:
                value = found["coordinates"][setting]
                for seed in spec["seeds"]:
                    folder = root / spec["paper"] / scenario / f"seed{seed}"
                    rows = read(folder / f"{point}.evaluation.csv").rename(columns={"role": "stage"})
                    stems = {stem.rpartition(".")[2]: stem for stem in found["models"]}
                    last = rows["stage"] == list(stems)[-1]
                    about_rows = {"scenario": scenario, "method": method, "x": value, "seed": seed}
                    parts.append(rows.assign(**about_rows, stem=rows["stage"].map(stems), last=last))
    long = pd.concat(parts, ignore_index=True)
    lost = long[long["metric"] == "diverged_round"]
    diverged = len(lost.drop_duplicates(["scenario", "seed", "stem"]))
    long = long[long["metric"].isin(spec["metrics"])]
    keys = ["scenario", "method", "x", "stage", "metric", "last"]
    frame = long.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    frame.insert(2, "setting", setting)
    return Result(frame, _tables(spec, frame, setting, diverged), _picture(spec, long, setting))


def varied(spec: dict[str, Any]) -> str:
    """Return the one setting that differs between points; `UserError` where there is none, or more than one."""
    values: dict[str, set[Any]] = {}
    for method in spec["methods"].values():
        for points in method["points"].values():
            own: dict[str, set[Any]] = {}
            for _, found in points:
                for key, value in found["coordinates"].items():
                    own.setdefault(key, set()).add(value)
            for key, seen in own.items():
                values.setdefault(key, set()).update(seen if len(seen) > 1 else ())
    several = sorted(key for key, seen in values.items() if seen)
    if len(several) != 1:
        raise UserError(
            f"{spec['artefact']}: a sweep needs methods whose grids vary one setting, got {several or 'none'}."
        )
    return several[0]


def _name(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _label(spec: dict[str, Any], method: str) -> str:
    about = spec["methods"][method]
    return about["label"] + ("" if about["in_paper"] else " *")


def _tables(spec: dict[str, Any], frame: pd.DataFrame, setting: str, diverged: int) -> str:
    text = []
    for scenario, about in spec["scenarios"].items():
        for metric in spec["metrics"]:
            rows = []
            for method in spec["methods"]:
                here = frame[
                    (frame["scenario"] == scenario) & (frame["method"] == method) & (frame["metric"] == metric)
                ]
                row = {"Method": _label(spec, method)}
                before = set(here[~here["last"]]["mean"].round(3))
                row["before"] = f"{before.pop():.3f}" if len(before) == 1 else "–"
                shown = here[here["last"]]
                row |= {_name(x): "–" for x in frame["x"].unique()}
                row |= {_name(x): f"{mean:.3f}" for x, mean in zip(shown["x"], shown["mean"], strict=True)}
                rows.append(row)
            table = pd.DataFrame(rows).fillna("–").to_markdown(index=False, disable_numparse=True)
            text.append(f"## {about['label']}: {METRICS[metric].label}\n\nColumns: {setting}.\n\n{table}\n")
    lost = f" {diverged} models diverged and are left out." if diverged else ""
    return "\n".join(text) + f"\nbefore: after unlearning. * not in the paper.{lost}\n"


def _picture(spec: dict[str, Any], long: pd.DataFrame, setting: str) -> Figure:
    scenarios, metrics = list(spec["scenarios"]), spec["metrics"]
    figure = Figure(figsize=(4.8 * len(metrics), 3.4 * len(scenarios) + 0.6), layout="constrained")
    axes = figure.subplots(len(scenarios), len(metrics), squeeze=False)
    order = [_label(spec, method) for method in spec["methods"]]
    named = long[long["last"]].assign(Method=long["method"].map(lambda method: _label(spec, method)))
    for line, scenario in zip(axes, scenarios, strict=True):
        for axis, metric in zip(line, metrics, strict=True):
            part = named[(named["scenario"] == scenario) & (named["metric"] == metric)]
            sns.lineplot(
                part, x="x", y="value", hue="Method", hue_order=order, style="Method", style_order=order, markers=True,
                errorbar="sd", ax=axis, legend="auto" if axis is axes[0, 0] else False,
            )  # fmt: skip
            if len(part) and pd.api.types.is_numeric_dtype(part["x"]) and part["x"].min() > 0:
                axis.set_xscale("log")
            axis.set(xlabel=setting, ylabel=METRICS[metric].label)
            if METRICS[metric].unit == "fraction":
                axis.set_ylim(-0.03, 1.03)
            axis.set_title(spec["scenarios"][scenario]["label"], fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
    if axes[0, 0].get_legend():
        axes[0, 0].legend(fontsize=7, frameon=False)
    return figure
