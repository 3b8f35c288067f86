"""Membership inference on models before and after unlearning (FATS Table 1): a panel per metric, a row per data set.

The same attack on the original and on the retrained model is shown next to it: if it cannot detect members before
unlearning, 50% after it says nothing.
"""

from collections.abc import Hashable
from math import sqrt
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.entry import ORIGINAL, Entry, Metric, Role, Scenario
from fu.artefacts.panels import OURS
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import KEYS, evaluated
from fu.artefacts.table import collect
from fu.artefacts.words import in_a_row

INPUTS = ("evaluations",)
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
Cell = dict[Hashable, Any]
Seeds = dict[tuple[str, ...], pd.DataFrame]  # by scenario, method and stage: a row per seed, a column per metric


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return means over seeds with their spread over attacks, beside the paper's, and whether the attacks had power."""
    found = collect(frame, entry).drop(columns=["mark", "published_mark", "forgot", "took_hold"])
    cells = {tuple(row[key] for key in KEYS): row for row in found.to_dict("records")}
    numbers = evaluated(frame).rows.pivot_table("value", [*KEYS[:3], "seed"], "metric").reindex(columns=[*ALSO])
    seeds: Seeds = {tuple(map(str, key)): rows for key, rows in numbers.groupby(level=KEYS[:3])}
    panels = [(metric.label, _panel(entry, metric, cells, seeds)) for metric in entry.metrics]
    words = [power(entry, seeds), *[[] for _ in entry.metrics[1:]]]
    return of_table(found, panels, _notes(entry, found), words, tuple(metric.name for metric in entry.metrics))


def models(entry: Entry, scenario: Scenario) -> list[tuple[str, Role, str]]:
    """Return (method, stage, label) of every model that is shown: those before the request first."""
    before = {method.name for method in entry.methods if method.trains}
    rows = entry.rows(scenario.name)
    return [(name, stage, f"{label} before" if name in before else label) for name, stage, label in rows]


def power(entry: Entry, seeds: Seeds) -> list[str]:
    """Say for each scenario and original model which attacks detect members, all or those used in training."""
    said = []
    for scenario in entry.scenarios:
        for name, stage, label in models(entry, scenario):
            numbers = seeds.get((scenario.name, name, stage))
            if stage != ORIGINAL or numbers is None:
                continue
            (whole, tell), (part, tell_part) = (intervals(numbers, of) for of in ("", "_trained"))
            if not whole:
                continue
            counts = numbers[["mia_members", "mia_members_trained"]].dropna(subset="mia_members")
            if len(counts) and counts.notna().all(axis=None):
                members, trained = counts.sum()
                whole += (
                    f"; {trained:,.0f} of {members:,.0f} members ({100 * trained / members:.1f}%) were used in training"
                )
                whole += f", on them {part}" if part else ""
            else:
                tell_part = []  # nothing of them is printed
            said.append(f"{scenario.label}, {label}: AUC of {whole}; {_verdict(tell, tell_part)}.")
    if entry.retraining is None:
        said.append("No retrained model is shown, so that nothing says what forgetting looks like.")
    return said


def intervals(numbers: pd.DataFrame, of: str) -> tuple[str, list[str]]:
    """Return each attack's AUC with its interval in percent, and the attacks whose printed interval lies above 50.

    `of`: which members, "" or "_trained". The error is that of an attack that guesses (Mann and Whitney 1947):
    (2 m + 1) / (12 m^2) is the variance of its AUC on m pairs.
    """
    texts, tell = [], []
    for attack, label in ATTACKS.items():
        areas = numbers[f"{attack}_auc{of}"].dropna()
        pairs = numbers.loc[areas.index, f"mia_members{of}"]
        if areas.empty or pairs.isna().any():
            continue
        reach = BEYOND * sqrt(((2 * pairs + 1) / (12 * pairs**2)).sum()) / len(areas)
        low, high = (f"{100 * min(max(areas.mean() + side * reach, 0), 1):.2f}" for side in (-1, 1))
        texts.append(f"{label} {100 * areas.mean():.2f} ({low} to {high})")
        tell += [label] if float(low) > 50 else []
    return ", ".join(texts), tell


def _verdict(detect: list[str], detect_part: list[str]) -> str:
    """State which attacks detect members, and which those used in training."""
    more = [label for label in detect_part if label not in detect]
    parts = [(detect, "members"), (more, "members used in training")]
    found = [f"{in_a_row(who)} {'detects' if len(who) == 1 else 'detect'} {whom}" for who, whom in parts if who]
    return "; ".join(found) or "no attack detects members, so that 50% after unlearning says nothing"


def _panel(entry: Entry, metric: Metric, cells: dict[tuple[Any, ...], Cell], seeds: Seeds) -> pd.DataFrame:
    """Return a row for each scenario, and for each model ours and, where there is one, the paper's number."""
    rows, printed = [], any(pd.notna(cell["published"]) for key, cell in cells.items() if key[-1] == metric.name)
    for scenario in entry.scenarios:
        row = {("", "Data"): scenario.label}
        for name, stage, label in models(entry, scenario):
            key = scenario.name, name, stage
            cell, spread = cells[*key, metric.name], cells[*key, metric.spread] if metric.spread else None
            ours = _text(metric, cell, spread, "mean")
            if metric.name == "mia_precision" and key in seeds and (missing := seeds[key]["mia_undefined"].mean()) > 0:
                ours += f", {missing:.3g} undefined"
            ours += f", {cell['diverged']} diverged" if cell["diverged"] and cell["n"] else ""
            if cell["diverged"] and key not in seeds:  # in every seed
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
    if spread is None or pd.isna(spread[which]) or (which == "mean" and spread["n"] != cell["n"]):
        return text  # no spread, or one over other seeds
    return f"{text} ± {scale * spread[which]:.2f}"


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
        "Members are samples of what is forgotten; used in training are those in one of its batches. In parentheses: "
        f"AUC ± {BEYOND:g} standard errors of an attack that guesses, on so many members (all six intervals of a "
        "model hold together with 95%); an attack detects members where its interval lies above 50."
    )
    others = [method.label for method in entry.methods if not method.trains and not method.alike]
    if others:
        parts.append(
            f"Shadow models train as the model before the request; {in_a_row(others)} unlearn"
            f"{'s' if len(others) == 1 else ''} otherwise, so that no shadow fits."
        )
    parts += [*notes.left_out(frame), *notes.comparison(entry, diff=False)]
    return " ".join(part for part in parts if part)
