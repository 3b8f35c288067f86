"""Bars: the numbers of a table, drawn beside the original model's."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.text import Annotation

from fu.artefacts.bars import short
from fu.artefacts.entry import Entry
from tests.artefacts.factories import CHOSEN, SEEDS, diverge, made, make_entry, make_frame, number

METRICS = ("asr", "r_acc")
ORIGINAL, RECOVERED = ("original", "original"), (CHOSEN, "recovered")
PANELS = [  # when, names of the bars, and of their models
    ("after unlearning", ["ω⁰", "Scratch", "Ours¹ *"], [ORIGINAL, ("scratch", "unlearned"), (CHOSEN, "unlearned")]),
    ("after post-training", ["ω⁰", "Ours² *"], [ORIGINAL, RECOVERED]),
]


def make_bars(**changes: Any) -> Entry:
    return make_entry("table", marks="bars", **changes)


def bars(axis: Axes) -> dict[str, list[float]]:
    found = [container for container in axis.containers if isinstance(container, BarContainer)]
    return {str(container.get_label()): [bar.get_height() for bar in container] for container in found}


def values(axis: Axes) -> list[str]:
    return [text.get_text() for text in axis.texts if isinstance(text, Annotation) and text.get_text()]


def named(axis: Axes) -> list[str]:
    return [label.get_text() for label in axis.get_xticklabels()]


def test_bars_have_the_numbers_of_a_table() -> None:
    pd.testing.assert_frame_equal(made(make_bars()).frame, made(make_entry("table")).frame)


def test_a_panel_shows_the_original_model_and_those_of_its_stage() -> None:
    figure = made(make_bars()).figure
    for axis, (when, labels, rows) in zip(figure.axes, PANELS, strict=True):
        assert axis.get_title(loc="left") == f"Small: {when}"
        assert named(axis) == labels
        assert axis.get_xticks().tolist() == list(range(len(rows)))
        for metric, label in zip(METRICS, ("ASR", "R-Acc"), strict=True):
            each = np.array([[number(*row, metric, seed) for seed in SEEDS] for row in rows])
            assert bars(axis)[label] == pytest.approx(each.mean(1))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ASR", "R-Acc"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.004, ".00"), (0.194, ".19"), (0.996, "1.00"), (1.0, "1"), (12.34, "12.3")]
)
def test_a_value_is_short(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_bars_say_how_many_seeds_diverged(seeds: tuple[int, ...]) -> None:
    entry = make_bars(seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    for axis, (_, labels, rows) in zip(result.figure.axes, PANELS, strict=True):
        told = [text for text in axis.texts if text.get_text() == "diverged"]
        if len(seeds) == 1:
            assert [text.get_position()[0] for text in told] == [len(rows) - 1]
            assert len(values(axis)) == len(METRICS) * (len(rows) - 1)
            assert named(axis) == labels
        else:
            assert not told
            assert named(axis) == [*labels[:-1], f"{labels[-1]}\n(1 of 2 diverged)"]
            assert len(values(axis)) == len(METRICS) * len(rows)
