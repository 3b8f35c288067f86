"""FATS's unlearning as its authors' code has it: where it begins, what follows, and that it is not exact."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.request import Request
from fu.federation.local import aggregate
from fu.federation.sampled import drawn, places_of
from fu.federation.sampled import trained as trained_on
from fu.federation.sampling import Named, Shape, begin
from fu.federation.task import State, Task
from fu.methods import fats_as_published as method
from fu.training import fats
from fu.training import fats_as_published as training
from tests.federation.enumeration import Fixed, Outcome, System, distance, gathered, law
from tests.federation.enumeration import drawn as draw_of
from tests.training.test_fats import NONE, PART, firsts, keeping, task_of

ROUNDS, LEFT = 6, 3


def unlearning(folder: Path, request: Request) -> tuple[Task, list[Tensor]]:
    """Return the task, and the model before each round of training and after the last."""
    task = task_of(momentum=0.9, kept=keeping(folder, 4))
    states = [training.start(task, training.Params())]
    for round in range(ROUNDS):
        states.append(training.step(task, training.Params(), states[-1], round))
    thetas = [state.theta for state in states]
    left = task_of(request, momentum=0.9, original=thetas[-1], kept=task.kept)
    return replace(left, rounds=LEFT), thetas


def test_it_begins_before_the_first_round_of_a_client_and_rebuilds_that_model(tmp_path: Path) -> None:
    client = next(client for client, first in firsts().items() if first in (1, 2, 3, 5))  # none of these is kept
    task, thetas = unlearning(tmp_path, Request(np.array([client])))
    begun = method.start(task, method.Params())
    assert torch.equal(begun.theta, thetas[firsts()[client] or 0])
    assert task.federation.cost.time_steps == 0 < task.federation.cost.replayed


def test_of_two_clients_the_earlier_counts(tmp_path: Path) -> None:
    known = sorted((first, client) for client, first in firsts().items() if first is not None)
    (first, early), (_, late) = known[0], known[-1]
    task, thetas = unlearning(tmp_path, Request(np.sort([early, late])))
    assert torch.equal(method.start(task, method.Params()).theta, thetas[first])


def test_where_no_client_took_part_one_round_is_lost_all_the_same(tmp_path: Path) -> None:
    idle = next(client for client, first in firsts().items() if first is None)
    task, thetas = unlearning(tmp_path, Request(np.array([idle])))
    assert torch.equal(method.start(task, method.Params()).theta, thetas[ROUNDS - 1])


def test_the_rounds_left_are_the_trainings_on_new_draws_of_the_retained_clients(tmp_path: Path) -> None:
    task, _ = unlearning(tmp_path, Request(np.array([2])))
    state = method.start(task, method.Params())
    theta, rest = state.theta, [client for client in range(8) if client != 2]
    history = drawn(task, LEFT, rest, PART.train, "unlearning")
    assert [history.clients(k) for k in range(LEFT)] != [fats.history(task_of()).clients(k) for k in range(LEFT)]
    for round in range(LEFT):
        state = method.step(task, method.Params(), state, round)
        theta = trained_on(task, history, theta, round, distinct=True)
    assert torch.equal(state.theta, theta)
    assert task.federation.cost.forgotten_rounds == 0


def test_of_samples_their_clients_train_a_round_on_the_rest_and_then_take_no_part(tmp_path: Path) -> None:
    known = sorted((first, client) for client, first in firsts().items() if first is not None)
    (first, one), (_, two) = known[:2]
    samples = np.sort([PART.train[one][0], PART.train[two][3]])
    task, thetas = unlearning(tmp_path, Request(NONE, samples))
    assert method.concerned(task) == sorted([one, two])
    begun = method.start(task, method.Params()).theta
    data, asked = task.federation.data, sorted([one, two])
    places = places_of(task, drawn(task, 1, asked, data.rows, "unlearning of samples"), asked, 0)
    updates = task.federation.local_updates(thetas[first], asked, 0, rows=lambda client, step: places[client][step])
    assert updates.sizes.tolist() == [len(PART.train[client]) - 1 for client in asked]
    assert torch.equal(begun, thetas[first] + aggregate(updates, "samples"))
    method.step(task, method.Params(), State(begun), 0)
    assert task.memory["rest"].population.keys() == {*range(8)} - {one, two}


def program(system: System, left: int) -> Any:
    """Return what draws the rounds behind the program's model once client 0 is to be forgotten."""

    def draw(random: Named) -> Outcome:
        before = begin(system.population(), system.shape, random)
        after = begin(system.population([0]), system._replace(rounds=left).shape, random)
        first = method.restart(before, [0])
        kept = [draw_of(before, round) for round in range(first)]
        return (*kept, *(draw_of(after, round) for round in range(left)))

    return draw


def test_it_is_not_exact_as_two_clients_show() -> None:
    """Two clients, one a round, a request after one round of two: its model has had one round, a retrained one two."""
    system = System(clients=2, samples=1, per_round=1, rounds=1, steps=1, batch=1)
    found, wanted = gathered(program(system, 1)), law(system._replace(rounds=2).trained([0]))
    assert {len(outcome) for outcome in found} == {1}
    assert {len(outcome) for outcome in wanted} == {2}
    assert distance(found, wanted) == 1


def test_it_would_be_exact_if_what_lay_between_were_made_up() -> None:
    """With as many rounds as the training has from the restart on, the same draws have the law of retraining."""
    system = System(clients=3, samples=1, per_round=2, rounds=2, steps=1, batch=1)

    def whole(random: Named) -> Outcome:
        before = begin(system.population(), system.shape, random)
        taken = [before.first_round(0)]
        first = method.restart(before, [0]) if taken != [None] else system.rounds
        after = begin(system.population([0]), system.shape, random)
        kept = [draw_of(before, round) for round in range(first)]
        return (*kept, *(draw_of(after, round) for round in range(first, system.rounds)))

    assert distance(gathered(whole), law(system.trained([0]))) == 0


@pytest.mark.parametrize(("clients", "same"), [((2, 2), True), ((0, 2), True), ((0, 2, 2), False)])
def test_dropped_duplicates_change_the_model_from_three_draws_on(clients: tuple[int, ...], same: bool) -> None:
    """Clients 0 and 2 have 9 samples each. Algorithm 1 weights a client drawn twice of three times 2 / 3, not 1 / 2."""
    task = replace(task_of(momentum=0.9), clients_per_round=len(clients))
    shape = Shape(len(clients), ROUNDS, 4, 3)
    history = begin(dict(enumerate(PART.train)), shape, lambda *name: Fixed(*clients))
    theta = task.first_model()
    one, other = (trained_on(task, history, theta, 0, distinct=distinct) for distinct in (False, True))
    assert torch.allclose(one, other, rtol=0, atol=1e-6) is same
