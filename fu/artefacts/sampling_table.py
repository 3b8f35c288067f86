"""Draws of the trainings, computed from the config and beside the paper's numbers, with both rhos (FATS Table 2)."""

from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import OURS
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import printed
from fu.artefacts.words import known
from fu.errors import UserError

INPUTS = ()
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
APART = 0.01  # of a number, from which on sizes are said to differ: those of clients are whole


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the numbers of every scenario; the paper's N and rhos follow from what it prints."""
    theirs = printed(frame, entry) if entry.compares else frame.iloc[:0]
    rows = []
    for scenario in entry.scenarios:
        own, paper = _ours(entry, scenario), _theirs(theirs[theirs["scenario"] == scenario.name])
        for name, symbol in SYMBOLS.items():
            about = {"scenario": scenario.name, "quantity": name, "symbol": symbol}
            rows.append({**about, "ours": own.get(name, float("nan")), "published": paper.get(name, float("nan"))})
    found = pd.DataFrame(rows)
    found = found[found.groupby("quantity")["ours"].transform("count") > 0].reset_index(drop=True)
    panel = pd.DataFrame([_cells(entry, scenario, found) for scenario in entry.scenarios])
    panel.columns = pd.MultiIndex.from_tuples([*panel.columns])
    return of_table(found, [("Settings", panel)], _notes(entry, found), names=("settings",))


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


def _cells(entry: Entry, scenario: Scenario, found: pd.DataFrame) -> dict[tuple[str, str], str]:
    cells: dict[tuple[str, str], Any] = {("", "Data set"): scenario.label, ("", "Model"): scenario.model}
    for row in found[found["scenario"] == scenario.name].to_dict("records"):
        if entry.compares:
            cells[row["symbol"], OURS] = _text(row["quantity"], row["ours"])
            if row["quantity"] != "rho_s_most":
                cells[row["symbol"], "paper"] = _text(row["quantity"], row["published"])
        else:
            cells["", row["symbol"]] = _text(row["quantity"], row["ours"])
    return cells


def _text(quantity: str, value: float) -> str:
    return known(value, 3 if quantity.startswith("rho") else 0)


def _notes(entry: Entry, found: pd.DataFrame) -> str:
    varies = (found["quantity"] == "rho_s_most").any()
    said = [
        "M clients with N training samples each, K drawn for each of R rounds, E steps a round, b samples a step; "
        "ρ_C = K R / M, ρ_S = b K R E / (M N). N is a mean: where clients differ in size, a sample of a smaller client "
        "is met more often" + (", up to ρ_S ≤ in the smallest that the partition admits." if varies else "."),
        *(["Of owners of data N is all samples by M, too large where some take no part."] if varies else []),
        *([f"The paper's N is its number of samples by its M.{_contradicted(entry, found)}"] if entry.compares else []),
        *notes.comparison(entry, diff=False),
    ]
    return " ".join(said)


def _contradicted(entry: Entry, found: pd.DataFrame) -> str:
    """Say where clients hold another number of samples than the paper's numbers make them hold.

    And what this makes of rho_S, where all else that it is made of is the paper's.
    """
    said = []
    for scenario in entry.scenarios:
        own = found[found["scenario"] == scenario.name].set_index("quantity")
        ours, paper = own["ours"], own["published"]
        (n, its_n), (rho, its_rho) = (
            [_text(name, side[name]) for side in (ours, paper)] for name in ("samples", "rho_s")
        )
        apart = abs(ours["samples"] - paper["samples"]) > APART * paper["samples"]
        if ours["clients"] == paper["clients"] and apart and n != its_n:
            same = all(ours[name] == paper[name] for name in ("clients_per_round", "rounds", "steps", "batch_size"))
            so = f", so that ρ_S is {rho}, not {its_rho}" if same and rho != its_rho else ""
            said.append(f"{scenario.label}: N is {n}, not {its_n}{so}")
    return f" {'; '.join(said)}." if said else ""
