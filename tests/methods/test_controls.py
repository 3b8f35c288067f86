"""Retraining, and the controls made of it, of the original model and of noise."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Indices
from fu.federation.local import Cost
from fu.federation.task import State, Task, initial_parameters
from fu.methods import (
    fedrecovery,
    lottery,
    noise,
    random_weights,
    retrain,
    retrain_mixed,
    retrain_partly,
    untouched,
)
from fu.training import fedavg
from tests.factories import CLASSES, builder, make_data, make_federation, make_partition, make_task, params_of
from tests.systems import states_of, trained_by


def test_doing_nothing_is_the_original_model_and_random_weights_are_a_new_one_that_nobody_trains_from() -> None:
    task = make_task()
    assert torch.equal(states_of(untouched, task)[-1].theta, task.original_model)
    theta = states_of(random_weights, task)[-1].theta
    assert torch.equal(theta, initial_parameters(builder(), 3, "model", "random weights"))
    firsts = task.first_model(), task.repeated(1).first_model(), make_task(trained=False).first_model()
    assert not any(torch.equal(theta, trained) for trained in (task.original_model, *firsts))


def added(method: ModuleType, std: float, seed: int = 3) -> Tensor:
    """Return by how much a run of three rounds with noise ends beside one with the same draws and without [d]."""
    task = trained_by(federation=make_federation(seed=seed))
    if method is noise:
        found = states_of(noise, task, std=std)
        assert torch.equal(found[0].theta, task.original_model)
        assert task.federation.cost == Cost()
        return found[-1].theta - task.original_model
    params = {"share": 0.0} if method is retrain_partly else {"repeat": 1}
    *found, last = (state.theta for state in states_of(method, task, noise_std=std, **params))
    *expected, alone = (state.theta for state in states_of(method, task, **params))
    assert all(map(torch.equal, found, expected))  # once, after the last round
    difference: Tensor = last - alone
    return difference


@pytest.mark.parametrize("method", [noise, retrain, retrain_partly], ids=lambda method: method.__name__)
def test_noise_has_its_standard_deviation_after_the_last_round_and_every_seed_its_own(method: ModuleType) -> None:
    found = added(method, 0.5)
    assert len(found) == 682  # 64 x 8 + 8, 8 x 8 + 8, 8 x 10 + 10: standard errors of .019 and .014
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 0.5) < 0.04
    torch.testing.assert_close(found, 5 * added(method, 0.1), rtol=0, atol=1e-5)
    task = make_task(rounds=1, histories={"update_sums": {"sums": torch.zeros(3, 682), "weight": torch.ones(1)}})
    theirs = states_of(fedrecovery, task, noise_std=1.0)[-1].theta - task.original_model
    independent = [found, added(method, 0.5, seed=4), *([] if method is noise else [theirs])]
    assert torch.corrcoef(torch.stack(independent)).triu(1).abs().max() < 0.15


# ---- retraining ----------------------------------------------------------------------------------------------------


def test_retraining_starts_from_a_model_of_its_own_and_its_seed() -> None:
    again = retrain.start(trained_by(), params_of(retrain)).theta
    assert torch.equal(again, initial_parameters(builder(), 3, "model", "retrained"))
    assert not torch.equal(again, make_task(trained=False).first_model())


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_retraining_trains_the_retained_clients_as_the_scenario_trains(weights: str) -> None:
    task, theta = trained_by(client_weights=weights), make_task().original_model
    delta = make_federation().local_updates(theta, [0, 2], 1).delta
    share = torch.tensor([7.0, 9.0] if weights == "samples" else [1.0, 1.0])
    found = retrain.step(task, params_of(retrain), State(theta), 1).theta
    torch.testing.assert_close(found, theta + (share / share.sum()) @ delta, rtol=1e-5, atol=1e-6)


def test_repeat_0_is_the_training_itself_and_others_begin_and_end_apart_at_the_same_cost() -> None:
    assert torch.equal(states_of(retrain, trained_by())[-1].theta, states_of(fedavg, trained_by())[-1].theta)
    tasks = [trained_by(federation=make_federation(seed=seed)) for seed in (3, 3, 3, 4)]
    runs = [states_of(retrain, task, repeat=k) for task, k in zip(tasks, (0, 1, 2, 1), strict=True)]
    for place in (0, -1):
        assert len(torch.unique(torch.stack([run[place].theta for run in runs]), dim=0)) == 4
    assert tasks[0].federation.cost == tasks[1].federation.cost
    assert tasks[0].federation.cost.client_rounds == 3 * 2


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
    task = trained_by("fats", make_federation(local_epochs=None, local_steps=2, batch_size=3))
    task = replace(task, clients_per_round=2, with_replacement=True)

    def stepped(own: Task, repeat: int) -> Tensor:
        theta: Tensor = retrain.step(own, params_of(retrain, repeat=repeat), State(task.original_model), 0).theta
        return theta

    shared = [stepped(task, k) for k in (0, 1, 2, 0)]
    assert all(map(torch.equal, shared, [stepped(replace(task, memory={}), k) for k in (0, 1, 2, 0)]))
    assert len(torch.unique(torch.stack(shared), dim=0)) == 3


# ---- in part -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_mixed_with_the_original_it_is_the_weighted_mean_after_the_last_round(weight: float) -> None:
    task = trained_by()
    *found, last = (state.theta for state in states_of(retrain_mixed, task, weight=weight))
    *alone, end = (state.theta for state in states_of(retrain, task, repeat=retrain_mixed.DRAWS))
    assert all(map(torch.equal, found, alone))
    assert torch.equal(last, weight * task.original_model + (1 - weight) * end)


@pytest.mark.parametrize(("period", "idle"), [(4, [0, 4, 8]), (1, [*range(10)])])
def test_of_the_lottery_one_run_in_each_period_does_nothing_and_others_are_retrained(
    period: int, idle: list[int]
) -> None:
    for seed in range(10):
        task = trained_by(federation=make_federation(seed=seed))
        theta = states_of(lottery, task, 2, period=period)[-1].theta
        assert (task.federation.cost == Cost()) == (seed in idle)
        alone = states_of(retrain, task, 2, repeat=lottery.DRAWS)[-1].theta
        assert torch.equal(theta, task.original_model if seed in idle else alone)


PART = make_partition((7, 12, 9), trigger=False)
GONE = PART.train[1]


def with_broken(broken: Indices = GONE[:0], seed: int = 3) -> Task:
    """Return a task whose client 1 is to be forgotten; some of its samples are no numbers."""
    clean = make_data(PART, asked=[1])
    x = clean.x.clone()
    x[broken] = torch.nan
    data = ClientData(x, clean.y, PART, CLASSES, "all", None, clean.request)
    return trained_by(federation=make_federation(data, seed=seed))


def partly(task: Task, share: float, rounds: int = 2) -> Tensor:
    found: Tensor = states_of(retrain_partly, task, rounds, share=share)[-1].theta
    return found


def left_in(share: float, seed: int = 3) -> list[int]:
    """Return the forgotten samples that training reads: one at a time is no number."""
    return [row for row in GONE.tolist() if partly(with_broken(np.array([row]), seed), share, 1).isnan().any()]


@pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.01, 1), (0.25, 3), (0.26, 4), (1.0, 12)])
def test_a_share_of_the_forgotten_samples_is_left_in_rounded_up(share: float, number: int) -> None:
    assert len(left_in(share)) == number


def test_every_run_draws_what_is_left_in_and_more_of_it_contains_less() -> None:
    assert len({tuple(left_in(0.25, seed)) for seed in range(4)}) == 4
    assert {*left_in(0.25)} < {*left_in(0.5)}


@pytest.mark.parametrize(("share", "forgotten"), [(0.0, []), (1.0, [1])])
def test_at_its_ends_it_is_one_more_training_of_those_who_stay_and_of_all(share: float, forgotten: list[int]) -> None:
    again = replace(with_broken().repeated(retrain_partly.DRAWS), original=None, forgotten=forgotten)
    assert torch.equal(partly(with_broken(), share), states_of(fedavg, again, 2)[-1].theta)


def test_clients_that_stay_train_on_all_that_they_hold() -> None:
    for row in (*PART.train[0].tolist(), *PART.train[2].tolist()):
        assert partly(with_broken(np.array([row])), 0.25, 1).isnan().any()
