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
    return [text.get_text() for text in axis.texts if isinstance(text, Annotation)]


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
    ("metrics", "quantity", "legend"),
    [
        (("r_acc_best", "r_acc", "r_acc_worst"), "R-Acc", ["Best", "Mean", "Worst"]),
        (("asr", "r_acc"), "ASR, R-Acc", ["ASR", "R-Acc"]),
        (("r_acc",), "R-Acc", ["R-Acc"]),
    ],
)
def test_the_axis_says_what_the_bars_are(metrics: tuple[str, ...], quantity: str, legend: list[str]) -> None:
    figure = made(make_bars(metrics=metrics)).figure
    assert {axis.get_ylabel() for axis in figure.axes} == {quantity}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == legend


def test_marks_rates_and_error_bars_are_explained_below_the_picture() -> None:
    entry = make_bars(metrics=("r_acc",))
    assert made(entry).notes == (
        "ω⁰: the original model; ¹ after unlearning; ² after post-training. * not in the paper. "
        "Unlearning rates: Scratch 0.3; Ours 0.2 (post-training rate 0.05). "
        "Error bars: one standard deviation over seeds."
    )
    body = made(entry).body
    assert body.endswith(" Error bars: one standard deviation over seeds.\n")
    assert body.count("* not in the paper.") == 1
    assert "Error bars" not in made(make_bars(seeds=(0,))).notes
    other = (entry.scenarios[0].model_copy(update={"replaces": "MNIST"}),)
    for published in (None, "checksum"):
        result = made(entry.model_copy(update={"scenarios": other, "published": published}))
        assert result.notes.endswith("[on ...]: other data than the paper's.")
        assert result.body.count("[on ...]: other data than the paper's") == 1


def test_bars_of_a_method_stand_side_by_side_around_its_name() -> None:
    axis = made(make_bars()).figure.axes[0]
    asr, r_acc = (found for found in axis.containers if isinstance(found, BarContainer))
    for k, (one, two) in enumerate(zip(asr, r_acc, strict=True)):
        assert one.get_x() + one.get_width() == pytest.approx(two.get_x()) == pytest.approx(k)
        assert one.get_facecolor() != two.get_facecolor()


def test_a_value_stands_above_its_bar_and_its_deviation() -> None:
    result = made(make_bars())
    rows = result.frame[(result.frame["metric"] == "asr") & (result.frame["stage"] != "recovered")]
    above = [text for text in result.figure.axes[0].texts if isinstance(text, Annotation)]
    assert values(result.figure.axes[0])[:3] == [short(mean) for mean in rows["mean"]]
    assert [text.xy[1] for text in above[:3]] == pytest.approx((rows["mean"] + rows["std"]).tolist())


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.004, ".00"), (0.194, ".19"), (0.996, "1.00"), (1.0, "1"), (12.34, "12.3")]
)
def test_a_value_is_short(value: float, text: str) -> None:
    assert short(value) == text


def test_a_bar_of_height_zero_is_marked_as_a_value() -> None:
    entry = make_bars(seeds=(0,))
    frame = make_frame(entry)
    frame.loc[(frame["method"] == "scratch") & (frame["metric"] == "r_acc"), "value"] = 0
    axis = made(entry, frame).figure.axes[0]
    assert bars(axis)["R-Acc"][1] == 0
    assert values(axis)[3 + 1] == "0"


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_bars_say_how_many_seeds_diverged(seeds: tuple[int, ...]) -> None:
    entry = make_bars(seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    ours = result.frame[result.frame["method"] == "ours"]
    assert set(ours["diverged"]) == {1}
    assert set(ours["diverged_round"]) == {3}
    assert set(ours["n"]) == {len(seeds) - 1}
    assert ("diverged in 3" if len(seeds) == 1 else "1 diverged") in result.body
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
