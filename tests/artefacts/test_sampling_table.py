"""The settings of sampled trainings, ours beside the paper's, and what contradicts."""

from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Entry, Sampling
from tests.artefacts.factories import COLUMNS, cells, made, make_entry
from tests.mistakes import has, sentence

CIFAR = Sampling(clients=600, samples=83, clients_per_round=5, rounds=50, steps=10, batch_size=10)
PRINTED = {"all_samples": 60000, "clients": 600, "clients_per_round": 5, "rounds": 50, "steps": 10, "batch_size": 10}


def entry(sampling: Sampling | None = CIFAR, **changes: Any) -> Entry:
    plain = make_entry("sampling_table", published="a checksum", **changes)
    small = plain.scenarios[0].model_copy(update={"label": "CIFAR-10", "model": "vgg16", "sampling": sampling})
    return plain.model_copy(update={"scenarios": (small,)})


def frame(**changes: float | None) -> pd.DataFrame:
    """Return the frame with what the paper prints."""
    numbers = {name: value for name, value in {**PRINTED, **changes}.items() if value is not None}
    about = {"scenario": "small", "method": "original", "stage": "original", "published": True}
    rows = [{**about, "metric": name, "value": float(value)} for name, value in numbers.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_both_rhos_follow_from_ours_and_from_what_is_printed() -> None:
    result = made(entry(), frame())
    found = result.frame.set_index("quantity")
    assert found["ours"]["rho_c"] == pytest.approx(5 * 50 / 600)
    assert found["ours"]["rho_s"] == pytest.approx(10 * 5 * 500 / (600 * 83))
    assert found["published"]["rho_s"] == pytest.approx(10 * 5 * 500 / 60000)
    head, row = cells(result.body)
    assert head[:6] == ["Data set", "Model", "M", "M paper", "N", "N paper"]
    assert row[:10] == ["CIFAR-10", "vgg16", "600", "600", "83", "100", "5", "5", "50", "50"]
    assert row[10:] == ["10", "10", "10", "10", "0.417", "0.417", "0.502", "0.417"]
    has(result.notes, "The paper's N is its number of samples divided by its M.")


def test_where_clients_differ_in_size_the_rho_of_the_smallest_stands_beside_that_of_the_mean() -> None:
    result = made(entry(CIFAR.model_copy(update={"fewest": 40})), frame())
    found = result.frame.set_index("quantity")["ours"]
    assert found["rho_s"] == pytest.approx(10 * 5 * 500 / (600 * 83))
    assert found["rho_s_most"] == pytest.approx(10 * 5 * 500 / (600 * 40))
    head, row = cells(result.body)
    assert (head[-1], row[-1]) == ("ρ_S ≤", "1.042")
    has(
        result.notes,
        "up to ρ_S ≤ in the smallest client that the partition admits.",
        "N is the number of all samples divided by M, which is too large where some of them do not take part.",
    )
    assert "rho_s_most" not in set(made(entry(), frame()).frame["quantity"])
    assert "ρ_S ≤" not in made(entry(), frame()).notes


def test_what_is_not_printed_is_a_dash() -> None:
    _, row = cells(made(entry(), frame(all_samples=None)).body)
    assert (row[3], row[5], row[-1]) == ("600", "–", "–")


def test_of_other_data_the_paper_s_numbers_are_not_shown() -> None:
    replaced = entry()
    small = replaced.scenarios[0].model_copy(update={"replaces": "CIFAR10"})
    result = made(replaced.model_copy(update={"scenarios": (small,)}), frame())
    assert cells(result.body)[0] == ["Data set", "Model", "M", "N", "K", "R", "E", "b", "ρ_C", "ρ_S"]
    assert result.frame["published"].isna().all()
    assert "paper's N" not in result.notes


def test_a_training_that_draws_nothing_is_refused() -> None:
    said = sentence(lambda: made(entry(None), frame()))
    has(said, "'small' needs training.clients_per_round and training.local_steps")
