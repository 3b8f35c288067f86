"""The two controls: a model that forgot nothing, and one that never knew anything."""

from dataclasses import replace
from types import ModuleType

import pytest
import torch

from fu.federation.local import Cost
from fu.federation.task import Task, initial_parameters
from fu.methods import random_weights, untouched
from fu.training import fedavg
from tests.factories import builder, make_federation, make_task, params_of


def driven(method: ModuleType, task: Task) -> torch.Tensor:
    state = method.start(task, params_of(method))
    for round in range(3):
        assert method.done(state)
        state = method.step(task, params_of(method), state, round)
    assert task.federation.cost == Cost()
    theta: torch.Tensor = state.theta
    return theta


def test_doing_nothing_is_the_original_model_bit_for_bit_at_no_cost() -> None:
    task = make_task()
    assert torch.equal(driven(untouched, task), task.original_model)


def test_random_weights_are_a_new_model_of_each_seed_that_nobody_trains_from() -> None:
    task, other = make_task(make_federation(seed=3)), make_task(make_federation(seed=4))
    theta = driven(random_weights, task)
    assert torch.equal(theta, initial_parameters(builder(), 3, "model", "random weights"))
    assert not torch.equal(theta, driven(random_weights, other))
    for trained in (task.original_model, task.first_model(), task.repeated(1).first_model()):
        assert not torch.equal(theta, trained)
    assert not torch.equal(theta, fedavg.start(replace(task, original=None), params_of(fedavg)).theta)


@pytest.mark.parametrize("method", [untouched, random_weights])
def test_a_control_reads_no_data(method: ModuleType) -> None:
    task = make_task()
    task.federation.data.x.fill_(torch.nan)
    assert torch.isfinite(driven(method, task)).all()
