"""Accuracy and unlearning time against rho: the numbers of a small system, and what the words make of them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts.entry import Asked, Entry, Sampling, Scenario
from fu.artefacts.stability import FORMULAS
from fu.federation.exact import Requests
from fu.federation.sampling import Shape
from tests.artefacts.factories import cells, held, made, make_entry, training_of

SEEDS = (0, 1)
VALUES = {"b2": (0.6, 0.7), "b4": (0.7, 0.9), "K2": (0.8, 0.8), "K1": (0.5, 0.5)}  # of accuracy, by seed


def grown() -> tuple[Entry, pd.DataFrame]:
    """Return four systems of M = 4, N = 8, R = 3, E = 2: b is 2 or 4 where K = 1, then K is 2 or 1 where b = 2."""
    [base] = make_entry("stability").scenarios
    scenarios: list[Scenario] = []
    rows: list[dict[str, Any]] = []
    for name, values in VALUES.items():
        short, value = name[0], int(name[1])
        drawn = Sampling(clients=4, samples=8, clients_per_round=1, rounds=3, steps=2, batch_size=2)
        drawn = drawn.model_copy(update={"batch_size" if short == "b" else "clients_per_round": value})
        asked = Asked(level="sample" if short == "b" else "client", number=1)
        named = {"name": f"toy-{name}", "label": f"Toy, {short} = {value}", "family": "Toy"}
        about: dict[str, Any] = {**named, "at": {short: value}, "original": None}
        scenarios.append(base.model_copy(update={**about, "sampling": drawn, "asked": asked}))
        rows += held(f"toy-{name}", [8] * 4)
        for seed, accuracy in zip(SEEDS, values, strict=True):
            about = {"scenario": f"toy-{name}", "method": "fats", "trial": "fats", "model": "fats.trained"}
            rows.append({**about, "seed": seed, "stage": "original", "metric": "accuracy", "value": accuracy})
    fats = training_of("fats", *(scenario.name for scenario in scenarios), label="FATS")
    given: dict[str, Any] = {"scenarios": tuple(scenarios), "methods": (fats,), "seeds": SEEDS, "stages": ("original",)}
    entry = make_entry("stability", metrics=("accuracy",), draws=200, chosen={}, **given)
    return entry, pd.DataFrame(rows).assign(round=-1, device=None, published=False)


def test_rho_accuracy_and_time_are_those_of_each_system() -> None:
    found = made(*grown()).frame
    measured = found[found["metric"] == "accuracy"].set_index("scenario")
    assert measured["rho"].to_dict() == {"toy-b2": 0.375, "toy-b4": 0.75, "toy-K2": 1.5, "toy-K1": 0.75}
    assert measured["mean"].to_dict() == pytest.approx({"toy-b2": 0.65, "toy-b4": 0.8, "toy-K2": 0.8, "toy-K1": 0.5})
    assert measured["std"]["toy-b4"] == pytest.approx(0.2 / np.sqrt(2))
    times = found[found["metric"] == "time"].set_index("scenario")
    expected = {
        "toy-b2": Requests(Shape(1, 3, 2, 2), 4, (8,) * 4).mean_time,
        "toy-b4": Requests(Shape(1, 3, 2, 4), 4, (8,) * 4).mean_time,
        "toy-K2": 6 - 2 * (9 / 16 + (9 / 16) ** 2 + (9 / 16) ** 3) * 1.0,
        "toy-K1": 6 - 2 * (3 / 4 + (3 / 4) ** 2 + (3 / 4) ** 3),
    }
    assert times["exact"].to_dict() == pytest.approx(expected)
    assert set(times["frs"]) == {6}
    assert ((times["mean"] - times["exact"]).abs() < 4 * times["error"]).all()
    assert (times["n"] == 200).all()


def test_tables_are_in_the_order_of_rho() -> None:
    result = made(*grown())
    table = cells(result.body)
    assert [row[:4] for row in table[4:6]] == [["0.750", "1", "2", "0.500 ±0.000"], ["1.500", "2", "2", "0.800 ±0.000"]]
    assert "FRS: retraining from scratch, 6 time steps." in result.notes
    assert "± of time: that standard error; of all else: sample standard deviation over seeds." in result.notes


def test_seeds_that_diverged_are_left_out_and_named() -> None:
    entry, frame = grown()
    one = frame[(frame["scenario"] != "toy-b2") | (frame["seed"] == 0)]
    assert "Seeds that diverged are left out: toy-b2." in made(entry, one).notes
    assert cells(made(entry, one).body)[1][3] == "0.600"
    none = made(entry, frame[(frame["scenario"] != "toy-b2") | (frame["metric"] != "accuracy")])
    assert cells(none.body)[1][3] == "diverged"
    assert any(line.get_marker() == "X" for line in none.figure.axes[0].lines)


def test_a_row_of_panels_holds_accuracy_and_time_and_none_has_two_axes() -> None:
    result = made(*grown())
    axes = result.figure.axes
    assert [axis.get_ylabel() for axis in axes] == ["Accuracy", "unlearning time (time steps)"] * 2
    assert [axis.get_xlabel() for axis in axes] == [FORMULAS["sample"]] * 2 + [FORMULAS["client"]] * 2
    assert all(axis.xaxis.label.get_parse_math() for axis in axes)
    assert [a.get_title(loc="left") for a in axes] == ["Toy, a sample to forget", "", "Toy, a client to forget", ""]
    assert np.asarray(axes[2].lines[0].get_xydata()).tolist() == [[0.75, 0.5], [1.5, 0.8]]
    exact, drawn, frs = (np.asarray(axes[3].lines[k].get_xydata(), float) for k in (0, 1, -1))
    times = result.frame[(result.frame["metric"] == "time") & (result.frame["level"] == "client")].sort_values("rho")
    assert exact.tolist() == times[["rho", "exact"]].to_numpy().tolist()
    assert drawn.tolist() == times[["rho", "mean"]].to_numpy().tolist()
    [bars] = axes[3].containers
    _, _, [lines] = bars
    heights = [(high - low) / 2 for (_, low), (_, high) in lines.get_segments()]
    assert heights == pytest.approx(times["error"].tolist())
    assert frs[:, 1].tolist() == [6, 6]
    assert axes[0].get_ylim() == (-0.03, 1.03)
    assert axes[1].get_ylim()[1] == pytest.approx(6.36)
