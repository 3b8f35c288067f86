"""A table of metrics: one panel per scenario, one row per model, the published number and the difference beside."""

from collections.abc import Hashable
from math import nan
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fu.artefacts.entry import Entry, Metric, Scenario
from fu.artefacts.result import Result
from fu.evaluation.selection import RULE

READS = "evaluations"
ALSO = ("distance",)  # whether a model comes back to the original one
PUBLISHED = {"metrics": ("reverts",)}  # the paper's mark behind an ASR
KEYS = ["scenario", "method", "stage", "metric"]
Cell = dict[Hashable, Any]
Panels = list[tuple[str, pd.DataFrame]]  # label of the scenario, rows as text


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds, with the published values."""
    found = collect(frame, entry)
    panels = [(scenario.label, panel(entry, found, scenario)) for scenario in entry.scenarios]
    notes = notes_of(entry, found)
    return Result(found, f"{text_of(panels)}\n{notes}\n", picture(panels, notes))


def text_of(panels: Panels) -> str:
    """Return the panels as Markdown."""
    return "\n".join(
        f"## {label}\n\n{rows.to_markdown(index=False, disable_numparse=True)}\n" for label, rows in panels
    )


def notes_of(entry: Entry, frame: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    parts = [entry.footnotes]
    if frame["diverged"].any():
        parts.append("Diverged: the round.")
    if entry.published:
        parts.append("Difference: ours minus paper.")
    parts.append("Bold: best of the paper's methods after unlearning and after post-training, retraining apart.")
    if (frame["mark"] != "").any() or (frame["published_mark"] != "").any():
        parts.append("r: ASR rises in post-training; r↓: and the model comes back towards ω⁰ (paper: r alone).")
    if any(len(trials) > 1 for method in entry.methods for trials in method.trials.values()):
        parts.append(f"Rate: chosen from a grid, in parentheses one that was not; the rule: {RULE}.")
    return " ".join(parts)


def collect(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return tidy rows: scenario, method, stage, metric, mean, std, n, published, difference, diverged, marks."""
    rows, theirs = frame[~frame["published"]], frame[frame["published"]]
    wanted = [m.name for m in entry.metrics] + [m.spread for m in entry.metrics if m.spread]
    lost = rows[rows["metric"] == "diverged_round"].groupby(KEYS[:3])["value"].agg(["min", "count"])
    found = rows.groupby(KEYS)["value"].agg(["mean", "std", "count"])
    shown = [(s.name, method, stage) for s in entry.scenarios for method, stage, _ in entry.rows(s.name)]
    index = pd.MultiIndex.from_tuples([(*row, metric) for row in shown for metric in wanted], names=KEYS)
    out = found.reindex(index).rename(columns={"count": "n"}).reset_index()
    out["n"] = out["n"].fillna(0).astype(int)
    out["published"] = out[KEYS].merge(theirs, on=KEYS, how="left")["value"]
    marked = set(theirs[theirs["metric"] == "reverts"][KEYS[:3]].itertuples(index=False, name=None))
    keys = list(out[KEYS].itertuples(index=False, name=None))
    out["published_mark"] = ["r" if key[3] == "asr" and key[:3] in marked else "" for key in keys]
    out["difference"] = out["mean"] - out["published"]
    out["mark"] = [_mark(found["mean"], *key) for key in keys]
    at = pd.MultiIndex.from_frame(out[KEYS[:3]])
    out["diverged"] = lost["count"].reindex(at).fillna(0).astype(int).to_numpy()
    out["diverged_round"] = lost["min"].reindex(at).to_numpy()
    return out


def _mark(means: "pd.Series[float]", scenario: str, method: str, stage: str, metric: str) -> str:
    """Return r where the printed ASR is higher than before post-training, r↓ where the model also comes back."""
    if metric != "asr" or stage != "recovered":
        return ""
    asr, before = (means.get((scenario, method, role, "asr"), nan) for role in ("recovered", "unlearned"))
    far, farther = (means.get((scenario, method, role, "distance"), nan) for role in ("recovered", "unlearned"))
    if not round(asr, 3) > round(before, 3):
        return ""
    return "r↓" if far < farther else "r"


def panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    """Return one scenario's rows as text: the rate, then for each metric ours, the paper's and the difference."""
    records = frame[frame["scenario"] == scenario.name].to_dict("records")
    cells = {(record["method"], record["stage"], record["metric"]): record for record in records}
    methods = {method.name: method for method in entry.methods}
    best = _best(entry, cells)
    rows = []
    for name, stage, label in entry.rows(scenario.name):
        row = {"Method": label, "rate": "–"}
        if name in methods:
            setting = entry.trial(scenario.name, methods[name]).setting
            row["rate"] = setting if len(methods[name].trials[scenario.name]) > 1 else f"({setting})"
        for metric in entry.metrics:
            cell = cells[name, stage, metric.name]
            spread = cells[name, stage, metric.spread] if metric.spread else None
            row[metric.label] = _ours(cell, spread)
            if (name, stage, metric.name) in best:
                row[metric.label] = f"**{row[metric.label]}**"
            if cell["diverged"] and not cell["n"]:
                first = metric is entry.metrics[0]
                row[metric.label] = f"diverged in {cell['diverged_round']:.0f}" if first else "–"
            if entry.published:
                theirs = _number(cell["published"], spread["published"] if spread is not None else None)
                row[f"{metric.label} paper"] = f"{theirs} {cell['published_mark']}".strip()
                row[f"{metric.label} diff"] = "–" if pd.isna(cell["difference"]) else f"{cell['difference']:+.3f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _best(entry: Entry, cells: dict[tuple[str, str, str], Cell]) -> set[tuple[str, str, str]]:
    """Return the cells that are best in their column, after unlearning and after post-training."""
    found: set[tuple[str, str, str]] = set()
    theirs = [method for method in entry.methods if method.in_paper or not entry.in_paper]
    rivals = {method.name for method in theirs if method.post_training != "own"}

    def value(metric: Metric, cell: Cell) -> float:
        return round(cell["mean"], 3) * (-1 if metric.better == "lower" else 1)

    for metric in entry.metrics:
        for stage in ("unlearned", "recovered"):
            values = {
                key: value(metric, cell)
                for key, cell in cells.items()
                if key[1:] == (stage, metric.name) and cell["n"] and key[0] in rivals
            }
            if len(values) > 1 and metric.better != "neither":
                found |= {key for key, value in values.items() if value == max(values.values())}
    return found


def _number(value: float, spread: float | None = None) -> str:
    if pd.isna(value):
        return "–"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
    return text if spread is None or pd.isna(spread) else f"{text} ({spread:.3f})"


def _ours(cell: Cell, spread: Cell | None) -> str:
    text = _number(cell["mean"], None if spread is None else spread["mean"])
    if cell["n"] > 1:
        text += f" ±{cell['std']:.3f}"
    text = f"{text} {cell['mark']}".strip()
    return text + (f", {cell['diverged']} diverged" if cell["diverged"] else "")


def picture(panels: Panels, notes: str) -> Figure:
    """Draw the panels below each other."""
    tables = [table for _, table in panels]
    rows = sum(len(table) + 2 for table in tables)
    widths = [
        max(max(len(str(table[name].iloc[k])) for table in tables for k in range(len(table))) + 1, 6)
        for name in tables[0].columns
    ]
    width = max(8.0, 0.085 * sum(widths))
    figure = Figure(figsize=(width, 0.26 * rows + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[len(table) + 2 for table in tables])
    for axis, (label, table) in zip(axes[:, 0], panels, strict=True):
        axis.axis("off")
        axis.set_title(label, fontsize=9, loc="left")
        drawn = axis.table(
            [[str(value).replace("**", "") for value in line] for line in table.to_numpy().tolist()],
            colLabels=[column.replace(" ", "\n", 1) for column in table.columns],
            colWidths=[share / sum(widths) for share in widths],
            cellLoc="right",
            bbox=[0, 0, 1, 1],
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(8)
        for (row, column), cell in drawn.get_celld().items():
            cell.set_linewidth(0.3)
            if column == 0:
                cell.set_text_props(ha="left")
            header = table.columns[column]
            if row > 0 and (header.endswith(" paper") or header.endswith(" diff")):
                cell.set_text_props(color="0.45")
            if row > 0 and str(table.iloc[row - 1, column]).startswith("**"):
                cell.set_text_props(weight="bold")
    axes[-1, 0].text(0, -0.02, fill(notes, int(width * 14)), fontsize=8, va="top", transform=axes[-1, 0].transAxes)
    return figure
