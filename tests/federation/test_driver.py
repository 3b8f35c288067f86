"""The loop: rows, metrics, seconds, divergence, and what is recorded for methods."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fu.evaluation import conflicts
from fu.federation import driver
from fu.federation.driver import Outcome
from fu.federation.task import State
from tests.factories import KINDS
from tests.federation.runs import KilledError, always, drive, measured, never, nudge, toy, train

METRICS = {"r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "asr", "asr_held_out", "distance"}
COSTS = {
    *("client_rounds", "forgotten_rounds", "steps", "samples", "time_steps", "replayed"),
    *("bytes_up", "bytes_down", "stored"),
}


@pytest.mark.parametrize("first_round", [0, 100])
def test_a_row_before_the_first_round_and_after_each(tmp_path: Path, first_round: int) -> None:
    asked: list[int] = []

    def step(state: State, round: int) -> State:
        asked.append(round)
        return nudge(state, round)

    task = toy(rounds=3)
    outcome = drive(task, never(tmp_path), step, first_round=first_round)
    assert asked == [first_round, first_round + 1, first_round + 2]
    assert [row["round"] for row in outcome.rows] == [first_round + k for k in range(4)]
    assert all(set(row) == {"round"} | METRICS | COSTS for row in outcome.rows)
    assert torch.equal(outcome.state.theta, task.original_model + 1 + 1 + 1)
    assert outcome.diverged is None


@pytest.mark.parametrize(
    ("rounds", "every", "last", "measured"),
    [
        (5, 1, 1, [0, 1, 2, 3, 4, 5]),
        (5, 2, 1, [0, 2, 4, 5]),
        (4, 2, 1, [0, 2, 4]),
        (3, 10, 1, [0, 3]),
        (1, 1, 1, [0, 1]),
        (9, 4, 3, [0, 4, 7, 8, 9]),
        (8, 100, 2, [0, 7, 8]),
        (3, 100, 10, [0, 1, 2, 3]),
    ],
)
def test_metrics_are_measured_at_first_every_so_often_and_at_last(
    tmp_path: Path, rounds: int, every: int, last: int, measured: list[int]
) -> None:
    task = toy(rounds)
    when: dict[str, Any] = {"first_round": 7, "evaluate_every": every, "evaluate_last": last}
    outcome = drive(task, never(tmp_path), **when)
    assert [row["round"] - 7 for row in outcome.rows if "r_acc" in row] == measured
    assert len(outcome.rows) == rounds + 1
    assert all(set(row) >= COSTS for row in outcome.rows)


def test_rows_hold_what_is_measured_at_that_round_and_the_cost_until_then(tmp_path: Path) -> None:
    task, seen = toy(rounds=3), list[Tensor]()
    outcome = train(task, never(tmp_path), seen=seen)
    thetas = [*seen, outcome.state.theta]
    for done, (row, theta) in enumerate(zip(outcome.rows, thetas, strict=True)):
        expected = measured(task)(theta)
        assert {name: row[name] for name in expected} == expected
        assert row["client_rounds"] == 2 * done  # the retained clients, for there is an original model
        assert row["samples"] == 32 * done


def test_conflicts_are_counted_after_every_round_and_cost_nothing(tmp_path: Path) -> None:
    task = toy(rounds=3)
    outcome = train(task, never(tmp_path), count_conflicts=True)
    assert ["conflicts" in row for row in outcome.rows] == [False, True, True, True]
    plain = train(toy(rounds=3), never(tmp_path))
    assert [{k: v for k, v in row.items() if k != "conflicts"} for row in outcome.rows] == plain.rows


def test_seconds_cover_start_and_steps_but_no_evaluation_and_add_up_over_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(driver, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def takes(seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, taking that long."""

        def slow(*args: Any) -> Any:
            now[0] += seconds
            return function(*args)

        return slow

    def run(seconds: float, killed_after: int | None) -> Outcome:
        task = toy(rounds=4)

        def step(state: State, round: int) -> State:
            if round == killed_after:
                raise KilledError
            return nudge(state, round)

        start, measure = takes(0.5, lambda: State(task.original_model)), takes(100, measured(task))
        watch, record = takes(1000, partial(conflicts.count, task)), takes(10_000, KINDS["last_local_models"])
        how: dict[str, Any] = {"watch": watch, "recorders": {"last_local_models": record}}
        return driver.drive(task, start, takes(seconds, step), measure, always(tmp_path), "toy", **how)

    with pytest.raises(KilledError):
        run(1, killed_after=2)
    assert run(2, killed_after=None).seconds == 0.5 + 2 * 1 + 2 * 2
    assert now[0] > 4 * 11_100


