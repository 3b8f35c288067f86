import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from fu.errors import UserError
from fu.evaluation.measure import measure
from fu.evaluation.watch import conflicts
from fu.federation import driver, progress, weights
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome
from fu.federation.progress import Progress
from fu.federation.task import State, Task, theta_of
from fu.training import fedavg
from tests.factories import KINDS, make_data, make_federation, make_partition, make_task, params_of

METRICS = {"r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "asr", "distance"}
COSTS = {"client_rounds", "steps", "samples", "bytes_up", "bytes_down"}


class KilledError(Exception):
    """Stands for whatever ends a job in the middle."""


def drive(
    task: Task,
    start: Callable[[], State],
    step: Callable[[State, int], State],
    checkpoint: Checkpoint,
    label: str,
    *,
    count_conflicts: bool = False,
    kinds: tuple[str, ...] = (),
    **more: Any,
) -> Outcome:
    """Drive with the metrics, the watch and the recorders that the stages use."""
    watch = partial(conflicts, task) if count_conflicts else None
    recorders = {kind: KINDS[kind] for kind in kinds}
    return driver.drive(
        task, start, step, partial(measure, task), checkpoint, label, watch=watch, recorders=recorders, **more
    )


def never(folder: Path) -> Checkpoint:
    """A checkpoint that is never due."""
    return Checkpoint(folder / "job.checkpoint", {"key": "key"}, float("inf"))


def always(folder: Path, key: str = "key") -> Checkpoint:
    """A checkpoint that is due after every round."""
    return Checkpoint(folder / "job.checkpoint", {"key": key}, 0.0)


def toy(rounds: int = 4, trained: bool = True) -> Task:
    data = make_data(make_partition(), poison="share")
    return make_task(make_federation(data, stream="training"), rounds=rounds, trained=trained)


def train(
    task: Task, checkpoint: Checkpoint, killed_after: int | None = None, seen: list[Tensor] | None = None, **more: Any
) -> Outcome:
    """Drive FedAvg, killed when the round `killed_after` begins; `seen` gets theta before every round."""
    p = params_of(fedavg)

    def step(state: State, round: int) -> State:
        if round - more.get("first_round", 0) == killed_after:
            raise KilledError
        if seen is not None:
            seen.append(theta_of(state))
        return {**fedavg.step(task, p, state, round), "rounds": round + 1, "third": 1 / 3}

    return drive(task, lambda: fedavg.start(task, p), step, checkpoint, "toy", **more)


def nudge(state: State, round: int) -> State:
    """A step that costs nothing."""
    return {"theta": theta_of(state) + 1}


# ---- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_round", [0, 100])
def test_a_row_before_the_first_round_and_after_each(tmp_path: Path, first_round: int) -> None:
    asked: list[int] = []

    def step(state: State, round: int) -> State:
        asked.append(round)
        return nudge(state, round)

    task = toy(rounds=3)
    outcome = drive(task, lambda: {"theta": task.original_model}, step, never(tmp_path), "toy", first_round=first_round)
    assert asked == [first_round, first_round + 1, first_round + 2]
    assert [row["round"] for row in outcome.rows] == [first_round + k for k in range(4)]
    assert all(set(row) == {"round"} | METRICS | COSTS for row in outcome.rows)
    assert torch.equal(theta_of(outcome.state), task.original_model + 1 + 1 + 1)
    assert outcome.diverged is None


@pytest.mark.parametrize(
    ("rounds", "every", "measured"),
    [(5, 1, [0, 1, 2, 3, 4, 5]), (5, 2, [0, 2, 4, 5]), (4, 2, [0, 2, 4]), (3, 10, [0, 3]), (1, 1, [0, 1])],
)
def test_metrics_are_measured_at_first_every_so_often_and_at_last(
    tmp_path: Path, rounds: int, every: int, measured: list[int]
) -> None:
    task = toy(rounds)
    outcome = drive(
        task, lambda: {"theta": task.original_model}, nudge, never(tmp_path), "toy", first_round=7, evaluate_every=every
    )
    assert [row["round"] - 7 for row in outcome.rows if "r_acc" in row] == measured
    assert len(outcome.rows) == rounds + 1
    assert all(set(row) >= COSTS for row in outcome.rows)


def test_rows_hold_what_is_measured_at_that_round_and_the_cost_until_then(tmp_path: Path) -> None:
    task, seen = toy(rounds=3), []  # type: tuple[Task, list[Tensor]]
    outcome = train(task, never(tmp_path), seen=seen)
    thetas = [*seen, theta_of(outcome.state)]
    for done, (row, theta) in enumerate(zip(outcome.rows, thetas, strict=True)):
        expected = measure(task, theta)
        assert {name: row[name] for name in expected} == expected
        assert row["client_rounds"] == 3 * done
        assert row["samples"] == 56 * done


def test_there_is_no_distance_while_the_original_model_is_trained(tmp_path: Path) -> None:
    outcome = train(toy(rounds=1, trained=False), never(tmp_path))
    assert [set(row) for row in outcome.rows] == [{"round"} | (METRICS - {"distance"}) | COSTS] * 2


def test_conflicts_are_counted_after_every_round_and_cost_nothing(tmp_path: Path) -> None:
    task = toy(rounds=3)
    outcome = train(task, never(tmp_path), count_conflicts=True)
    assert ["conflicts" in row for row in outcome.rows] == [False, True, True, True]
    plain = train(toy(rounds=3), never(tmp_path))
    assert [{k: v for k, v in row.items() if k != "conflicts"} for row in outcome.rows] == plain.rows


# ---- time ----------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that moves only when it is told to."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def takes(self, seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, taking that long."""

        def slow(*args: Any, **kwargs: Any) -> Any:
            self.now += seconds
            return function(*args, **kwargs)

        return slow


def test_seconds_cover_start_and_steps_but_no_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, task = Clock(), toy(rounds=3)
    monkeypatch.setattr(driver, "time", SimpleNamespace(perf_counter=clock.perf_counter))
    start = clock.takes(0.5, lambda: {"theta": task.original_model})
    outcome = driver.drive(
        task,
        start,
        clock.takes(0.125, nudge),
        clock.takes(100, partial(measure, task)),
        never(tmp_path),
        "toy",
        watch=clock.takes(1000, partial(conflicts, task)),
        recorders={"target_model": clock.takes(10_000, KINDS["target_model"])},
    )
    assert outcome.seconds == 0.5 + 3 * 0.125
    assert clock.now == 0.5 + 3 * 0.125 + 4 * 100 + 3 * 1000 + 3 * 10_000


def test_seconds_add_up_over_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, task = Clock(), toy(rounds=4)
    monkeypatch.setattr(driver, "time", SimpleNamespace(perf_counter=clock.perf_counter))
    start = clock.takes(0.5, lambda: {"theta": task.original_model})

    def dies(state: State, round: int) -> State:
        if round == 2:
            raise KilledError
        return nudge(state, round)

    with pytest.raises(KilledError):
        drive(task, start, clock.takes(1, dies), always(tmp_path), "toy")
    outcome = drive(task, start, clock.takes(2, nudge), always(tmp_path), "toy")
    assert outcome.seconds == 0.5 + 2 * 1 + 2 * 2


# ---- divergence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_round", [0, 50])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_leaving_the_finite_numbers_ends_the_run_at_the_last_finite_state(
    tmp_path: Path, first_round: int, value: float
) -> None:
    def step(state: State, round: int) -> State:
        following = theta_of(state) + 1
        if round == first_round + 2:
            following[3] = value
        return {"theta": following}

    task = toy(rounds=5)
    outcome = drive(
        task,
        lambda: {"theta": task.original_model},
        step,
        never(tmp_path),
        "toy",
        first_round=first_round,
        count_conflicts=True,
        kinds=("target_model",),
    )
    assert outcome.diverged == first_round + 3
    assert torch.equal(theta_of(outcome.state), task.original_model + 1 + 1)
    assert [row["round"] for row in outcome.rows] == [first_round, first_round + 1, first_round + 2]
    assert torch.isfinite(outcome.histories["target_model"]["theta"]).all()
    path = tmp_path / "model.safetensors"
    weights.save(path, task.federation.layout, theta_of(outcome.state), outcome.diverged)
    with safe_open(path, framework="pt") as file:
        assert list(file.keys()) == []
    assert weights.load(path, task.federation.layout) == (None, first_round + 3)


