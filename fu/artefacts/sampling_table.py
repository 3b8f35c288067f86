"""Draws of the trainings, computed from the config and beside the paper's numbers, with both rhos (FATS Table 2)."""

from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import OURS, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import printed
from fu.artefacts.words import plus_minus
from fu.errors import UserError

INPUTS = ()
TABLE = True
NEEDS = ("scenarios",)
SYMBOLS = {
    "clients": "M",
    "samples": "N",
    "clients_per_round": "K",
    "rounds": "R",
    "steps": "E",
    "batch_size": "b",
    "rho_c": "ρ_C",
    "rho_s": "ρ_S",
    "rho_s_most": "ρ_S ≤",
}
PUBLISHED = {"metrics": ("all_samples", "clients", "clients_per_round", "rounds", "steps", "batch_size")}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the numbers of every scenario; the paper's N and rhos follow from what it prints."""
    theirs = printed(frame, entry)
    rows = []
    for scenario in entry.scenarios:
        own, paper = _ours(entry, scenario), _theirs(theirs[theirs["scenario"] == scenario.name])
        for name, symbol in SYMBOLS.items():
            about = {"scenario": scenario.name, "quantity": name, "symbol": symbol}
            rows.append({**about, "ours": own.get(name, float("nan")), "published": paper.get(name, float("nan"))})
    found = pd.DataFrame(rows)
    found = found[found.groupby("quantity")["ours"].transform("count") > 0].reset_index(drop=True)
    lines = []
    for scenario in entry.scenarios:
        cells: dict[Any, str] = {"Data set": scenario.label, "Model": scenario.model}
        for row in found[found["scenario"] == scenario.name].to_dict("records"):
            digits, symbol = 3 if row["quantity"].startswith("rho") else 0, row["symbol"]
            cells[(symbol, OURS) if entry.compares else symbol] = plus_minus(row["ours"], digits=digits)
            if entry.compares and row["quantity"] != "rho_s_most":
                cells[symbol, "paper"] = plus_minus(row["published"], digits=digits)
        lines.append(cells)
    return of_table(found, [("Settings", grid(lines))], _notes(entry, found), names=("settings",))


def _ours(entry: Entry, scenario: Scenario) -> dict[str, float]:
    if scenario.sampling is None:
        raise UserError(
            f"{entry.artefact}: {scenario.name!r} needs training.clients_per_round and training.local_steps."
        )
    numbers = scenario.sampling.model_dump()
    fewest = numbers.pop("fewest")
    most = {"rho_s_most": _with_rhos({**numbers, "samples": fewest})["rho_s"]} if fewest else {}
    return _with_rhos(numbers) | most


def _theirs(rows: pd.DataFrame) -> dict[str, float]:
    """Return what the paper prints for a scenario, and what follows from it where it prints all."""
    found = dict(zip(rows["metric"], rows["value"], strict=True))
    if set(found) != set(PUBLISHED["metrics"]):
        return found
    return _with_rhos({**found, "samples": found["all_samples"] / found["clients"]})


def _with_rhos(numbers: dict[str, float]) -> dict[str, float]:
    rho_c = numbers["clients_per_round"] * numbers["rounds"] / numbers["clients"]
    rho_s = rho_c * numbers["steps"] * numbers["batch_size"] / numbers["samples"]
    return {**numbers, "rho_c": rho_c, "rho_s": rho_s}


def _notes(entry: Entry, found: pd.DataFrame) -> str:
    varies = (found["quantity"] == "rho_s_most").any()
    return notes.joined(
        entry,
        "M clients with N training samples each, K drawn for each of R rounds, E steps a round, b samples a step; "
        "ρ_C = K R / M, ρ_S = b K R E / (M N). N is a mean: where clients differ in size, a sample of a smaller client "
        "is drawn more often" + (", up to ρ_S ≤ in the smallest client that the partition admits." if varies else "."),
        "Where clients are people or roles, N is the number of all samples divided by M, which is too large where some "
        "of them do not take part."
        if varies
        else "",
        "The paper's N is its number of samples divided by its M." if entry.compares else "",
        notes.comparison(entry, diff=False),
    )
