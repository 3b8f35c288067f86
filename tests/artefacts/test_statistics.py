"""Traces as curves: which rounds, which seeds, which mean."""

from typing import Any

import pandas as pd
import pytest

from fu.artefacts import notes
from fu.artefacts.statistics import begins, broken, by_round, divergence, evaluated, once, original, paths
from tests.artefacts.factories import make_entry
from tests.artefacts.trainings import make_trained

Runs = dict[tuple[str, int], list[float]]  # method and seed -> ASR by round; those of `ours` after 2 are post-training


def traces(runs: Runs, metric: str = "asr") -> pd.DataFrame:
    """Return the frame of these runs; a post-training starts with the last round of unlearning once more."""
    rows: list[dict[str, Any]] = []
    for (method, seed), values in runs.items():
        for round, value in enumerate(values):
            about = {"scenario": "small", "method": method, "seed": seed, "round": round, "metric": metric}
            for stage in ("unlearned", "recovered"):
                recovers = method == "ours" and len(values) > 3
                if (round <= 2 or not recovers) if stage == "unlearned" else (recovers and round >= 2):
                    rows.append({**about, "stage": stage, "model": f"{method}.{stage}", "value": value})
    return pd.DataFrame(rows)


WHOLE = [0.9, 0.5, 0.1, 0.2, 0.4]
OTHER = [0.7, 0.3, 0.3, 0.4, 0.8]


def test_the_last_round_of_unlearning_stands_once_as_unlearned() -> None:
    found = once(traces({("ours", 0): WHOLE}))
    assert found["round"].tolist() == [0, 1, 2, 3, 4]
    assert found["stage"].tolist() == ["unlearned"] * 3 + ["recovered"] * 2


@pytest.mark.parametrize(
    ("runs", "lost"),
    [
        ({("ours", 0): WHOLE, ("ours", 1): WHOLE}, []),
        ({("ours", 0): WHOLE, ("ours", 1): WHOLE[:4]}, [("ours", 1, 3)]),
        ({("ours", 0): WHOLE[:1], ("ours", 1): WHOLE[:2]}, [("ours", 0, 0), ("ours", 1, 1)]),
        ({("scratch", 0): [0.9, 0.1], ("scratch", 1): [0.9, 0.1]}, []),
        ({("scratch", 0): [0.9, 0.1], ("scratch", 1): [0.9]}, [("scratch", 1, 0)]),
    ],
    ids=["whole", "in post-training", "all", "rounds of its own", "one with rounds of its own"],
)
def test_a_run_breaks_off_before_its_end(runs: Runs, lost: list[tuple[str, int, int]]) -> None:
    found = broken(make_entry("curves"), traces(runs))  # four rounds after the request
    assert [*found[["method", "seed", "round"]].itertuples(index=False, name=None)] == lost


def test_a_metric_of_unlearning_alone_makes_no_run_break_off() -> None:
    counted = traces({("ours", 0): WHOLE[:3]}, "conflicts")
    entry = make_entry("curves")
    assert len(broken(entry, counted)) == 1
    seconds = {"scenario": "small", "method": "ours", "seed": 0, "round": 4, "metric": "seconds"}
    assert broken(entry, pd.concat([counted, pd.DataFrame([seconds])])).empty


@pytest.mark.parametrize(
    ("runs", "mean", "n"),
    [
        ({0: WHOLE, 1: OTHER}, [0.8, 0.4, 0.2, 0.3, 0.6], 2),
        ({0: WHOLE, 1: OTHER[:4]}, WHOLE, 1),
        ({0: WHOLE[:3], 1: OTHER[:2]}, [0.8, 0.4], 2),
        ({0: WHOLE[:3]}, WHOLE[:3], 1),
    ],
    ids=["both", "one diverged", "both diverged", "the only one diverged"],
)
def test_a_mean_is_over_the_same_seeds_in_every_round(runs: dict[int, list[float]], mean: list[float], n: int) -> None:
    rows = once(traces({("ours", seed): values for seed, values in runs.items()}))
    found = by_round(rows, broken(make_entry("curves"), rows))
    assert found["mean"].tolist() == pytest.approx(mean)
    assert set(found["n"]) == {n}
    if n == 2:
        assert found["std"].iloc[0] == pytest.approx(0.2 / 2**0.5)  # .9 and .7, over n - 1


