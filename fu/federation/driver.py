"""The one loop around every method: rounds, metrics, histories, time, checkpoints, resume and divergence."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fu.federation.checkpoint import Checkpoint, inside, state_of
from fu.federation.progress import Progress
from fu.federation.task import Record, State, Task

Recorder = Callable[[Task, Record, Tensor, int], Record]


@dataclass(frozen=True)
class Outcome:
    """The last state, the recorded histories, a row per round, the seconds of training and the round of divergence."""

    state: State
    histories: dict[str, Record]
    rows: list[dict[str, Any]]
    seconds: float
    diverged: int | None


def drive(
    task: Task,
    start: Callable[[], State],
    step: Callable[[State, int], State],
    measure: Callable[[Tensor], dict[str, float]],
    checkpoint: Checkpoint,
    label: str,
    *,
    first_round: int = 0,
    evaluate_every: int = 1,
    evaluate_last: int = 1,
    watch: Callable[[Tensor, Tensor, int], dict[str, float]] | None = None,
    recorders: Mapping[str, Recorder] | None = None,
    requests: int = 1,
    again: Callable[[State, int], State] | None = None,
    finished: Callable[[State], bool] | None = None,
    kind: type[State] = State,
) -> Outcome:
    """Run `task.rounds` rounds, numbered from `first_round`; `kind`: what `start` and `step` return.

    A row is written before the first round and after every round; `measure(theta)` fills the first row, every
    `evaluate_every`-th and the last `evaluate_last`, `watch(before, after, round)` every row. `recorders`: what to keep
    of each round for methods that need it, by kind. Of several `requests` in a row, which come at equal distances, the
    first is met by `start` and every other by `again(state, round)`. Once `finished(state)`, rounds are idle until the
    next request: nothing is computed, and what was measured holds. Seconds cover start and steps only. Parameters that
    are no longer finite end the run: `diverged` is the round (counted from 1), the state the last finite one.
    """
    device = task.federation.device

    def synchronise() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    latest: tuple[Tensor, dict[str, float]] | None = None

    def measured(state: State, done: int) -> dict[str, float]:
        nonlocal latest
        due = done % evaluate_every == 0 or done > task.rounds - evaluate_last
        if due and (latest is None or latest[0] is not state.theta):
            latest = state.theta, measure(state.theta)
        return latest[1] if due and latest else {}

    def row(done: int, *found: dict[str, float]) -> dict[str, Any]:
        numbers = {name: value for one in found for name, value in one.items()}
        return {"round": first_round + done, **numbers, **task.federation.cost.record()}

    recorders = recorders or {}
    task.federation.asked_again = bool(recorders) or watch is not None
    saved = checkpoint.load(str(device))
    if saved is None:
        begun = synchronise()
        state = start()
        seconds, done = synchronise() - begun, 0
        rows, histories = [row(0, measured(state, 0))], {name: Record() for name in recorders}
    else:
        values, notes = saved
        state, histories = state_of(kind, values), {name: inside(values, f"history.{name}") for name in recorders}
        seconds, done, rows = notes["seconds"], notes["done"], notes["rows"]
        task.federation.cost.restore(notes["cost"])
    progress = Progress(label, task.rounds, done)
    diverged = None
    while done < task.rounds:
        number = first_round + done
        begun = synchronise()
        if again and done and done % (task.rounds // requests) == 0:
            state = again(state, number)
        before = state.theta
        following = state if finished and finished(state) else step(state, number)
        seconds += synchronise() - begun
        if not torch.isfinite(following.theta).all():
            diverged = number + 1
            break
        for name, record in recorders.items():
            histories[name] = record(task, histories[name], before, number)
        extra = watch(before, following.theta, number) if watch else {}
        state, done = following, done + 1
        metrics = measured(state, done)
        rows.append(row(done, metrics, extra))
        progress.advance(dict(list(metrics.items())[:2]))
        request_ends = requests > 1 and done % (task.rounds // requests) == 0  # the next one may overwrite what it read
        if done < task.rounds and (request_ends or checkpoint.due()):
            notes = {"seconds": seconds, "done": done, "rows": rows, "cost": task.federation.cost.record()}
            checkpoint.save(state, notes, histories)
    progress.finish(diverged)
    return Outcome(state, histories, rows, seconds, diverged)
