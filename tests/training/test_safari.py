"""SAFARI: rounds of the clients and rounds of the server, and what it is at both ends of q."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fu.federation.plugged import training_of
from fu.federation.task import Task, Training
from fu.plugins import Choice
from fu.training import safari
from tests.factories import make_data, make_federation, make_partition, make_task

PART = make_partition((7, 12, 9, 6, 8), absent=(3,), server=20, trigger=False)
FEDAVG = training_of(Choice(name="fedavg", params={"client_weights": "equal"}))
SERVER_SGD = training_of(Choice(name="server_sgd", params={"server_lr": 0.3}))
ROUNDS = 8


def safari_of(q: float) -> Training:
    return training_of(Choice(name="safari", params={"q": q, "server_lr": 0.3}))


def task_of(strategy: str = "sequential", **more: object) -> Task:
    federation = make_federation(make_data(PART), stream="training", strategy=strategy)
    task = make_task(federation, rounds=ROUNDS, trained=False)
    return replace(task, **{"clients_per_round": 2, "server": 13, **more})  # type: ignore[arg-type]


def trained(training: Training, task: Task) -> list[Tensor]:
    """Return the models before the first round and after each."""
    states = [training.start(task)]
    for round in range(ROUNDS):
        states.append(training.step(task, states[-1], round))
    return [state.theta for state in states]


@pytest.mark.parametrize(("q", "other"), [(1, FEDAVG), (0, SERVER_SGD)], ids=["clients", "server"])
def test_at_both_ends_of_q_it_is_fedavg_and_sgd_on_the_server_bit_for_bit(q: float, other: Training) -> None:
    one, two = task_of(), task_of()
    found = trained(safari_of(q), one)
    assert all(map(torch.equal, found, trained(other, two)))
    assert one.federation.cost == two.federation.cost
    assert len(torch.unique(torch.stack(found), dim=0)) == ROUNDS + 1


@pytest.mark.parametrize("with_replacement", [False, True])
@pytest.mark.parametrize("training", [FEDAVG, SERVER_SGD, safari_of(0.5)], ids=["fedavg", "server_sgd", "safari"])
def test_both_strategies_train_the_same_model(training: Training, with_replacement: bool) -> None:
    strategies = ("sequential", "vectorised")
    one, many = (trained(training, task_of(kind, with_replacement=with_replacement))[-1] for kind in strategies)
    assert (one - task_of().first_model()).norm() > 0.1
    torch.testing.assert_close(many, one, rtol=0, atol=2e-5)


def test_every_round_is_one_of_fedavg_or_of_the_server() -> None:
    """Each costs what it costs there: a round of the server sends nothing and counts no client."""
    task, training, kinds = task_of(), safari_of(0.5), []
    state = training.start(task)
    assert torch.equal(state.theta, task.first_model())
    for round in range(ROUNDS):
        of_clients = safari.is_client_round(task, 0.5, round)
        other, before = task_of(), task.federation.cost.record()
        expected = (FEDAVG if of_clients else SERVER_SGD).step(other, state, round)
        state = training.step(task, state, round)
        assert torch.equal(state.theta, expected.theta)
        spent = {name: value - before[name] for name, value in task.federation.cost.record().items()}
        assert spent == other.federation.cost.record()
        assert (spent["client_rounds"], spent["bytes_up"] > 0, spent["bytes_down"] > 0) == (
            2 * of_clients,
            of_clients,
            of_clients,
        )
        kinds.append(of_clients)
    assert set(kinds) == {True, False}


@pytest.mark.parametrize("q", [0.05, 0.1, 0.5, 0.9, 0.998])
def test_the_share_of_client_rounds_is_q_within_three_standard_errors(q: float) -> None:
    task, rounds = task_of(), 10_000
    share = sum(safari.is_client_round(task, q, round) for round in range(rounds)) / rounds
    assert abs(share - q) < 3 * math.sqrt(q * (1 - q) / rounds)


def test_a_round_says_nothing_about_the_next() -> None:
    task, rounds = task_of(), 10_000
    mine = [safari.is_client_round(task, 0.5, round) for round in range(rounds)]
    alike = sum(one == other for one, other in pairwise(mine)) / (rounds - 1)
    assert abs(alike - 0.5) < 3 * 0.5 / math.sqrt(rounds)


def test_whose_round_it_is_depends_on_seed_and_round_and_clients_keep_theirs_at_a_larger_q() -> None:
    def mine(q: float, **more: object) -> set[int]:
        return {round for round in range(200) if safari.is_client_round(task_of(**more), q, round)}  # type: ignore[arg-type]

    assert mine(0.1) < mine(0.5) < mine(0.9)
    assert mine(0.5) != mine(0.5, seed=4)
    assert mine(0) == set()
    assert mine(1) == set(range(200))
