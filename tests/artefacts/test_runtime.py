"""Computation time: both phases together, scaled to 200 rounds, beside the published one."""

from typing import Any

import numpy as np
import pytest

from fu.artefacts.entry import Entry
from fu.artefacts.runtime import scaled
from tests.artefacts.factories import CHOSEN, ROUNDS, SEEDS, cells, diverge, made, make_entry, make_frame, number

MODELS = {"ours": [f"{CHOSEN}.unlearned", f"{CHOSEN}.recovered"], "scratch": ["scratch.unlearned"]}
SCALES = {"ours": 200 / 4, "scratch": 200 / 2}  # the last round of each


def runtime(**changes: Any) -> Entry:
    return make_entry("runtime", metrics=("steps", "client_rounds"), **changes)


def total(method: str, metric: str, seed: int) -> float:
    if metric == "ratio":
        return total(method, "seconds", seed) / total("scratch", "seconds", seed)
    if metric == "seconds":
        return SCALES[method] * sum(10 * number(model, "seconds", seed) for model in MODELS[method])
    ends = {model: ROUNDS[model.rpartition(".")[2]][-1] for model in MODELS[method]}
    return SCALES[method] * sum(number(model, metric, seed, end) for model, end in ends.items())


def test_runtime_is_the_sum_of_both_phases_scaled_to_two_hundred_rounds() -> None:
    result = made(runtime())
    found = result.frame.to_dict("records")
    shown = {(row["method"], row["metric"]) for row in found}
    assert shown == {(method, name) for method in MODELS for name in ("seconds", "ratio", "steps", "client_rounds")}
    assert len(shown) == len(found)
    for row in found:
        values = [total(row["method"], row["metric"], seed) for seed in SEEDS]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert row["n"] == 2
    assert "Seconds: toy, 1 thread(s)." in result.body


@pytest.mark.parametrize(
    ("spent", "rounds", "expected"),
    [
        ([3.0, 5.0], [2, 4], 8 * 50),
        ([3.0, 5.0], [1, 6], 3 + 5 * 199 / 5),  # FedRecovery: one round at any scale
        ([4.0], [1], 4 * 200),
        ([3.0, 0.0], [1, 1], 3 * 200),
    ],
)
def test_rounds_are_scaled_up_but_not_an_unlearning_of_one_round(
    spent: list[float], rounds: list[int], expected: float
) -> None:
    assert scaled(spent, rounds) == pytest.approx(expected)


def test_the_ratio_to_retraining_is_compared_with_the_published_one() -> None:
    entry = runtime(published="checksum", note="A contradiction.")
    numbers = {
        ("scratch", "total", "seconds"): 63.58,
        ("scratch", "total", "seconds_std"): 0.44,
        ("ours", "total", "seconds"): 31.79,
    }
    result = made(entry, make_frame(entry, numbers))
    rows = {(row["method"], row["metric"]): row for row in result.frame.to_dict("records")}
    seconds = np.mean([total("scratch", "seconds", seed) for seed in SEEDS])
    ratios = [total("ours", "ratio", seed) for seed in SEEDS]
    assert rows["scratch", "seconds"]["difference"] == pytest.approx(seconds - 63.58)
    assert rows["scratch", "seconds"]["published_std"] == 0.44
    assert rows["scratch", "ratio"]["published"] == 1
    assert rows["ours", "ratio"]["published"] == 0.5
    assert rows["ours", "ratio"]["difference"] == pytest.approx(np.mean(ratios) - 0.5)
    head, *lines = cells(result.body)
    assert head == ["Method", "Ratio", "Ratio paper", "Ratio diff", "Seconds", "Gradient steps", "Client-rounds"]
    shown = {line[0]: line[1:4] for line in lines}
    mean, spread = np.mean(ratios), np.std(ratios, ddof=1)
    assert shown == {
        "Scratch": ["1.00 ±0.00", "1.00", "+0.00"],
        "Ours *": [f"{mean:.2f} ±{spread:.2f}", "0.50", f"{mean - 0.5:+.2f}"],
    }
    for note in ("diff: ours minus paper. A contradiction.", "±: sample", "* not in the paper.", "Ratio: seconds over"):
        assert note in result.body


def test_the_ratio_is_that_of_each_seed() -> None:
    entry = runtime()
    frame = make_frame(entry)
    for seed, scratch, ours in ((0, 10.0, 5.0), (1, 40.0, 40.0)):  # ratios 1/4 and 1/2, as ours takes twice the rounds
        for method, value in (("scratch", scratch), ("ours", ours / 2)):
            here = (frame["method"] == method) & (frame["metric"] == "seconds") & (frame["seed"] == seed)
            frame.loc[here, "value"] = value
    rows = made(entry, frame).frame.set_index(["method", "metric"])["mean"].to_dict()
    assert rows["ours", "seconds"] == pytest.approx((5 * 50 + 40 * 50) / 2)
    assert rows["ours", "ratio"] == pytest.approx(0.375)


def test_the_papers_times_are_not_shown_beside_those_of_other_data() -> None:
    entry = runtime(published="checksum")
    scenarios = tuple(scenario.model_copy(update={"replaces": "MNIST"}) for scenario in entry.scenarios)
    result = made(
        entry.model_copy(update={"scenarios": scenarios}), make_frame(entry, {("ours", "total", "seconds"): 1})
    )
    assert result.frame[["published", "difference"]].isna().all(axis=None)
    assert cells(result.body)[0] == ["Method", "Ratio", "Seconds", "Gradient steps", "Client-rounds"]


def test_without_retraining_there_is_no_ratio() -> None:
    entry = runtime()
    result = made(entry.model_copy(update={"methods": entry.methods[1:]}))
    assert set(result.frame["metric"]) == {"seconds", "steps", "client_rounds"}
    assert cells(result.body)[1][:2] == ["Ours *", "–"]
    assert "Ratio:" not in result.body


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_diverged_seed_is_left_out(seeds: tuple[int, ...]) -> None:
    entry = runtime(seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    left = result.frame[result.frame["method"] == "ours"].set_index("metric")
    assert set(left["n"]) == ({1} if len(seeds) > 1 else set())
    if len(seeds) > 1:
        assert left.loc["seconds", "mean"] == pytest.approx(total("ours", "seconds", 1))
        assert {line[0]: line[2] for line in cells(result.body)}["Ours *"].endswith(", 1 diverged")
    else:
        assert {line[0]: line[1] for line in cells(result.body)}["Ours *"] == "diverged"


def test_a_run_that_diverged_in_its_first_round_is_left_out() -> None:
    entry = runtime()
    frame = make_frame(entry)
    scratch = frame["method"] == "scratch"
    frame = frame[~scratch | (frame["round"] == 0) | (frame["metric"] == "seconds")]
    frame.loc[frame["method"] == "scratch", "round"] = 0
    result = made(entry, frame)
    assert set(result.frame["method"]) == {"ours"}
    assert {line[0]: line[1] for line in cells(result.body)}["Scratch"] == "diverged"
