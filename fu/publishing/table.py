"""A table of metrics: one panel per scenario, one row per model, the published number and the difference beside."""

from collections.abc import Hashable
from math import nan
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fu.evaluation.metrics import METRICS
from fu.evaluation.selection import RULE
from fu.publishing.result import Result, footnotes, models_of, read, shown

READS = "evaluations"
KEYS = ["scenario", "method", "stage", "metric"]
Cell = dict[Hashable, Any]
SPREAD = {"r_acc": "r_acc_std"}  # shown in parentheses behind the mean, as the paper does


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return mean and standard deviation over seeds, with the published values."""
    frame = collect(spec, root)
    panels = {name: panel(spec, root, frame, name) for name in spec["scenarios"]}
    notes = notes_of(spec, frame)
    return Result(frame, f"{text_of(spec, panels)}\n{notes}\n", picture(spec, panels, notes))


def text_of(spec: dict[str, Any], panels: dict[str, pd.DataFrame]) -> str:
    """Return the panels as Markdown."""
    return "\n".join(
        f"## {spec['scenarios'][name]['label']}\n\n{rows.to_markdown(index=False, disable_numparse=True)}\n"
        for name, rows in panels.items()
    )


def notes_of(spec: dict[str, Any], frame: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    parts = [footnotes(spec)]
    if frame["diverged"].any():
        parts.append("Diverged: the round.")
    if spec["published"]:
        parts.append("Difference: ours minus paper.")
    parts.append("Bold: best of the paper's methods after unlearning and after post-training, retraining apart.")
    if (frame["mark"] != "").any() or (frame["published_mark"] != "").any():
        parts.append("r: ASR rises in post-training; r↓: and the model comes back towards ω⁰ (paper: r alone).")
    if any(len(found) > 1 for method in spec["methods"].values() for found in method["points"].values()):
        parts.append(f"Rate: chosen from a grid, in parentheses one that was not; the rule: {RULE}.")
    return " ".join(parts)


def collect(spec: dict[str, Any], root: Path) -> pd.DataFrame:
    """Return tidy rows: scenario, method, stage, metric, mean, std, n, published, difference, diverged, marks."""
    parts = []
    for scenario in spec["scenarios"]:
        for method in ["original", *spec["methods"]]:
            name = method if method == "original" else shown(spec, root, scenario, method).point
            for seed in spec["seeds"]:
                path = root / spec["paper"] / scenario / f"seed{seed}" / f"{name}.evaluation.csv"
                parts.append(read(path).assign(scenario=scenario, method=method))
    rows = pd.concat(parts).rename(columns={"role": "stage"})
    wanted = [*spec["metrics"], *(SPREAD[metric] for metric in spec["metrics"] if metric in SPREAD)]
    lost = rows[rows["metric"] == "diverged_round"].groupby(KEYS[:3])["value"].agg(["min", "count"])
    found = rows.groupby(KEYS)["value"].agg(["mean", "std", "count"])
    index = pd.MultiIndex.from_tuples(
        [
            (scenario, method, role, metric)
            for scenario in spec["scenarios"]
            for method, role, _ in models_of(spec, scenario)
            for metric in wanted
        ],
        names=KEYS,
    )
    frame = found.reindex(index).rename(columns={"count": "n"}).reset_index()
    frame["n"] = frame["n"].fillna(0).astype(int)
    frame["published"] = float("nan")
    frame["published_mark"] = ""
    if spec["published"]:
        published = pd.read_csv(Path("workflow/published") / spec["paper"] / f"{spec['artefact']}.csv")
        frame["published"] = frame[KEYS].merge(published, on=KEYS, how="left")["value"]
        marked = set(published[published["metric"] == "reverts"][KEYS[:3]].itertuples(index=False, name=None))
        frame["published_mark"] = [
            "r" if row[3] == "asr" and row[:3] in marked else ""
            for row in frame[KEYS].itertuples(index=False, name=None)
        ]
    frame["difference"] = frame["mean"] - frame["published"]
    frame["mark"] = [_mark(found["mean"], *row) for row in frame[KEYS].itertuples(index=False, name=None)]
    at = pd.MultiIndex.from_frame(frame[KEYS[:3]])
    frame["diverged"] = lost["count"].reindex(at).fillna(0).astype(int).to_numpy()
    frame["diverged_round"] = lost["min"].reindex(at).to_numpy()
    return frame


def _mark(means: "pd.Series[float]", scenario: str, method: str, stage: str, metric: str) -> str:
    """Return r where the printed ASR is higher than before post-training, r↓ where the model also comes back."""
    if metric != "asr" or stage != "recovered":
        return ""
    asr, before = (means.get((scenario, method, role, "asr"), nan) for role in ("recovered", "unlearned"))
    far, farther = (means.get((scenario, method, role, "distance"), nan) for role in ("recovered", "unlearned"))
    if not round(asr, 3) > round(before, 3):
        return ""
    return "r↓" if far < farther else "r"


def panel(spec: dict[str, Any], root: Path, frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return one scenario's rows as text: the rate, then for each metric ours, the paper's and the difference."""
    records = frame[frame["scenario"] == scenario].to_dict("records")
    cells = {(record["method"], record["stage"], record["metric"]): record for record in records}
    best = _best(spec, cells)
    rows = []
    for method, role, label in models_of(spec, scenario):
        row = {"Method": label, "rate": "–"}
        if method != "original":
            point = shown(spec, root, scenario, method)
            row["rate"] = point.setting if point.chosen else f"({point.setting})"
        for metric in spec["metrics"]:
            cell = cells[method, role, metric]
            spread = cells[method, role, SPREAD[metric]] if metric in SPREAD else None
            name = METRICS[metric].label
            row[name] = _ours(cell, spread)
            if (method, role, metric) in best:
                row[name] = f"**{row[name]}**"
            if cell["diverged"] and not cell["n"]:
                first = metric == spec["metrics"][0]
                row[name] = f"diverged in {cell['diverged_round']:.0f}" if first else "–"
            if spec["published"]:
                theirs = _number(cell["published"], spread["published"] if spread is not None else None)
                row[f"{name} paper"] = f"{theirs} {cell['published_mark']}".strip()
                row[f"{name} diff"] = "–" if pd.isna(cell["difference"]) else f"{cell['difference']:+.3f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _best(spec: dict[str, Any], cells: dict[tuple[str, str, str], Cell]) -> set[tuple[str, str, str]]:
    """Return the cells that are best in their column, after unlearning and after post-training."""
    found: set[tuple[str, str, str]] = set()
    theirs = {name: about for name, about in spec["methods"].items() if about["in_paper"] or not spec["in_paper"]}
    rivals = {name for name, about in theirs.items() if about["post_training"] != "own"}
    for metric in spec["metrics"]:
        better = METRICS[metric].better
        for role in ("unlearned", "recovered"):
            values = {
                key: round(cell["mean"], 3) * (-1 if better == "lower" else 1)
                for key, cell in cells.items()
                if key[1:] == (role, metric) and cell["n"] and key[0] in rivals
            }
            if len(values) > 1 and better != "neither":
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


def picture(spec: dict[str, Any], panels: dict[str, pd.DataFrame], notes: str) -> Figure:
    """Draw the panels below each other."""
    rows = sum(len(panel) + 2 for panel in panels.values())
    widths = [
        max(max(len(str(panel[name].iloc[k])) for panel in panels.values() for k in range(len(panel))) + 1, 6)
        for name in next(iter(panels.values())).columns
    ]
    width = max(8.0, 0.085 * sum(widths))
    figure = Figure(figsize=(width, 0.26 * rows + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[len(panel) + 2 for panel in panels.values()])
    for axis, (name, table) in zip(axes[:, 0], panels.items(), strict=True):
        axis.axis("off")
        axis.set_title(spec["scenarios"][name]["label"], fontsize=9, loc="left")
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
    wrapped = fill(notes, int(width * 14))
    axes[-1, 0].text(0, -0.02, wrapped, fontsize=8, va="top", transform=axes[-1, 0].transAxes)
    return figure