def test_a_model_file_gives_back_the_same_vector(tmp_path: Path) -> None:
    task = toy()
    path = tmp_path / "model.safetensors"
    weights.save(path, task.federation.layout, task.original_model, None)
    theta, diverged = weights.load(path, task.federation.layout)
    assert theta is not None
    assert torch.equal(theta, task.original_model)
    assert diverged is None


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_truncated_model_file_is_one_sentence(tmp_path: Path, share: float) -> None:
    task = toy()
    path = tmp_path / "model.safetensors"
    weights.save(path, task.federation.layout, task.original_model, None)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match=r"model\.safetensors: the weights file is truncated"):
        weights.load(path, task.federation.layout)
    path.unlink()
    with pytest.raises(UserError, match="no such weights file"):
        weights.load(path, task.federation.layout)


# ---- checkpoints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path, killed_after: int) -> None:
    more: dict[str, Any] = {"evaluate_every": 2, "count_conflicts": True, "kinds": ("target_model",), "first_round": 5}
    whole_task = toy()
    whole = train(whole_task, never(tmp_path), **more)
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path), killed_after, **more)
    task, seen = toy(), []  # type: tuple[Task, list[Tensor]]
    resumed = train(task, always(tmp_path), seen=seen, **more)
    assert len(seen) == 4 - killed_after
    assert theta_of(resumed.state).numpy().tobytes() == theta_of(whole.state).numpy().tobytes()
    assert resumed.state.keys() == whole.state.keys()
    assert (resumed.state["rounds"], resumed.state["third"]) == (9, 1 / 3)
    assert resumed.rows == whole.rows
    assert json.dumps(resumed.rows) == json.dumps(whole.rows)
    assert task.federation.cost == whole_task.federation.cost
    assert resumed.histories.keys() == whole.histories.keys() == {"target_model"}
    assert torch.equal(resumed.histories["target_model"]["theta"], whole.histories["target_model"]["theta"])


