"""Across: means by coordinate or setting, a line for each method and value, what is compared with beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fu.artefacts.entry import Entry, Scenario, Trial
from fu.errors import UserError
from tests.artefacts.factories import (
    RATES,
    SEEDS,
    cells,
    diverge,
    made,
    make_across,
    make_entry,
    make_frame,
    make_scratch,
    make_trial,
    number,
    written,
)
from tests.artefacts.trainings import QS, SCENARIOS, frame_of, make_fedavg, make_safari, make_scenario, make_trained


def accuracy(scenario: Scenario, method: str, trial: Trial, seed: int, round: int) -> float:
    """Return .1 p for FedAvg, else .2 p + n / 1000, and .01 more for the higher q or rate; seeds differ by .02."""
    p, n = float(scenario.at["p"]), float(scenario.at["n"])
    more = 0.01 * ((trial.values.get("params.q") == 0.9) + 2 * (trial.values.get("params.server_lr") == 1))
    return (0.1 * p if method == "fedavg" else 0.2 * p + n / 1000 + more) + 0.02 * seed


CHOSEN = {
    scenario.name: {"safari": f"safari+q{q}-lr1.0"} for scenario, q in zip(SCENARIOS, (0.9, 0.9, 0.9, 0.5), strict=True)
}


def over_p(**changes: Any) -> Entry:
    return make_trained("across", **{"x": "p", "lines": ("n",), "chosen": CHOSEN, **changes})


def over_q(**changes: Any) -> Entry:
    values = {"x": "params.q", "lines": ("params.server_lr",), "panels": ("p", "n"), "chooses": False}
    return make_trained("across", **{**values, **changes})


def means(entry: Entry, frame: pd.DataFrame | None = None) -> dict[tuple[Any, ...], float]:
    found = made(entry, frame_of(entry, accuracy) if frame is None else frame).frame.to_dict("records")
    return {(row["panel"], row["line"], row["x"]): row["mean"] for row in found}


def lines(axis: Axes, style: str) -> list[tuple[Any, Any]]:
    found = [line for line in axis.lines if line.get_linestyle() == style]
    return [
        (np.asarray(line.get_xdata(), float).tolist(), np.asarray(line.get_ydata(), float).tolist()) for line in found
    ]


def said(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_coordinate_is_an_axis_and_another_makes_lines() -> None:
    assert means(over_p()) == pytest.approx(
        {
            ("digits", "fedavg", 2): 0.21,  # .2 and .22
            ("digits", "fedavg", 1): 0.11,
            ("digits", "safari.n50", 2): 0.49,  # .4 + .05 + .03 and .02 more
            ("digits", "safari.n100", 2): 0.54,
            ("digits", "safari.n50", 1): 0.29,
            ("digits", "safari.n100", 1): 0.33,  # the lower q was chosen
        }
    )


def test_a_coordinate_of_zero_is_a_value() -> None:
    scenarios = tuple(make_scenario(p, n) for p in (2, 1) for n in (0, 50))
    about: dict[str, Any] = {"scenarios": scenarios, "methods": (make_safari(scenarios),), "chosen": {}}
    across, along = means(over_p(**about)), over_p(**about, x="n", lines=("p",))
    assert {line for _, line, _ in across} == {"safari.n0", "safari.n50"}
    assert across["digits", "safari.n0", 2] == pytest.approx(0.42)  # .4, and .01 for the higher q
    assert means(along)["digits", "safari.p2", 0] == pytest.approx(0.42)
    assert "(SAFARI, p = 2, n = 0; " in made(along, frame_of(along, accuracy)).notes


def test_a_model_is_shown_after_its_last_stage() -> None:
    entry = make_entry("across", metrics=("asr",))
    found = made(entry).frame.set_index("line")["mean"]
    models = {"scratch": ("scratch", "unlearned"), "ours": ("ours+lr0.2", "recovered")}
    for name, model in models.items():
        assert found[[name]].tolist() == [pytest.approx(np.mean([number(*model, "asr", seed) for seed in SEEDS]))]


def test_a_table_has_lines_in_rows_and_the_axis_in_columns() -> None:
    entry = over_p()
    assert cells(made(entry, frame_of(entry, accuracy)).body) == [
        ["Method", "2", "1"],  # as the scenarios stand
        ["FedAvg", "0.210 ±0.014", "0.110 ±0.014"],
        ["SAFARI, n = 50", "0.490 ±0.014", "0.290 ±0.014"],
        ["SAFARI, n = 100", "0.540 ±0.014", "0.330 ±0.014"],
    ]


def test_values_of_a_grid_ascend() -> None:
    assert QS[0] > QS[1]
    entry = over_q()
    result = made(entry, frame_of(entry, accuracy))
    assert [label.get_text() for label in result.figure.axes[0].get_xticklabels()] == ["0.5", "0.9"]
    assert cells(result.body)[0] == ["Method", "any q", "0.5", "0.9"]
    assert result.figure.axes[0].get_xlabel() == "q"
    (xs, ys), _ = lines(result.figure.axes[0], "-")
    assert (xs, ys) == (pytest.approx([0, 1]), pytest.approx([0.46, 0.47]))
    assert said(result.figure) == ["FedAvg", "SAFARI, server's rate = 0.1", "SAFARI, server's rate = 1"]


def test_panels_are_the_values_of_coordinates_and_what_lacks_one_stands_in_all() -> None:
    entry = over_q(panels=("params.server_lr", "n"), lines=("p",), against=())
    found = means(entry)
    assert {panel for panel, _, _ in found} == {
        "server_lr0.1-n50",
        "server_lr1-n50",
        "server_lr0.1-n100",
        "server_lr1-n100",
    }
    assert found["server_lr1-n100", "safari.p2", 0.5] == pytest.approx(0.53)  # .4 + .1 + .02 and .02 more
    own = made(entry, frame_of(entry, accuracy)).frame
    fedavg = own[own["training"] == "fedavg"].groupby("panel")["mean"].apply(list).to_dict()
    assert fedavg == {panel: pytest.approx([0.21, 0.11]) for panel, _, _ in found}


def test_what_others_are_compared_with_is_horizontal_with_a_band() -> None:
    entry = over_q()
    result = made(entry, frame_of(entry, accuracy))
    axes = result.figure.axes
    assert [axis.get_title(loc="left").replace("\n", " ") for axis in axes] == [
        f"classes per client, p = {p}; server data, n = {n}" for p in (2, 1) for n in (50, 100)
    ]
    for axis, level in zip(axes, (0.21, 0.21, 0.11, 0.11), strict=True):
        [(xs, ys)] = lines(axis, "--")
        assert (xs, ys) == ([0, 1], pytest.approx([level] * 2))  # from edge to edge
        [band] = axis.patches
        assert band.get_extents().transformed(axis.transData.inverted()).intervaly.tolist() == pytest.approx(
            [level - 0.02 / 2**0.5, level + 0.02 / 2**0.5]
        )
    assert result.frame[result.frame["training"] == "fedavg"]["x"].isna().all()
    assert cells(result.body)[1] == ["FedAvg", "0.210 ±0.014", "–", "–"]
    assert "Horizontal: whatever q is." in result.notes
    handles: list[Any] = [*result.figure.legends[0].legend_handles]
    [handle] = [handle for handle in handles if handle.get_label() == "FedAvg"]
    assert (handle.get_marker(), handle.get_linestyle()) == ("none", "--")


def test_one_model_is_one_line_and_several_are_several() -> None:
    assert {line for _, line, _ in means(over_q(panels=("p",), lines=("n", "params.server_lr")))} == {
        "fedavg",
        *(f"safari.n{n}.server_lr{lr}" for n in (50, 100) for lr in ("0.1", "1")),
    }
    own = make_fedavg()
    apart = {s.name: (own.trials[s.name][0].model_copy(update={"trained": f"{s.name}/fedavg"}),) for s in SCENARIOS}
    methods = (own.model_copy(update={"trials": apart}), make_safari())
    found = means(over_p(methods=methods))
    assert {line for _, line, _ in found} == {"fedavg.n50", "fedavg.n100", "safari.n50", "safari.n100"}


def test_two_trials_are_never_one_point() -> None:
    entry = over_q(lines=())
    with pytest.raises(
        UserError, match=r"safari\+q0\.9-lr1\.0 of p2-n50 and safari\+q0\.9-lr0\.1 of p2-n50 would coin"
    ):
        made(entry, frame_of(entry, accuracy))


def test_the_points_that_were_chosen_are_told() -> None:
    entry = over_p()
    assert made(entry, frame_of(entry, accuracy)).notes.startswith(
        "Chosen for digits: q 0.9, server's rate 1 (SAFARI, n = 50, p = 2; SAFARI, n = 100, p = 2; SAFARI, n = 50, "
        "p = 1); q 0.5, server's rate 1 (SAFARI, n = 100, p = 1). How it is chosen: the highest. Means over 2 seeds"
    )
    entry = over_q()
    assert "hosen" not in made(entry, frame_of(entry, accuracy)).notes


def with_published(entry: Entry, value: float = 0.5) -> pd.DataFrame:
    theirs = {"scenario": "p1-n50", "method": "safari", "stage": "original", "metric": "accuracy", "value": value}
    row = pd.DataFrame([{**theirs, "published": True, "seed": -1, "round": -1}])
    return pd.concat([frame_of(entry, accuracy), row], ignore_index=True).astype({"published": bool})


def test_the_paper_s_numbers_stand_beside_ours() -> None:
    entry = over_p(published="abc", note="As in the text.")
    result = made(entry, with_published(entry))
    assert cells(result.body)[2][2] == "0.290 ±0.014 (paper 0.500, diff -0.210)"
    theirs = result.frame[result.frame["published"].notna()]
    assert theirs[["line", "x", "published"]].to_numpy().tolist() == [["safari.n50", 1, 0.5]]
    assert theirs["difference"].tolist() == pytest.approx([-0.21])
    [axis] = result.figure.axes
    [hollow] = [line for line in axis.lines if line.get_markerfacecolor() == "none"]
    assert np.asarray(hollow.get_xydata(), float).tolist() == [pytest.approx([1, 0.5])]
    assert hollow.get_color() == next(line for line in axis.lines if line.get_marker() == "^").get_color()
    assert said(result.figure)[-1] == "the paper"
    assert "diff: ours minus paper. As in the text." in result.notes


def test_the_paper_s_numbers_are_not_shown_beside_other_data_or_many_points() -> None:
    scenarios = tuple(s.model_copy(update={"replaces": "MNIST"} if s.at["p"] == 1 else {}) for s in SCENARIOS)
    for entry in (over_p(published=None), over_p(published="abc", scenarios=scenarios), over_q(published="abc")):
        result = made(entry, with_published(entry))
        assert result.frame["published"].isna().all()
        assert "paper 0.5" not in result.body
        assert "the paper" not in said(result.figure)
    entry = over_p(published="abc", scenarios=scenarios)
    assert "digits, MNIST [on digits]" in made(entry, with_published(entry)).body.splitlines()[0]


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one of two seeds", "both seeds"])
def test_what_diverged_is_left_out_and_told(seeds: tuple[int, ...]) -> None:
    entry = over_p(panels=("p",), x="n", lines=(), against=())
    frame = frame_of(entry, accuracy)
    gone = (frame["method"] == "fedavg") & frame["scenario"].str.startswith("p2") & frame["seed"].isin(seeds)
    result = made(entry, frame.assign(metric=frame["metric"].mask(gone, "diverged_round")))
    text = "0.220" if len(seeds) == 1 else "diverged"
    assert cells(result.body)[1] == ["FedAvg", text, text]
    assert f"{len(seeds)} models diverged and are left out." in result.notes  # one model, wherever it is shown
    marks = [[line.get_xdata() for line in axis.lines if line.get_marker() == "X"] for axis in result.figure.axes]
    assert marks == [[0, 1] if len(seeds) == 2 else [], []]
    assert ("diverged" in said(result.figure)) is (len(seeds) == 2)


# ---- settings of grids ---------------------------------------------------------------------------------------------


def shared(*values: float) -> Entry:
    """Return an entry across the post-training rate, from one unlearned model."""
    trials = [make_trial(rate, {"recovery.lr": rate}).model_copy(update={"unlearned": "ours"}) for rate in values]
    return make_across(*trials, x="recovery.lr")


def line_of(axis: Axes, **about: Any) -> list[tuple[float, float]]:
    """Return the points of the one line with this property."""
    [(key, value)] = about.items()
    [line] = [line for line in axis.lines if getattr(line, f"get_{key}")() == value]
    return [*zip(*np.asarray(line.get_data(), float).tolist(), strict=True)]


def test_every_trial_is_shown_at_every_stage_and_none_is_chosen() -> None:
    found = made(make_across()).frame
    assert [*found] == ["scenario", "method", "setting", "x", "stage", "metric", "last", "mean", "std", "n"]
    assert set(found["setting"]) == {"unlearning.lr"}
    assert len(found) == len(RATES) * 2 * 2  # stages and metrics
    assert set(found["x"]) == set(RATES)
    for row in found.to_dict("records"):
        values = [number(f"ours+lr{row['x']}", row["stage"], row["metric"], seed) for seed in SEEDS]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert row["n"] == 2
        assert row["last"] is (row["stage"] == "recovered")


def test_a_method_without_the_setting_is_horizontal_beside_scenarios_of_their_own() -> None:
    ours, scratch = make_across().methods[0], make_scratch()
    result = made(make_across(methods=(scratch, ours)))
    assert [line[:2] for line in cells(result.body)[:3]] == [
        ["Method", "any unlearning rate"],
        ["Scratch", cells(result.body)[1][1]],
        ["Ours *", "–"],
    ]
    for axis in result.figure.axes:
        assert len(lines(axis, "--")) == 1


def test_what_all_trials_start_from_stands_before_where_post_training_varies() -> None:
    assert "before" not in made(make_across()).body
    entry = shared(*RATES)
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


def test_a_line_goes_through_the_means_with_the_grid_s_values_on_the_axis() -> None:
    result = made(make_across())
    for axis, metric in zip(result.figure.axes, ("asr", "r_acc"), strict=True):
        rows = result.frame[result.frame["last"] & (result.frame["metric"] == metric)].sort_values("x")
        assert np.array(line_of(axis, marker="o")) == pytest.approx(rows[["x", "mean"]].to_numpy())
        assert [label.get_text() for label in axis.get_xticklabels()] == ["0.1", "0.2", "0.4"]
        assert axis.get_xticks().tolist() == [*RATES]
        segments = axis.collections[0].get_segments()  # type: ignore[attr-defined]
        ends = [[mean - std, mean + std] for mean, std in zip(rows["mean"], rows["std"], strict=True)]
        assert np.array([[y for _, y in part] for part in segments]) == pytest.approx(np.array(ends))
    assert [axis.get_title(loc="left") for axis in result.figure.axes] == ["Small", ""]
    assert "Unlearning rate" not in result.notes  # which is the axis


def test_where_all_trials_diverged_there_are_no_numbers(tmp_path: Path) -> None:
    entry = make_across()
    frame = make_frame(entry)
    for rate in RATES:
        frame = diverge(frame, f"ours+lr{rate}", SEEDS)
    result = made(entry, frame)
    written(result, entry, tmp_path)
    assert f"{2 * len(RATES) * len(SEEDS)} models diverged and are left out." in result.body
    assert result.frame.empty