@pytest.mark.parametrize("first_round", [0, 50])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_leaving_the_finite_numbers_ends_the_run_at_the_last_finite_state(
    tmp_path: Path, first_round: int, value: float
) -> None:
    def step(state: State, round: int) -> State:
        following = state.theta + 1
        if round == first_round + 2:
            following[3] = value
        return State(following)

    task = toy(rounds=5)
    outcome = drive(
        task,
        never(tmp_path),
        step,
        first_round=first_round,
        count_conflicts=True,
        kinds=("last_local_models",),
    )
    assert outcome.diverged == first_round + 3
    assert torch.equal(outcome.state.theta, task.original_model + 1 + 1)
    assert [row["round"] for row in outcome.rows] == [first_round, first_round + 1, first_round + 2]
    assert torch.isfinite(outcome.histories["last_local_models"]["theta"]).all()


def test_the_progress_shows_the_first_two_numbers_that_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = toy(rounds=2)
    numbers = {"best": 0.25, "second": 1.0, "third": 3.0}
    driver.drive(
        task, lambda: State(task.original_model), nudge, lambda _: numbers, never(tmp_path), "toy", evaluate_every=9
    )
    assert "round 2/2 (100%), best 0.250, second 1.000, 0.00 s per round" in capsys.readouterr().err


@dataclass(frozen=True)
class Resumed(State):
    """A state that says how many rounds are left."""

    left: int


def test_several_requests_come_at_equal_distances_and_rounds_left_over_are_idle(tmp_path: Path) -> None:
    """Six rounds, three requests; the method needs one round for each but the second, for which it needs none."""
    needed, came = {2: 0, 4: 1}, []
    task = toy(rounds=6)

    def start() -> State:
        return Resumed(task.original_model, 1)

    def again(state: State, round: int) -> State:
        came.append(round)
        return Resumed(state.theta, needed[round])

    def step(state: State, round: int) -> State:
        return Resumed(nudge(state, round).theta, 0)

    more: dict[str, Any] = {"requests": 3, "again": again, "finished": lambda state: not state.left, "kind": Resumed}
    outcome = drive(task, never(tmp_path), step, start, evaluate_every=2, **more)
    assert came == [2, 4]
    assert torch.equal(outcome.state.theta, task.original_model + 1 + 1)
    distances = [row["distance"] for row in outcome.rows if "distance" in row]
    assert [row["round"] for row in outcome.rows] == list(range(7))
    assert distances == pytest.approx([0, distances[1], distances[1], 2 * distances[1]])
    assert distances[1] > 0


def test_what_holds_is_not_measured_again(tmp_path: Path) -> None:
    task, times = toy(rounds=4), []

    def measure(theta: Tensor) -> dict[str, float]:
        times.append(theta)
        return {"mean": theta.mean().item()}

    outcome = driver.drive(
        task, lambda: State(task.original_model), nudge, measure, never(tmp_path), "toy", finished=lambda state: True
    )
    assert len(times) == 1
    assert [row["mean"] for row in outcome.rows] == [times[0].mean().item()] * 5


@pytest.mark.parametrize(
    ("asks", "again"),
    [({}, False), ({"kinds": ("last_local_models",)}, True), ({"count_conflicts": True}, True)],
)
def test_a_federation_knows_whether_updates_are_asked_for_again(
    tmp_path: Path, asks: dict[str, Any], again: bool
) -> None:
    task = toy(rounds=1)
    drive(task, never(tmp_path), **asks)
    assert task.federation.asked_again == again