def test_a_run_killed_before_its_first_checkpoint_starts_anew(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        train(toy(), never(tmp_path), 2)
    assert list(tmp_path.iterdir()) == []
    seen: list[Tensor] = []
    train(toy(), never(tmp_path), seen=seen)
    assert len(seen) == 4


def test_a_checkpoint_of_another_key_is_ignored(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path, "old"), 2)
    assert always(tmp_path, "new").load("cpu") is None
    assert always(tmp_path, "old").load("cpu") is not None
    seen: list[Tensor] = []
    outcome = train(toy(), always(tmp_path, "new"), seen=seen)
    assert len(seen) == 4
    assert torch.equal(theta_of(outcome.state), theta_of(train(toy(), never(tmp_path / "other")).state))


def test_a_truncated_checkpoint_is_ignored(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path), 2)
    checkpoint = always(tmp_path)
    content = checkpoint.path.read_bytes()
    for length in [0, 1, 7, 8, 9, *range(100, len(content), len(content) // 15), len(content) - 1]:
        checkpoint.path.write_bytes(content[:length])
        assert checkpoint.load("cpu") is None
    seen: list[Tensor] = []
    train(toy(), checkpoint, seen=seen)
    assert len(seen) == 4


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"\0" * 64])
def test_a_foreign_file_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    checkpoint = always(tmp_path)
    checkpoint.path.write_bytes(content)
    assert checkpoint.load("cpu") is None
    weights.save(checkpoint.path, toy().federation.layout, toy().original_model, None)
    assert checkpoint.load("cpu") is None


def test_a_checkpoint_keeps_tensors_numbers_and_notes_exactly(tmp_path: Path) -> None:
    state: State = {"theta": torch.randn(5).repeat(2, 1).T, "radius": 0.1 + 0.2, "count": 3}
    shared = state["theta"]
    assert isinstance(shared, Tensor)
    state["same"] = shared  # tensors that share memory
    notes = {"rows": [{"round": 1, "asr": 1 / 3, "nothing": None}], "done": 2}
    checkpoint = always(tmp_path)
    checkpoint.save(state, notes)
    found = checkpoint.load("cpu")
    assert found is not None
    loaded, said = found
    assert said == notes
    assert loaded.keys() == state.keys()
    assert (loaded["radius"], loaded["count"]) == (0.1 + 0.2, 3)
    assert torch.equal(loaded["theta"], shared)  # type: ignore[arg-type]
    assert torch.equal(loaded["same"], shared)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["job.checkpoint"]
    checkpoint.clear()
    checkpoint.clear()
    assert list(tmp_path.iterdir()) == []
    assert checkpoint.load("cpu") is None


