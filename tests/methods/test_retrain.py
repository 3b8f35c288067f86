"""Retraining: from a model of its own, without any data of a forgotten client."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from fu.data.clients import ClientData
from fu.federation.task import State, Task, initial_parameters
from fu.methods import retrain
from fu.pipeline.stages.compute import training_of
from fu.plugins import Choice
from fu.training import fedavg
from tests.factories import CLASSES, builder, make_data, make_federation, make_partition, make_task, params_of


def task_on(data: ClientData | None = None, seed: int = 3, **training: Any) -> Task:
    """Return a task that retraining is given: with the scenario's training, FedAvg unless another is named."""
    choice = Choice(**{"name": "fedavg", **training})
    return replace(make_task(make_federation(data, seed=seed)), training=training_of(choice))


def test_retraining_never_touches_the_data_of_a_forgotten_client() -> None:
    part = make_partition()
    clean = make_data(part)
    poisoned_x = clean.x.clone()
    poisoned_x[part.train[1]] = torch.nan
    results = []
    for x in (clean.x, poisoned_x):
        data = ClientData(x, clean.y, part, CLASSES, "all", clean.mark)
        task = task_on(data)
        state = retrain.start(task, params_of(retrain))
        for round in range(3):
            state = retrain.step(task, params_of(retrain), state, round)
        results.append(state.theta)
        assert data.train(1)[0].isnan().any() == x.isnan().any()
    assert torch.isfinite(results[0]).all()
    assert torch.equal(results[0], results[1])


def test_retraining_starts_from_another_model_than_the_training() -> None:
    task = task_on(seed=3)
    again = retrain.start(task, params_of(retrain)).theta
    assert torch.equal(again, initial_parameters(builder(), 3, "model", "retrained"))
    original = make_task(make_federation(seed=3), trained=False)
    assert not torch.equal(again, fedavg.start(original, params_of(fedavg)).theta)
    other_seed = task_on(seed=4)
    assert not torch.equal(again, retrain.start(other_seed, params_of(retrain)).theta)


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_retraining_trains_the_retained_clients_as_the_scenario_trains(weights: str) -> None:
    task, theta = task_on(params={"client_weights": weights}), make_task().original_model
    delta = make_federation().local_updates(theta, [0, 2], 1).delta
    share = torch.tensor([7.0, 9.0] if weights == "samples" else [1.0, 1.0])
    expected = theta + (share / share.sum()) @ delta
    found = retrain.step(task, params_of(retrain), State(theta), 1).theta
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
