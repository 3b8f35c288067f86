"""Predicted classes of triggered images: shares by round, which class is left, seed by seed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fu.artefacts.classes import OTHERS
from fu.artefacts.entry import Entry
from fu.errors import UserError
from tests.artefacts.factories import cells, made, make_entry, make_frame, make_method, make_trial

# Shares of classes 0 to 2 by round; after 2 is post-training.
FORGETS = [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0], [0.1, 0.0, 0.9], [0.2, 0.0, 0.8]]
TURNED = [[0.3, 0.5, 0.2], [0.4, 0.4, 0.2], [0.8, 0.2, 0.0], [0.7, 0.2, 0.1], [0.6, 0.2, 0.2]]


def entry_of(**changes: Any) -> Entry:
    methods = (make_method(make_trial(0.2)),)
    return make_entry("classes", **{"metrics": ("asr",), "methods": methods, "seeds": (0,), **changes})


def traces(*seeds: list[list[float]], method: str = "ours") -> pd.DataFrame:
    rows = []
    for seed, shares in enumerate(seeds):
        for stage, rounds in (("unlearned", range(3)), ("recovered", range(2, 5))):
            for round in rounds:
                if round >= len(shares):
                    continue
                named = {f"predicted_{k}": share for k, share in enumerate(shares[round])} | {"asr": 1 - round / 4}
                about = {"scenario": "small", "method": method, "seed": seed, "stage": stage, "round": round}
                rows += [{**about, "model": stage, "metric": key, "value": value} for key, value in named.items()]
    return pd.DataFrame(rows)


def heights(axis: Axes, layer: int, round: int) -> tuple[float, float]:
    """Return where an area begins and ends at a round."""
    points = np.asarray(axis.collections[layer].get_paths()[0].vertices)
    ys = points[points[:, 0] == round][:, 1]
    return float(ys.min()), float(ys.max())


def test_shares_are_means_over_seeds_by_round() -> None:
    result = made(entry_of(seeds=(0, 1)), traces(FORGETS, TURNED))
    found = {(row["round"], row["metric"]): row for row in result.frame.to_dict("records")}
    assert len(found) == len(result.frame) == 5 * 4
    assert found[2, "predicted_0"]["mean"] == pytest.approx(0.4)
    assert found[2, "predicted_2"]["mean"] == pytest.approx(0.5)
    assert found[4, "predicted_1"]["mean"] == pytest.approx(0.1)
    assert found[3, "asr"]["mean"] == pytest.approx(0.25)
    assert {row["n"] for row in found.values()} == {2}
    assert [found[round, "asr"]["stage"] for round in (2, 3)] == ["unlearned", "recovered"]


def test_post_training_starts_after_unlearning_however_rarely_it_is_measured() -> None:
    rows = traces(FORGETS)
    (axis,) = made(entry_of(), rows[(rows["stage"] != "recovered") | (rows["round"] != 3)]).figure.axes
    assert np.asarray(axis.lines[-1].get_xdata()).tolist() == [2, 2]


def test_areas_lie_on_each_other_class_by_class_with_asr_over_them() -> None:
    figure = made(entry_of(), traces(FORGETS)).figure
    (axis,) = figure.axes
    assert [heights(axis, layer, 1) for layer in range(3)] == [
        pytest.approx((0.0, 0.2)), pytest.approx((0.2, 0.4)), pytest.approx((0.4, 1.0)),
    ]  # fmt: skip
    _, line, turn = axis.lines  # the first is the line's margin
    assert np.asarray(line.get_ydata()).tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert (np.asarray(turn.get_xdata()).tolist(), turn.get_linestyle()) == ([2, 2], ":")
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["class 0", "class 1", "class 2", "ASR", "post-training starts"]
    assert axis.get_title(loc="left") == "Small: Ours *"


def test_a_backdoor_that_hardly_took_hold_is_told() -> None:
    frame = traces(FORGETS)
    frame.loc[frame["metric"] == "asr", "value"] = 0.25
    away = frame[frame["metric"] == "asr"].assign(metric="distance", value=lambda rows: rows["round"] * 1.0)
    assert "hardly took hold in Small (ASR of ω⁰: 0.250)" in made(entry_of(), pd.concat([frame, away])).notes


def test_a_summary_names_the_three_largest_classes_at_three_times() -> None:
    assert cells(made(entry_of(), traces([[*shares, 0.0] for shares in FORGETS])).body) == [
        ["Method", "at the start", "after unlearning", "at the end"],
        ["Ours *", "0: 0.500, 1: 0.300, 2: 0.200", "2: 1.000, 0: 0.000, 1: 0.000", "2: 0.800, 0: 0.200, 1: 0.000"],
    ]


def test_the_class_that_is_left_is_told_seed_by_seed() -> None:
    head, row = cells(made(entry_of(seeds=(0, 1)), traces(FORGETS, TURNED)).body)[:2]
    assert dict(zip(head, row, strict=True))["after unlearning, largest by seed"] == "2: 1.000, 0: 0.800"


@pytest.mark.parametrize("last", [1, 3])
def test_a_seed_that_diverged_is_left_out(last: int) -> None:
    result = made(entry_of(seeds=(0, 1)), traces(FORGETS, TURNED[: last + 1]))
    assert f"Ours * (1 of 2 seeds diverged after round {last})" in result.body
    assert cells(result.body)[1][-1] == "2: 1.000"
    assert set(result.frame["n"]) == {1}
    assert result.frame["round"].max() == 4


def test_of_runs_that_all_diverged_the_start_alone_is_told() -> None:
    body = made(entry_of(), traces(FORGETS[:2])).body
    assert cells(body)[1] == ["Ours * (diverged after round 1)", "0: 0.500, 1: 0.300, 2: 0.200"]
    assert "after unlearning:" not in body


def test_of_many_classes_the_largest_have_a_colour() -> None:
    shares = np.full(12, 0.05)
    shares[[3, 11]] = 0.3, 0.2
    figure = made(entry_of(), traces([shares.tolist()] * 5)).figure
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:10] == [f"class {k}" for k in (*range(9), 11)]
    assert legend[10] == "other classes"
    (axis,) = figure.axes
    assert heights(axis, 10, 1) == pytest.approx((0.9, 1.0))
    assert axis.collections[10].get_facecolor()[0][0] == pytest.approx(float(OTHERS))  # type: ignore[index]


def test_classes_are_in_the_order_of_numbers() -> None:
    shares = [*np.eye(11)[10]]
    body = made(entry_of(), traces([shares] * 5)).body
    assert "10: 1.000, 0: 0.000, 1: 0.000" in body


def test_traces_without_classes_are_refused() -> None:
    entry = entry_of()
    frame = make_frame(entry)
    with pytest.raises(UserError, match="thing: kind classes needs traces with predicted_0"):
        made(entry, frame[~frame["metric"].str.startswith("predicted_")])
