"""The lottery: which runs do nothing, and that the others are one more retraining."""

from dataclasses import replace

import pytest
import torch

from fu.federation.local import Cost
from fu.federation.plugged import training_of
from fu.federation.task import State, Task
from fu.methods import lottery, retrain
from fu.plugins import Choice
from tests.factories import make_federation, make_task, params_of


def run(seed: int, period: int) -> tuple[Task, State]:
    task = replace(make_task(make_federation(seed=seed)), training=training_of(Choice(name="fedavg")))
    p = params_of(lottery, period=period)
    state = lottery.start(task, p)
    for round in range(2):
        state = lottery.step(task, p, state, round)
    return task, state


@pytest.mark.parametrize(("period", "idle"), [(4, [0, 4, 8]), (8, [0, 8]), (1, [*range(10)])])
def test_one_run_in_each_period_is_the_original_model_at_no_cost(period: int, idle: list[int]) -> None:
    runs = [run(seed, period) for seed in range(10)]
    assert [seed for seed, (task, state) in enumerate(runs) if torch.equal(state.theta, task.original_model)] == idle
    assert [seed for seed, (task, _) in enumerate(runs) if task.federation.cost == Cost()] == idle


def test_the_others_are_retrained_with_draws_of_their_own() -> None:
    task, state = run(seed=3, period=8)
    p = params_of(retrain, repeat=lottery.DRAWS)
    alone = retrain.start(task, p)
    for round in range(2):
        alone = retrain.step(task, p, alone, round)
    assert torch.equal(state.theta, alone.theta)
