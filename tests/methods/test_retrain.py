"""Retraining: from a model of its own, without any data of a forgotten client."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from fu.data.clients import ClientData
from fu.federation.plugged import training_of
from fu.federation.task import State, Task, initial_parameters
from fu.methods import retrain
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


def retrained(repeat: int, seed: int = 3, clients_per_round: int | None = None, **training: Any) -> tuple[Task, State]:
    """Retrain for two rounds, on a shared task's federation; `repeat`: which of several."""
    task = replace(task_on(seed=seed, **training), clients_per_round=clients_per_round)
    p = params_of(retrain, repeat=repeat)
    state = retrain.start(task, p)
    for round in range(2):
        state = retrain.step(task, p, state, round)
    return task, state


def test_repeat_0_is_the_training_itself_on_the_retained_clients() -> None:
    task = task_on()
    p = params_of(fedavg)
    state = fedavg.start(task, p)
    for round in range(2):
        state = fedavg.step(task, p, state, round)
    assert torch.equal(retrained(0)[1].theta, state.theta)
    assert params_of(retrain).repeat == 0


def test_repeats_begin_and_end_apart_and_each_is_repeatable_at_the_same_cost() -> None:
    runs = {repeat: retrained(repeat) for repeat in (0, 1, 2)}
    starts = [retrain.start(task_on(), params_of(retrain, repeat=repeat)).theta for repeat in (0, 1, 2)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not torch.equal(starts[one], starts[other])
        assert not torch.equal(runs[one][1].theta, runs[other][1].theta)
        assert runs[one][0].federation.cost == runs[other][0].federation.cost
    assert runs[0][0].federation.cost.client_rounds == 2 * 2
    for repeat in (1, 2):
        assert torch.equal(retrained(repeat)[1].theta, runs[repeat][1].theta)
        assert not torch.equal(retrained(repeat, seed=4)[1].theta, runs[repeat][1].theta)


def test_a_repeat_draws_batches_and_clients_of_its_own() -> None:
    task = replace(make_task(), clients_per_round=1)
    again = task.repeated(1)
    orders = [torch.cat([*one.federation.orders(0, 0)]).tolist() for one in (task, again)]
    assert orders[0] != orders[1]
    updates = task.federation.local_updates(task.original_model, [0], 0).delta
    assert not torch.equal(task.repeated(1).federation.local_updates(task.original_model, [0], 0).delta, updates)
    drawn = [
        [one.participants(round) for round in range(20)] for one in (task, again, task.repeated(2), task.repeated(1))
    ]
    assert drawn[1] == drawn[3]
    assert len({str(clients) for clients in drawn}) == 3


def test_a_repeat_leaves_the_draws_of_others_alone() -> None:
    """Of a training that keeps what it has drawn, in the memory of the task, too."""
    task = replace(make_task(make_federation(local_epochs=None, local_steps=2, batch_size=3)), clients_per_round=2)
    task = replace(task, with_replacement=True, training=training_of(Choice(name="fats")))
    shared = [
        retrain.step(task, params_of(retrain, repeat=k), State(task.original_model), 0).theta for k in (0, 1, 2, 0)
    ]
    apart = [
        retrain.step(replace(task, memory={}), params_of(retrain, repeat=k), State(task.original_model), 0).theta
        for k in (0, 1, 2, 0)
    ]
    assert all(torch.equal(*pair) for pair in zip(shared, apart, strict=True))
    assert not torch.equal(shared[0], shared[1])
    assert not torch.equal(shared[1], shared[2])


@pytest.mark.parametrize("repeat", [-1, 0.5, None])
def test_a_repeat_is_a_number_from_0_on(repeat: Any) -> None:
    with pytest.raises(ValidationError, match="repeat"):
        params_of(retrain, repeat=repeat)
