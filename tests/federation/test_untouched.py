"""Whose data are never read: an absent client's, and in retraining a forgotten client's."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.data.request import Request
from fu.federation.plugged import training_of
from fu.federation.task import Record, State, Task
from fu.methods import retrain
from fu.plugins import Choice
from tests.factories import CLASSES, KINDS, make_data, make_federation, make_partition, make_task
from tests.systems import states_of

ROUNDS = 6
PART = make_partition((7, 12, 9, 6, 8), trigger=False, absent=(3,), server=20)
TRAININGS = [Choice(name="fedavg"), Choice(name="safari", params={"q": 0.5}), Choice(name="server_sgd")]


class Locked(ClientData):
    """Clients' data of which some raise when they are touched."""

    def __init__(self, part: Partition, locked: Collection[int], request: Request | None = None) -> None:
        plain = make_data(part)
        super().__init__(plain.x, plain.y, part, CLASSES, "all", None, request)
        self.locked, self.touched = locked, set[int]()

    def train(self, client: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return a client's samples unless they are locked."""
        if client in self.locked:
            raise AssertionError(f"the data of client {client} were touched")
        self.touched.add(client)
        return super().train(client, rows)


def trained(task: Task, choice: Choice) -> Tensor:
    """Return the model after a few rounds, in which all histories are recorded."""
    training, record = training_of(choice), dict[str, Record]()
    state = training.start(task)
    for round in range(ROUNDS):
        theta = state.theta
        state = training.step(task, state, round)
        record = {kind: KINDS[kind](task, record.get(kind, {}), theta, round) for kind in KINDS}
    return state.theta


@pytest.mark.parametrize("per_round", [None, 2])
@pytest.mark.parametrize("choice", TRAININGS, ids=lambda choice: choice.name)
def test_no_training_and_no_history_touches_an_absent_clients_data(choice: Choice, per_round: int | None) -> None:
    data = Locked(PART, {3})
    task = make_task(make_federation(data, stream="training"), trained=False)
    assert torch.isfinite(trained(replace(task, clients_per_round=per_round), choice)).all()
    assert data.touched == {0, 1, 2, 4}  # the histories' doing, where the training has no clients


def test_retraining_is_what_training_without_the_forgotten_client_would_be() -> None:
    """With the retained clients alone as those who take part, from retraining's own model, in its own stream."""
    asked = make_task(make_federation(Locked(PART, {3, 1}, Request(np.array([1])))))
    asked = replace(asked, clients_per_round=2, training=training_of(TRAININGS[0]))
    alone = Locked(replace(PART, absent=np.array([1, 3])), {3, 1})
    task = replace(make_task(make_federation(alone), trained=False), clients_per_round=2)
    state: State = State(asked.first_model())
    for round in range(3):
        state = training_of(TRAININGS[0]).step(task, state, round)
    assert torch.equal(states_of(retrain, asked)[-1].theta, state.theta)