def test_seeds_of_other_methods_stay() -> None:
    rows = once(traces({("ours", 0): WHOLE[:2], ("ours", 1): WHOLE, ("scratch", 0): WHOLE}))
    lost = broken(make_entry("curves"), rows)
    assert set(by_round(rows, lost)["method"]) == {"ours", "scratch"}
    gone = paths(rows, lost)
    assert set(gone["seed"]) == {0}
    assert gone["value"].tolist() == WHOLE[:2]


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ({}, ""),
        ({1: 3}, "1 of 2 seeds diverged after round 3"),
        ({0: 5, 1: 3}, "diverged after round 3, round 5"),
        ({0: -1}, "1 of 2 seeds diverged after no round"),
    ],
)
def test_it_is_told_who_diverged_when(rounds: dict[int, int], text: str) -> None:
    rows = [{"scenario": "small", "method": "ours", "seed": seed, "round": round} for seed, round in rounds.items()]
    lost = pd.DataFrame(rows, columns=["scenario", "method", "seed", "round"])
    entry = make_entry("curves")
    assert divergence(entry, lost, "small", "ours") == text
    assert divergence(entry, lost, "small", "scratch") == divergence(entry, lost, "other", "ours") == ""
    assert ("left out" in notes.seeds(entry, len(lost))) is bool(rounds)
    assert notes.seeds(make_entry("curves", seeds=(0,)), len(lost)) == ""


def counted(method: str, last: dict[int, int]) -> pd.DataFrame:
    """Return a frame of runs with these last rounds, by seed."""
    about = {"scenario": "small", "method": method, "metric": "seconds", "value": 1.0}
    return pd.DataFrame([{**about, "seed": seed, "round": round} for seed, round in last.items()])


def test_a_training_ends_before_the_request() -> None:
    trained = counted("fedavg", {0: 3, 1: 2}).assign(scenario="p2-n50")
    lost = broken(make_trained("curves"), trained)  # three rounds of training, none after
    assert lost[["seed", "round"]].to_numpy().tolist() == [[1, 2]]
    assert broken(make_trained("curves"), trained[:1]).empty
    early = counted("fedavg", {0: 2, 1: 2}).assign(scenario="p2-n50")
    assert broken(make_trained("curves"), early)["seed"].tolist() == [0, 1]


def test_a_run_that_begins_with_training_ends_so_many_rounds_later() -> None:
    entry = make_entry("curves", from_training=True)  # two rounds of training and four after the request
    assert broken(entry, counted("ours", {0: 6, 1: 5}))["seed"].tolist() == [1]
    assert broken(make_entry("curves"), counted("ours", {0: 6, 1: 5})).empty


def test_a_method_begins_after_the_request() -> None:
    about = {"scenario": "small", "method": "ours", "seed": 0, "metric": "distance"}
    rows = [("original", 0, 9.0), ("original", 2, 0.0), ("unlearned", 2, 0.25), ("unlearned", 3, 1.0)]
    frame = pd.DataFrame([{**about, "stage": stage, "round": round, "value": value} for stage, round, value in rows])
    assert begins(frame) == {("small", "ours"): 0.25}
    assert original(frame, {("small", "ours"): 0.0}) == {("small", "distance"): 0.25}
    trained = frame[frame["stage"] == "original"]
    assert begins(trained) == original(trained, {}) == {}


# ---- evaluations -----------------------------------------------------------------------------------------------------


def evaluations(*rows: tuple[str, str, int, str, float]) -> pd.DataFrame:
    """Return the frame of rows of trial, stage, seed, metric and value."""
    columns = ["trial", "stage", "seed", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(scenario="small", method="ours", published=False)


def test_a_seed_that_diverged_is_left_out_of_all_stages_of_its_trial_and_of_no_other() -> None:
    whole = [
        (trial, stage, seed, "asr", float(seed))
        for trial in "ab"
        for stage in ("unlearned", "recovered")
        for seed in (1, 2, 3)
    ]
    rows = [("a", "recovered", 2, "diverged_round", 7.0) if row[:3] == ("a", "recovered", 2) else row for row in whole]
    found = evaluated(evaluations(*rows))
    means = {key[2:4]: (mean.mean, mean.n) for key, mean in found.means().items()}
    assert means == {
        ("a", "unlearned"): (2, 2),  # of 1 and 3
        ("a", "recovered"): (2, 2),
        ("b", "unlearned"): (2, 3),
        ("b", "recovered"): (2, 3),
    }
    assert found.lost["small", "ours", "a", "unlearned"] == {2: 7}
    assert (found.diverged["small", "ours", "a", "unlearned"], found.diverged["small", "ours", "a", "recovered"]) == (
        set(),
        {2},
    )


def test_where_every_seed_diverged_a_stage_keeps_those_that_came_so_far() -> None:
    rows = [("a", "unlearned", 1, "asr", 0.5), ("a", "unlearned", 2, "diverged_round", 1.0)]
    rows += [("a", "recovered", seed, "diverged_round", 4.0) for seed in (1, 2)]
    found = evaluated(evaluations(*rows))
    assert [(key[3], mean.mean, mean.n) for key, mean in found.means().items()] == [("unlearned", 0.5, 1)]
    assert found.lost["small", "ours", "a", "unlearned"] == {2: 1}
    assert found.lost["small", "ours", "a", "recovered"] == {1: 4, 2: 4}
