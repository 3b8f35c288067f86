"""Membership inference on models before and after unlearning (FATS Table 1): a panel for each metric, a row per data.

The attack on the original and on the retrained model stands beside: where it cannot tell members on the original model,
50% after unlearning says nothing.
"""

from collections.abc import Hashable
from typing import Any

import pandas as pd

from fu.artefacts.entry import ORIGINAL, Entry, Metric, Scenario, Stage
from fu.artefacts.panels import OURS
from fu.artefacts.result import Result, of_table
from fu.artefacts.table import KEYS, collect, comparison

READS = "evaluations"
ALSO = ("mia_auc", "mia_auc_std", "mia_undefined")
BEYOND = 2.0  # spreads by which the area on the original model must exceed a half
Cell = dict[Hashable, Any]
Also = dict[Hashable, float]  # by scenario, method, stage and metric


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return means over seeds with their spread over attacks, beside the paper's, and whether the attack had power."""
    found = collect(frame, entry).drop(columns=["mark", "published_mark", "forgot", "took_hold"])
    cells = {tuple(row[key] for key in KEYS): row for row in found.to_dict("records")}
    ours = frame[~frame["published"] & frame["metric"].isin(ALSO)]
    also: Also = ours.groupby(KEYS)["value"].mean().to_dict()
    panels = [(metric.label, _panel(entry, metric, cells, also)) for metric in entry.metrics]
    words = [power(entry, also), *[[] for _ in entry.metrics[1:]]]
    return of_table(found, panels, _notes(entry, found), words, tuple(metric.name for metric in entry.metrics))


def models(entry: Entry, scenario: Scenario) -> list[tuple[str, Stage, str]]:
    """Return (method, stage, label) of every model that is shown: those before the request first."""
    before = {method.name for method in entry.methods if method.trains}
    rows = entry.rows(scenario.name)
    return [(name, stage, f"{label} before" if name in before else label) for name, stage, label in rows]


def power(entry: Entry, also: Also) -> list[str]:
    """Say for each scenario and original model whether the attack tells members on it."""
    found = []
    for scenario in entry.scenarios:
        for name, stage, label in models(entry, scenario):
            key = scenario.name, name, stage
            area, spread = (also.get((*key, metric)) for metric in ("mia_auc", "mia_auc_std"))
            if stage != ORIGINAL or area is None or spread is None:
                continue
            tells = area - 0.5 > BEYOND * spread
            says = (
                "the attack tells members."
                if tells
                else "the attack cannot tell members, so that 50% after unlearning says nothing."
            )
            found.append(f"{scenario.label}, {label}: AUC {area:.3f} ± {spread:.3f}; {says}")
    if entry.retraining is None:
        found.append("No retrained model is shown, so that nothing says what forgetting looks like.")
    return found


def _panel(entry: Entry, metric: Metric, cells: dict[tuple[Any, ...], Cell], also: Also) -> pd.DataFrame:
    """Return a row for each scenario, and for each model ours and, where there is one, the paper's number."""
    rows, printed = [], any(pd.notna(cell["published"]) for key, cell in cells.items() if key[-1] == metric.name)
    for scenario in entry.scenarios:
        row = {("", "Data"): scenario.label}
        for name, stage, label in models(entry, scenario):
            key = scenario.name, name, stage
            cell, spread = cells[*key, metric.name], cells[*key, metric.spread] if metric.spread else None
            missing = also.get((*key, "mia_undefined"), 0.0) if metric.name == "mia_precision" else 0.0
            ours = _text(metric, cell, spread, "mean") + (f", {missing:.2g} undefined" if missing else "")
            ours += f", {cell['diverged']} diverged" if cell["diverged"] and cell["n"] else ""
            if cell["diverged"] and not cell["n"]:
                ours = f"diverged in {cell['diverged_round']:.0f}"
            theirs = _text(metric, cell, spread, "published")
            if printed and stage != ORIGINAL:
                row |= {(label, OURS): ours, (label, "paper"): theirs}
            else:
                row["", label] = ours
        rows.append(row)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(columns)).fillna("–")


def _text(metric: Metric, cell: Cell, spread: Cell | None, which: str) -> str:
    if pd.isna(cell[which]):
        return "–"
    scale = 100 if metric.unit == "fraction" else 1
    text = f"{scale * cell[which]:.2f}"
    return text if spread is None or pd.isna(spread[which]) else f"{text} ± {scale * spread[which]:.2f}"


def _notes(entry: Entry, frame: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    parts = [entry.footnotes if any(scenario.original for scenario in entry.scenarios) else ""]
    parts += ["* not in the paper."] if not parts[0] and any(not method.in_paper for method in entry.methods) else []
    if any(method.trains for method in entry.methods):
        parts.append("before: the model that a training made, ahead of the request.")
    parts.append("Percent.")
    if any(metric.spread for metric in entry.metrics):
        parts.append(
            "±: standard deviation over the 100 attacks on a model, which redraw evaluation sets and attack models; it "
            "is not that over trainings."
        )
    if len(entry.seeds) > 1:
        parts.append("Numbers are means over seeds, whose standard deviation stands in the csv.")
    parts.append(
        f"The attack tells members where its AUC on the original model exceeds 0.5 by more than {BEYOND:g} of these ±."
    )
    if frame["diverged"].any():
        parts.append("Diverged: the round, or the seeds that all means of the method leave out.")
    parts += [text for text in comparison(entry) if not text.startswith("diff:")]
    return " ".join(part for part in parts if part)
