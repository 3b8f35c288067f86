"""Membership inference on models before and after unlearning (FATS Table 1): a panel per metric, a row per data set.

The same attack on the original and on the retrained model is shown next to it: if it cannot detect members before
unlearning, 50% after it says nothing.
"""

from collections.abc import Hashable, Iterator
from math import sqrt
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.entry import ORIGINAL, Entry, Metric, Role, Scenario
from fu.artefacts.panels import OURS, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import KEYS, evaluated
from fu.artefacts.table import collect
from fu.artefacts.words import in_a_row

INPUTS = ("evaluations",)
TABLE = True
ALSO = (
    "mia_undefined",
    "mia_members",
    "mia_auc",
    "lira_auc",
    "rmia_auc",
    "mia_members_trained",
    "mia_auc_trained",
    "lira_auc_trained",
    "rmia_auc_trained",
)
ATTACKS = {"mia": "Shokri's attack", "lira": "LiRA", "rmia": "RMIA"}
BEYOND = 2.64  # standard errors on either side: six intervals that hold together with 95% (Bonferroni)
BEFORE = "before: the trained model, before the request."
SPREAD = (
    "±: standard deviation over the 100 attacks on a model, which redraw evaluation sets and attack models; it is not "
    "that over trainings."
)
POWER = (
    "Members are forgotten samples; used in training are those in any training batch. In parentheses: AUC "
    f"± {BEYOND:g} standard errors of random guessing, on so many members (all six intervals of a model hold "
    "together with 95%). Bold: the interval lies above 50, so that the attack detects members; where none is bold "
    "before the request, 50% after it says nothing."
)
Cell = dict[Hashable, Any]
Seeds = dict[tuple[str, ...], pd.DataFrame]  # by scenario, method and stage: a row per seed, a column per metric


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return means over seeds with their spread over attacks, beside the paper's, and whether the attacks had power."""
    found = collect(frame, entry).drop(columns=["mark", "published_mark", "forgot", "took_hold"])
    cells = {tuple(row[key] for key in KEYS): row for row in found.to_dict("records")}
    numbers = evaluated(frame).rows.pivot_table("value", [*KEYS[:3], "seed"], "metric").reindex(columns=[*ALSO])
    seeds: Seeds = {tuple(map(str, key)): rows for key, rows in numbers.groupby(level=KEYS[:3])}
    panels = [(metric.label, _panel(entry, metric, cells, seeds)) for metric in entry.metrics]
    names = [metric.name for metric in entry.metrics]
    if rows := [*power(entry, seeds)]:
        panels.append(("Power of the attacks before the request: AUC", grid(rows)))
        names.append("power")
    return of_table(found, panels, _notes(entry, found), names=tuple(names))


def models(entry: Entry, scenario: Scenario) -> list[tuple[str, Role, str]]:
    """Return (method, stage, label) of every model that is shown: those before the request first."""
    before = {method.name for method in entry.methods if method.trains}
    rows = entry.rows(scenario.name)
    return [(name, stage, f"{label} before" if name in before else label) for name, stage, label in rows]


def power(entry: Entry, seeds: Seeds) -> Iterator[dict[str, str]]:
    """Yield for each scenario and original model each attack's AUC in percent on all members and on those trained on.

    Bold where the printed interval lies above 50: the attack detects members. The error is that of an attack that
    guesses (Mann and Whitney 1947): (2 m + 1) / (12 m^2) is the variance of its AUC on m pairs.
    """
    for scenario in entry.scenarios:
        for name, stage, label in models(entry, scenario):
            numbers = seeds.get((scenario.name, name, stage))
            if stage != ORIGINAL or numbers is None:
                continue
            cells: dict[str, str] = {}
            for of, which in {"": "all members", "_trained": "used in training"}.items():
                counts = numbers[f"mia_members{of}"].dropna()
                own = {attack: _detects(numbers, f"{attack}_auc{of}", f"mia_members{of}") for attack in ATTACKS}
                cells |= {f"{ATTACKS[attack]}, {which}": text for attack, text in own.items() if text}
                cells[f"{which[:1].upper()}{which[1:]}"] = f"{counts.sum():,.0f}" if len(counts) else "–"
            if len(cells) > 2:
                yield {"Data": scenario.label, "Model": label, **cells}


def _detects(numbers: pd.DataFrame, area: str, members: str) -> str:
    """Return an AUC with its interval, bold where that lies above 50; nothing where it was not measured."""
    areas = numbers[area].dropna()
    pairs = numbers.loc[areas.index, members]
    if areas.empty or pairs.isna().any():
        return ""
    reach = BEYOND * sqrt(((2 * pairs + 1) / (12 * pairs**2)).sum()) / len(areas)
    low, high = (f"{100 * min(max(areas.mean() + side * reach, 0), 1):.2f}" for side in (-1, 1))
    text = f"{100 * areas.mean():.2f} ({low} to {high})"
    return f"**{text}**" if float(low) > 50 else text


def _panel(entry: Entry, metric: Metric, cells: dict[tuple[Any, ...], Cell], seeds: Seeds) -> pd.DataFrame:
    """Return a row for each scenario, and for each model ours and, where there is one, the paper's number."""
    rows, printed = [], any(pd.notna(cell["published"]) for key, cell in cells.items() if key[-1] == metric.name)
    for scenario in entry.scenarios:
        row: dict[Any, str] = {"Data": scenario.label}
        for name, stage, label in models(entry, scenario):
            key = scenario.name, name, stage
            cell, spread = cells[*key, metric.name], cells[*key, metric.spread] if metric.spread else None
            ours = _text(metric, cell, spread, "mean")
            if metric.name == "mia_precision" and key in seeds and (missing := seeds[key]["mia_undefined"].mean()) > 0:
                ours += f", {missing:.3g} undefined"
            ours += f", {cell['diverged']} diverged" if cell["diverged"] and cell["n"] else ""
            if cell["diverged"] and key not in seeds:  # in every seed
                ours = f"diverged in {cell['diverged_round']:.0f}"
            if printed and stage != ORIGINAL:
                row |= {(label, OURS): ours, (label, "paper"): _text(metric, cell, spread, "published")}
            else:
                row[label] = ours
        rows.append(row)
    return grid(rows)


def _text(metric: Metric, cell: Cell, spread: Cell | None, which: str) -> str:
    if pd.isna(cell[which]):
        return "–"
    scale = 100 if metric.unit == "fraction" else 1
    text = f"{scale * cell[which]:.2f}"
    if spread is None or pd.isna(spread[which]) or (which == "mean" and spread["n"] != cell["n"]):
        return text  # no spread, or one over other seeds
    return f"{text} ± {scale * spread[which]:.2f}"


def _notes(entry: Entry, frame: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    others = [method.label for method in entry.methods if not method.trains and not method.alike]
    unlearn = f"{in_a_row(others)} unlearn{'s' if len(others) == 1 else ''} otherwise, so that no shadow fits."
    return notes.joined(
        entry,
        entry.footnotes if any(scenario.original for scenario in entry.scenarios) else "",
        BEFORE if any(method.trains for method in entry.methods) else "",
        "Percent.",
        SPREAD if any(metric.spread for metric in entry.metrics) else "",
        "Numbers are means over seeds, whose standard deviation is in the csv." if len(entry.seeds) > 1 else "",
        POWER,
        f"Shadow models train as the model before the request; {unlearn}" if others else "",
        "" if entry.retraining else "No retrained model is shown as a reference.",
        notes.LEFT_OUT if frame["diverged"].any() else "",
        notes.comparison(entry, diff=False),
    )
