"""Retraining with a share left in: which samples, drawn by each run; retraining and training at its ends."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Indices
from fu.federation.plugged import training_of
from fu.federation.task import Task
from fu.methods import retrain, retrain_partly
from fu.plugins import Choice
from fu.training import fedavg
from tests.factories import CLASSES, make_data, make_federation, make_partition, make_task, params_of

PART = make_partition((7, 12, 9), trigger=False)
GONE = PART.train[1]


def task_on(broken: Indices = GONE[:0], seed: int = 3) -> Task:
    """Return a task whose client 1 is to be forgotten; some of its samples are no numbers."""
    clean = make_data(PART, asked=[1])
    x = clean.x.clone()
    x[broken] = torch.nan
    data = ClientData(x, clean.y, PART, CLASSES, "all", None, clean.request)
    return replace(make_task(make_federation(data, seed=seed)), training=training_of(Choice(name="fedavg")))


def trained(task: Task, share: float, rounds: int = 2) -> Tensor:
    p = params_of(retrain_partly, share=share)
    state = retrain_partly.start(task, p)
    for round in range(rounds):
        state = retrain_partly.step(task, p, state, round)
    return state.theta


def left_in(share: float, seed: int = 3) -> list[int]:
    """Return the forgotten samples that training reads: one at a time is no number."""
    return [row for row in GONE.tolist() if not trained(task_on(np.array([row]), seed), share, 1).isfinite().all()]


@pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.01, 1), (0.25, 3), (0.26, 4), (1.0, 12)])
def test_a_share_of_the_forgotten_samples_is_left_in_rounded_up(share: float, number: int) -> None:
    assert len(left_in(share)) == number


def test_every_run_draws_what_is_left_in_and_more_of_it_contains_less() -> None:
    assert left_in(0.25, seed=3) == left_in(0.25, seed=3)
    assert len({tuple(left_in(0.25, seed)) for seed in range(4)}) == 4
    for seed in (3, 4):
        assert {*left_in(0.25, seed)} < {*left_in(0.5, seed)}


@pytest.mark.parametrize(("share", "forgotten"), [(0.0, []), (1.0, [1])])
def test_at_its_ends_it_is_one_more_training_of_those_who_stay_and_of_all(share: float, forgotten: list[int]) -> None:
    task, p = replace(task_on().repeated(retrain_partly.DRAWS), original=None, forgotten=forgotten), params_of(fedavg)
    state = fedavg.start(task, p)
    for round in range(2):
        state = fedavg.step(task, p, state, round)
    assert torch.equal(trained(task_on(), share), state.theta)


def test_its_draws_are_those_of_no_other_retraining() -> None:
    found = [trained(task_on(), 0.0, 0)]
    for repeat in range(3):
        task = task_on()
        found.append(retrain.start(task, params_of(retrain, repeat=repeat)).theta)
    assert len({tuple(theta.tolist()) for theta in found}) == 4


def test_clients_that_stay_train_on_all_that_they_hold() -> None:
    for row in (*PART.train[0].tolist(), *PART.train[2].tolist()):
        assert trained(task_on(np.array([row])), 0.25, 1).isnan().any()


def test_noise_is_added_once_after_the_last_round() -> None:
    task = replace(task_on(), rounds=2)
    plain, noisy = params_of(retrain_partly, share=0.0), params_of(retrain_partly, share=0.0, noise_std=0.5)
    state = retrain_partly.step(task, plain, retrain_partly.start(task, plain), 0)
    assert torch.equal(retrain_partly.step(task, noisy, retrain_partly.start(task, noisy), 0).theta, state.theta)
    more = retrain_partly.step(task, noisy, state, 1).theta - retrain_partly.step(task, plain, state, 1).theta
    assert more.std().item() == pytest.approx(0.5, rel=0.1)
    other = replace(task_on(seed=4), rounds=2, seed=4)
    again = retrain_partly.step(other, noisy, state, 1).theta - retrain_partly.step(other, plain, state, 1).theta
    assert not torch.allclose(more, again)  # each run draws its own
