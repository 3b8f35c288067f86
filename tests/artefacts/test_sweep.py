"""A sweep: all trials over the one setting that varies, none chosen."""

from pathlib import Path

import numpy as np
import pytest

from fu.artefacts.entry import Entry
from fu.errors import UserError
from tests.artefacts.factories import (
    RATES,
    SEEDS,
    cells,
    diverge,
    made,
    make_entry,
    make_frame,
    make_method,
    make_scratch,
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


@pytest.mark.parametrize(
    "values",
    [
        [{}, {}],
        [{"unlearning.lr": 0.1}, {"unlearning.lr": 0.1}],
        [{"unlearning.lr": 0.1, "recovery.lr": 0.1}, {"unlearning.lr": 0.2, "recovery.lr": 0.2}],
    ],
    ids=["none", "one value", "two settings"],
)
def test_a_sweep_over_anything_but_one_setting_is_refused(values: list[Values]) -> None:
    with pytest.raises(UserError, match="a sweep needs methods whose grids vary one setting"):
        made(sweep_over(values))


def test_a_sweep_leaves_settings_that_all_trials_share_alone() -> None:
    entry = sweep_over([{"unlearning.lr": rate, "params.lambda": 0.5} for rate in RATES])
    assert set(made(entry).frame["setting"]) == {"unlearning.lr"}


def test_a_sweep_needs_its_setting_of_every_method() -> None:
    entry = make_entry("sweep")
    with pytest.raises(UserError, match=r"needs unlearning\.lr in the grid of every method; 'scratch' has none"):
        made(entry.model_copy(update={"methods": (*entry.methods, make_scratch())}))


def test_a_sweep_may_be_over_words(tmp_path: Path) -> None:
    losses = ["uce", "ascent", "uce-undivided"]
    entry = sweep_over([{"params.loss": loss} for loss in losses])
    result = made(entry)
    written(result, entry, tmp_path)
    assert result.frame["x"].unique().tolist() == losses
    assert cells(result.body)[0] == ["Method", "before", *losses]


def test_a_sweep_shows_a_number_before_only_where_all_trials_begin_from_it() -> None:
    entry = make_entry("sweep")
    frame = make_frame(entry)
    assert {line[1] for line in cells(made(entry, frame).body) if line[0] == "Ours *"} == {"–"}
    frame.loc[(frame["stage"] == "unlearned") & (frame["method"] == "ours"), "value"] = 0.25
    assert {line[1] for line in cells(made(entry, frame).body) if line[0] == "Ours *"} == {"0.250"}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_diverged_trial_is_left_out_and_counted(seeds: tuple[int, ...]) -> None:
    entry = make_entry("sweep", seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    left = result.frame["x"] == 0.2
    assert set(result.frame[left]["n"]) == ({1} if len(seeds) > 1 else set())
    assert set(result.frame[~left]["n"]) == {len(seeds)}
    assert "2 models diverged and are left out." in result.body


def test_a_sweep_all_of_whose_trials_diverged_says_so(tmp_path: Path) -> None:
    entry = make_entry("sweep")
    frame = make_frame(entry)
    for rate in RATES:
        frame = diverge(frame, f"ours+lr{rate}", SEEDS)
    result = made(entry, frame)
    written(result, entry, tmp_path)
    assert f"{2 * len(RATES) * len(SEEDS)} models diverged and are left out." in result.body
    assert result.frame.empty