def test_a_checkpoint_is_due_after_its_time_alone(tmp_path: Path) -> None:
    assert always(tmp_path).due()
    assert not never(tmp_path).due()


# ---- histories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed_after", [None, 2])
def test_the_target_model_is_the_last_rounds_model_of_the_forgotten_clients(
    tmp_path: Path, killed_after: int | None
) -> None:
    if killed_after is not None:
        with pytest.raises(KilledError):
            train(toy(), always(tmp_path), killed_after, kinds=("target_model",))
    seen: list[Tensor] = []
    task = toy()
    outcome = train(task, always(tmp_path), seen=seen, kinds=("target_model",))
    fresh = toy().federation
    expected = seen[-1] + fresh.local_updates(seen[-1], [1], 3).delta
    assert expected.shape == (1, task.federation.layout.size)
    assert outcome.histories.keys() == {"target_model"}
    assert outcome.histories["target_model"].keys() == {"theta"}
    assert torch.equal(outcome.histories["target_model"]["theta"], expected)
    assert "history.target_model.theta" not in outcome.state
    assert task.federation.cost.client_rounds == 3 * 4  # recording costs nothing


def test_a_history_that_grows_over_the_rounds_survives_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(task: Task, record: dict[str, Tensor], theta: Tensor, round: int) -> dict[str, Tensor]:
        return {"sum": record.get("sum", torch.zeros_like(theta)) + theta, "rounds": torch.tensor([round])}

    monkeypatch.setitem(KINDS, "total", add)
    seen: list[Tensor] = []
    whole = train(toy(), never(tmp_path), seen=seen, kinds=("total",)).histories["total"]
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path), 3, kinds=("total",))
    resumed = train(toy(), always(tmp_path), kinds=("total",)).histories["total"]
    assert torch.equal(whole["sum"], seen[0] + seen[1] + seen[2] + seen[3])
    assert torch.equal(resumed["sum"], whole["sum"])
    assert resumed["rounds"].tolist() == whole["rounds"].tolist() == [3]


def test_a_run_without_kinds_records_nothing(tmp_path: Path) -> None:
    assert train(toy(rounds=1), never(tmp_path)).histories == {}


# ---- progress ------------------------------------------------------------------------------------------------------

LINE = r"\d\d:\d\d:\d\d toy: "


def test_progress_in_a_log_file_is_readable_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(toy(rounds=3), never(tmp_path))
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    first, last = err.splitlines()
    rest = r", asr \d\.\d{3}, r_acc \d\.\d{3}, \d+\.\d\d s a round, "
    assert re.fullmatch(LINE + r"round 1/3 \(33%\)" + rest + r"\d+ s left", first)
    assert re.fullmatch(LINE + r"round 3/3 \(100%\)" + rest + "0 s left", last)


def test_progress_says_where_a_run_resumes_and_where_it_diverges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path), 2)
    capsys.readouterr()
    task = toy()
    drive(
        task,
        lambda: {"theta": task.original_model},
        lambda state, round: {"theta": theta_of(state) * torch.nan},
        always(tmp_path),
        "toy",
    )
    assert [re.sub(LINE, "", line) for line in capsys.readouterr().err.splitlines()] == [
        "resumed after round 2",
        "diverged in round 3",
    ]


def test_progress_speaks_every_few_seconds_with_the_time_left_of_this_session(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=0.0, strftime=lambda _: "12:00:00")
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    shown = Progress("toy", 100, done=90)
    for done in range(10):
        clock.now += 2.5
        shown.advance({"asr": done / 10} if done % 2 == 0 else {})
    said = [line.removeprefix("12:00:00 toy: ") for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "resumed after round 90",
        "round 94/100 (94%), asr 0.200, 2.50 s a round, 15 s left",
        "round 98/100 (98%), asr 0.600, 2.50 s a round, 5 s left",
        "round 100/100 (100%), asr 0.800, 2.50 s a round, 0 s left",
    ]
