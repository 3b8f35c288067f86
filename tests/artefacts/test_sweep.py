"""A sweep: all trials over the one setting that varies, none chosen."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fu.artefacts.entry import Entry
from fu.artefacts.lines import BREAK
from tests.artefacts.factories import (
    RATES,
    SEEDS,
    cells,
    diverge,
    made,
    make_entry,
    make_frame,
    make_method,
    make_trial,
    number,
    written,
)

Values = dict[str, float | int | str]


def sweep_over(values: list[Values]) -> Entry:
    """Return a sweep whose trials of `ours` set these values."""
    trials = [make_trial(rate, given) for rate, given in zip(RATES, values, strict=False)]
    return make_entry("sweep", methods=(make_method(*trials),))


def test_a_sweep_shows_every_trial_and_chooses_none() -> None:
    found = made(make_entry("sweep")).frame
    assert set(found["setting"]) == {"unlearning.lr"}
    assert len(found) == len(RATES) * 2 * 2  # stages and metrics
    assert set(found["x"]) == set(RATES)
    for row in found.to_dict("records"):
        values = [number(f"ours+lr{row['x']}", row["stage"], row["metric"], seed) for seed in SEEDS]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert row["n"] == 2
        assert row["last"] is (row["stage"] == "recovered")


def test_a_sweep_leaves_settings_that_all_trials_share_alone() -> None:
    entry = sweep_over([{"unlearning.lr": rate, "params.lambda": 0.5} for rate in RATES])
    assert set(made(entry).frame["setting"]) == {"unlearning.lr"}


def test_a_sweep_may_be_over_words(tmp_path: Path) -> None:
    losses = ["uce", "ascent", "uce-undivided"]
    entry = sweep_over([{"params.loss": loss} for loss in losses])
    result = made(entry)
    written(result, entry, tmp_path)
    assert result.frame["x"].unique().tolist() == losses
    assert cells(result.body)[0] == ["Method", "before", *losses]


def shared(rates: tuple[float, ...] = RATES) -> Entry:
    """Return a sweep over the post-training rate, from one unlearned model."""
    trials = [make_trial(rate, {"recovery.lr": rate}).model_copy(update={"unlearned": "ours"}) for rate in rates]
    return make_entry("sweep", methods=(make_method(*trials),))


def line_of(axis: Axes, **about: Any) -> list[tuple[float, float]]:
    """Return the points of the one line with this property."""
    [(key, value)] = about.items()
    [line] = [line for line in axis.lines if getattr(line, f"get_{key}")() == value]
    xs, ys = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    return [*zip(xs.tolist(), ys.tolist(), strict=True)]


def test_a_sweep_shows_what_is_before_post_training_only_where_all_trials_begin_from_it() -> None:
    entry = make_entry("sweep")
    assert {line[1] for line in cells(made(entry).body) if line[0] == "Ours *"} == {"–"}
    entry = shared()
    frame = make_frame(entry)
    frame.loc[frame["stage"] == "unlearned", "value"] = 0.25
    result = made(entry, frame)
    assert {line[1] for line in cells(result.body) if line[0] == "Ours *"} == {"0.250 ±0.000"}
    assert "Columns: post-training rate." in result.body
    for axis in result.figure.axes:
        [(x, y)] = line_of(axis, markerfacecolor="white")
        assert (x < min(RATES), y) == (True, 0.25)
        assert line_of(axis, linestyle=":")[0] == (x, 0.25)
        assert [label.get_text() for label in axis.get_xticklabels()] == ["0.1", "0.2", "0.4", "before"]
        assert axis.get_xlabel() == "post-training rate"


def test_the_axis_is_broken_between_what_is_before_and_the_first_value() -> None:
    for axis in made(shared()).figure.axes:
        [mark] = axis.texts
        [(before, _)] = line_of(axis, markerfacecolor="white")
        x, y = mark.get_position()
        assert x == pytest.approx((before * 0.1) ** 0.5)  # half-way on a logarithmic axis
        assert (mark.get_text(), y, mark.get_transform()) == (BREAK, 0, axis.get_xaxis_transform())
    assert not [text for axis in made(make_entry("sweep")).figure.axes for text in axis.texts]


def test_a_linear_axis_is_broken_half_way() -> None:
    values: list[Values] = [{"recovery.lr": value} for value in (0.0, 0.5, 2.0)]
    trials = [
        make_trial(rate, given).model_copy(update={"unlearned": "ours"})
        for rate, given in zip(RATES, values, strict=True)
    ]
    axis = made(make_entry("sweep", methods=(make_method(*trials),))).figure.axes[0]
    assert [text.get_position() for text in axis.texts] == [(-0.25, 0)]  # what is before stands at -(2 - 0) / 4


def test_what_is_said_below_the_picture_ends_the_page() -> None:
    entry = shared()
    frame = make_frame(entry)
    frame.loc[frame["stage"] == "original", "value"] = 1
    result = made(entry, frame)
    assert result.body.endswith(f"\n\n{result.notes}\n")
    assert result.notes == (
        "Unlearning rate: 0.1. before: after unlearning. Means over 2 seeds; ±: sample standard deviation. "
        "Error bars: one standard deviation over seeds. * not in the paper."
    )


def test_the_page_shows_means_and_deviations_over_seeds() -> None:
    entry = make_entry("sweep")
    frame = make_frame(entry)
    here = (frame["metric"] == "asr") & (frame["stage"] == "recovered") & (frame["trial"] == "ours+lr0.4")
    frame.loc[here, "value"] = [0.25, 0.35]
    (asr,) = [line for line in cells(made(entry, frame).body)[:2] if line[0] == "Ours *"]
    assert asr[-1] == "0.300 ±0.071"
    alone = make_entry("sweep", seeds=(0,))
    assert "±" not in made(alone).body


def test_several_scenarios_stand_side_by_side_with_values_in_equal_steps() -> None:
    entry = shared()
    (small,) = entry.scenarios
    names = ("small", "second", "third")
    (ours,) = entry.methods
    theirs = ours.model_copy(update={"name": "theirs", "label": "Theirs"})
    trials = dict.fromkeys(names, ours.trials["small"])
    methods = tuple(method.model_copy(update={"trials": trials}) for method in (ours, theirs))
    scenarios = tuple(small.model_copy(update={"name": name, "label": name.title()}) for name in names)
    frame = make_frame(entry)
    both = pd.concat([frame, frame.assign(method="theirs")])
    several = pd.concat([both.assign(scenario=name) for name in names], ignore_index=True)
    several.loc[several["scenario"] == "third", "value"] = 0.125
    result = made(entry.model_copy(update={"scenarios": scenarios, "methods": methods}), several)
    result.figure.draw_without_rendering()
    axes = result.figure.axes
    assert [axis.get_title(loc="left") for axis in axes] == ["Small", "Second", "Third", "", "", ""]
    assert [axis.get_ylabel() for axis in axes] == ["ASR"] * 3 + ["R-Acc"] * 3
    assert {float(np.asarray(axis.lines[0].get_ydata())[-1]) for axis in axes[2::3]} == {0.125}
    for axis in axes:
        labels = [text.get_text() for text in axis.get_xticklabels()]
        places = dict(zip(labels, axis.get_xticks().tolist(), strict=True))
        assert places == {"before": -1, "0.1": 0, "0.2": 1, "0.4": 2}
        solid = [np.asarray(line.get_xdata(), float) for line in axis.lines if line.get_linestyle() != "None"]
        curves = [x.tolist() for x in solid if len(x) == 3]
        assert curves == [[0, 1, 2]] * 2
    pair = entry.model_copy(update={"scenarios": scenarios[:2], "methods": methods})
    assert [axis.get_title(loc="left") for axis in made(pair, several).figure.axes[:2]] == [
        "Small: ASR",
        "Small: R-Acc",
    ]


def test_one_seed_has_neither_error_bars_nor_words_on_them() -> None:
    notes = made(make_entry("sweep", seeds=(0,))).notes
    assert "over" not in notes
    assert "nlearning rate" not in notes  # which varies


def test_a_line_goes_through_the_means_with_the_grid_s_values_on_the_axis() -> None:
    result = made(make_entry("sweep"))
    figure = result.figure
    for axis, metric in zip(figure.axes, ("asr", "r_acc"), strict=True):
        rows = result.frame[result.frame["last"] & (result.frame["metric"] == metric)].sort_values("x")
        assert np.array(line_of(axis, marker="o")) == pytest.approx(rows[["x", "mean"]].to_numpy())
        assert axis.get_xscale() == "log"
        assert [label.get_text() for label in axis.get_xticklabels()] == ["0.1", "0.2", "0.4"]
        assert axis.get_xticks().tolist() == [*RATES]
        assert axis.get_xlabel() == "unlearning rate"
        segments = axis.collections[0].get_segments()  # type: ignore[attr-defined]
        ends = [[mean - std, mean + std] for mean, std in zip(rows["mean"], rows["std"], strict=True)]
        assert np.array([[y for _, y in part] for part in segments]) == pytest.approx(np.array(ends))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Small: ASR", "Small: R-Acc"]


def test_a_value_of_zero_leaves_the_axis_linear() -> None:
    entry = sweep_over([{"params.lambda": value} for value in (0.0, 0.5, 2.0)])
    axis = made(entry).figure.axes[0]
    assert (axis.get_xscale(), axis.get_xlabel()) == ("linear", "λ")


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_diverged_trial_is_left_out_and_counted(seeds: tuple[int, ...]) -> None:
    entry = make_entry("sweep", seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    left = result.frame["x"] == 0.2
    assert set(result.frame[left]["n"]) == ({1} if len(seeds) > 1 else set())
    assert set(result.frame[~left]["n"]) == {len(seeds)}
    assert "2 models diverged and are left out." in result.body
    for axis in result.figure.axes:
        marks = [line for line in axis.lines if line.get_marker() == "X"]
        assert [np.asarray(line.get_xdata()).tolist() for line in marks] == ([[0.2]] if len(seeds) == 1 else [])


def test_a_sweep_all_of_whose_trials_diverged_says_so(tmp_path: Path) -> None:
    entry = make_entry("sweep")
    frame = make_frame(entry)
    for rate in RATES:
        frame = diverge(frame, f"ours+lr{rate}", SEEDS)
    result = made(entry, frame)
    written(result, entry, tmp_path)
    assert f"{2 * len(RATES) * len(SEEDS)} models diverged and are left out." in result.body
    assert result.frame.empty
