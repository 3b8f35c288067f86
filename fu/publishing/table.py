"""A table of metrics: one panel per scenario, one row per model, the published number and the difference beside."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fu.evaluation.metrics import METRICS
from fu.publishing.result import Result, footnotes, models_of, read

READS = "evaluations"
KEYS = ["scenario", "method", "stage", "metric"]
Cell = dict[Hashable, Any]
SPREAD = {"r_acc": "r_acc_std"}  # shown in parentheses behind the mean, as the paper does


def make(spec: dict[str, Any], root: Path) -> Result:
    """Return mean and standard deviation over seeds, with the published values."""
    frame = collect(spec, root)
    panels = {name: panel(spec, frame, name) for name in spec["scenarios"]}
    body = "\n".join(
        f"## {spec['scenarios'][name]['label']}\n\n{rows.to_markdown(index=False, disable_numparse=True)}\n"
        for name, rows in panels.items()
    )
    notes = (
        footnotes(spec)
        + (" Diverged: the round." if frame["diverged"].any() else "")
        + (" Difference: ours minus paper." if spec["published"] else "")
    )
    return Result(frame, f"{body}\n{notes}\n", picture(spec, panels, notes))


def collect(spec: dict[str, Any], root: Path) -> pd.DataFrame:
    """Return tidy rows: scenario, method, stage, metric, mean, std, n, published, difference, diverged."""
    parts = []
    for scenario in spec["scenarios"]:
        for method in ["original", *spec["methods"]]:
            for seed in spec["seeds"]:
                path = root / spec["paper"] / scenario / f"seed{seed}" / f"{method}.evaluation.csv"
                parts.append(read(path).assign(scenario=scenario, method=method))
    rows = pd.concat(parts).rename(columns={"role": "stage"})
    wanted = [*spec["metrics"], *(SPREAD[metric] for metric in spec["metrics"] if metric in SPREAD)]
    lost = rows[rows["metric"] == "diverged_round"].groupby(KEYS[:3])["value"].agg(["min", "count"])
    found = rows[rows["metric"].isin(wanted)].groupby(KEYS)["value"].agg(["mean", "std", "count"])
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
    if spec["published"]:
        published = pd.read_csv(Path("workflow/published") / spec["paper"] / f"{spec['artefact']}.csv")
        frame["published"] = frame[KEYS].merge(published, on=KEYS, how="left")["value"]
    frame["difference"] = frame["mean"] - frame["published"]
    at = pd.MultiIndex.from_frame(frame[KEYS[:3]])
    frame["diverged"] = lost["count"].reindex(at).fillna(0).astype(int).to_numpy()
    frame["diverged_round"] = lost["min"].reindex(at).to_numpy()
    return frame


def panel(spec: dict[str, Any], frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return one scenario's rows as text: for each metric ours, the paper's and the difference."""
    records = frame[frame["scenario"] == scenario].to_dict("records")
    cells = {(record["method"], record["stage"], record["metric"]): record for record in records}
    rows = []
    for method, role, label in models_of(spec, scenario):
        row = {"Method": label}
        for metric in spec["metrics"]:
            cell = cells[method, role, metric]
            spread = cells[method, role, SPREAD[metric]] if metric in SPREAD else None
            name = METRICS[metric].label
            row[name] = _ours(cell, spread)
            if cell["diverged"] and not cell["n"]:
                first = metric == spec["metrics"][0]
                row[name] = f"diverged in {cell['diverged_round']:.0f}" if first else "–"
            if spec["published"]:
                row[f"{name} paper"] = _number(cell["published"], spread["published"] if spread is not None else None)
                row[f"{name} diff"] = "–" if pd.isna(cell["difference"]) else f"{cell['difference']:+.3f}"
        rows.append(row)
    return pd.DataFrame(rows)


def _number(value: float, spread: float | None = None) -> str:
    if pd.isna(value):
        return "–"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
    return text if spread is None or pd.isna(spread) else f"{text} ({spread:.3f})"


def _ours(cell: Cell, spread: Cell | None) -> str:
    text = _number(cell["mean"], None if spread is None else spread["mean"])
    if cell["n"] > 1:
        text += f" ±{cell['std']:.3f}"
    return text + (f", {cell['diverged']} diverged" if cell["diverged"] else "")


def picture(spec: dict[str, Any], panels: dict[str, pd.DataFrame], notes: str) -> Figure:
    """Draw the panels below each other."""
    rows = sum(len(panel) + 2 for panel in panels.values())
    columns = max(len(panel.columns) for panel in panels.values())
    figure = Figure(figsize=(1.6 + 0.95 * columns, 0.26 * rows + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[len(panel) + 2 for panel in panels.values()])
    for axis, (name, table) in zip(axes[:, 0], panels.items(), strict=True):
        axis.axis("off")
        axis.set_title(spec["scenarios"][name]["label"], fontsize=9, loc="left")
        widths = [2.2, 1.2, *[1.25 if "(" in str(table[c].iloc[0]) else 0.8 for c in table.columns[2:]]]
        drawn = axis.table(
            table.values.tolist(),
            colLabels=[column.replace(" ", "\n", 1) for column in table.columns],
            colWidths=[width / sum(widths) for width in widths],
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
    axes[-1, 0].text(0, -0.02, notes, fontsize=8, va="top", transform=axes[-1, 0].transAxes)
    return figure
