"""Computation time: both phases together, scaled to 200 rounds, beside the published one."""

from typing import Any

import numpy as np
import pytest

from fu.artefacts.entry import Entry
from tests.artefacts.factories import CHOSEN, ROUNDS, SEEDS, cells, diverge, made, make_entry, make_frame, number

MODELS = {"ours": [f"{CHOSEN}.unlearned", f"{CHOSEN}.recovered"], "scratch": ["scratch.unlearned"]}
SCALES = {"ours": 200 / 4, "scratch": 200 / 2}  # the last round of each


def runtime(**changes: Any) -> Entry:
    return make_entry("runtime", metrics=("steps", "client_rounds"), **changes)


def total(method: str, metric: str, seed: int) -> float:
    if metric == "seconds":
        return SCALES[method] * sum(10 * number(model, "seconds", seed) for model in MODELS[method])
    ends = {model: ROUNDS[model.rpartition(".")[2]][-1] for model in MODELS[method]}
    return SCALES[method] * sum(number(model, metric, seed, end) for model, end in ends.items())


def test_runtime_is_the_sum_of_both_phases_scaled_to_two_hundred_rounds() -> None:
    result = made(runtime())
    found = result.frame.to_dict("records")
    shown = {(row["method"], row["metric"]) for row in found}
    assert shown == {(method, name) for method in MODELS for name in ("seconds", "steps", "client_rounds")}
    assert len(shown) == len(found)
    for row in found:
        values = [total(row["method"], row["metric"], seed) for seed in SEEDS]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert row["n"] == 2
    assert "Ours: toy, 1 thread(s)." in result.body


def test_runtime_is_compared_with_the_published_one() -> None:
    entry = runtime(published="checksum")
    numbers = {("scratch", "total", "seconds"): 63.58, ("scratch", "total", "seconds_std"): 0.44}
    result = made(entry, make_frame(entry, numbers))
    mean = np.mean([total("scratch", "seconds", seed) for seed in SEEDS])
    rows = result.frame.to_dict("records")
    (row,) = (row for row in rows if (row["method"], row["metric"]) == ("scratch", "seconds"))
    assert row["difference"] == pytest.approx(mean - 63.58)
    assert row["published_std"] == 0.44
    head, *lines = cells(result.body)
    assert head == ["Method", "seconds", "seconds paper", "seconds diff", "Gradient steps", "Client-rounds"]
    shown = {line[0]: line[2:4] for line in lines}
    assert shown == {"Scratch": ["63.58 ±0.44", f"{mean - 63.58:+.2f}"], "Ours *": ["–", "–"]}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_diverged_seed_is_left_out(seeds: tuple[int, ...]) -> None:
    entry = runtime(seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    left = result.frame[result.frame["method"] == "ours"].set_index("metric")
    assert set(left["n"]) == ({1} if len(seeds) > 1 else set())
    if len(seeds) > 1:
        assert left.loc["seconds", "mean"] == pytest.approx(total("ours", "seconds", 1))
    assert ("diverged" in result.body) is (len(seeds) == 1)


def test_a_run_that_diverged_in_its_first_round_is_left_out() -> None:
    entry = runtime()
    frame = make_frame(entry)
    scratch = frame["method"] == "scratch"
    frame = frame[~scratch | (frame["round"] == 0) | (frame["metric"] == "seconds")]
    frame.loc[frame["method"] == "scratch", "round"] = 0
    result = made(entry, frame)
    assert set(result.frame["method"]) == {"ours"}
    assert {line[0]: line[1] for line in cells(result.body)}["Scratch"] == "diverged"
