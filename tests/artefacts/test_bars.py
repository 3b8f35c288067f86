"""Bars: the numbers of a table, drawn beside the original model's."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from tests.artefacts.factories import CHOSEN, SEEDS, diverge, made, make_entry, make_frame, number


def heights(axis: Axes) -> list[list[float]]:
    return [[bar.get_height() for bar in container] for container in axis.containers]  # type: ignore[union-attr]


def test_bars_have_the_numbers_of_a_table() -> None:
    pd.testing.assert_frame_equal(made(make_entry("bars")).frame, made(make_entry("table")).frame)


def test_a_panel_shows_the_original_model_and_those_of_its_stage() -> None:
    figure = made(make_entry("bars")).figure
    assert [axis.get_title() for axis in figure.axes] == ["Small, after unlearning", "Small, after post-training"]
    bars = [[label.get_text() for label in axis.get_xticklabels()] for axis in figure.axes]
    assert bars == [["ω⁰", "Scratch", "Ours¹ *"], ["ω⁰", "Ours² *"]]
    names = [
        [("original", "original"), ("scratch", "unlearned"), (CHOSEN, "unlearned")],
        [("original", "original"), (CHOSEN, "recovered")],
    ]
    for axis, rows in zip(figure.axes, names, strict=True):
        shown = [container for container in heights(axis) if container]
        for drawn, metric in zip(shown, ("asr", "r_acc"), strict=True):
            assert drawn == pytest.approx([np.mean([number(*row, metric, seed) for seed in SEEDS]) for row in rows])


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_bars_say_how_many_seeds_diverged(seeds: tuple[int, ...]) -> None:
    entry = make_entry("bars", seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    ours = result.frame[result.frame["method"] == "ours"]
    assert set(ours["diverged"]) == {1}
    assert set(ours["diverged_round"]) == {3}
    assert set(ours["n"]) == {len(seeds) - 1}
    assert ("diverged in 3" if len(seeds) == 1 else "1 diverged") in result.body
