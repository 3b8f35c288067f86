"""Auxiliary heads: trained on wrong labels alone, on a hidden layer that stands still."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fu.evaluation import fresh_heads
from fu.federation.heads import head_mask
from fu.federation.local import generator
from fu.federation.task import Task
from fu.histories import auxiliary_heads
from tests.factories import CLASSES, make_data, make_federation, make_partition, make_task

RATE, GAMMA = 0.1, 0.9


def by_hand(task: Task, theta: Tensor, round: int, client: int, first: Tensor) -> Tensor:
    """Return a client's head [10 * 8 + 10] after its local epochs on wrong labels, from a first one."""
    weights, bias = first[: CLASSES * 8].view(CLASSES, 8).clone(), first[CLASSES * 8 :].clone()
    data = task.federation.data
    shift = torch.randint(1, CLASSES, (data.size(client),), generator=generator(task.seed, "wrong labels", client))
    images, labels = data.train(client)
    for x, y in task.federation.batches(client, round, None):
        hidden = fresh_heads.hidden(task.federation.network, theta, x)
        places = [int((images == one).flatten(1).all(1).nonzero()[0]) for one in x]
        assert torch.equal(labels[places], y)
        wrong = (y + shift[places]) % CLASSES
        assert (wrong != y).all()
        p = (hidden @ weights.T + bias).softmax(1) - F.one_hot(wrong, CLASSES)
        weights -= RATE * p.T @ hidden / len(y)
        bias -= RATE * p.mean(0)
    return torch.cat([weights.flatten(), bias])


@pytest.mark.parametrize(("trigger", "clients"), [(True, [1, 3]), (False, [0, 1, 2, 3])])
def test_two_rounds_by_hand(trigger: bool, clients: list[int]) -> None:
    """Only an attack says who will be forgotten; without one everybody has a head."""
    part = make_partition((7, 12, 9, 8), (1, 3), trigger=trigger)
    task = make_task(make_federation(make_data(part), lr=RATE, lr_decay=1.0))
    theta, later = task.original_model, task.original_model + 0.05
    mask = head_mask(task.federation.network)
    one = auxiliary_heads.record(task, {}, theta, 0)
    two = auxiliary_heads.record(task, one, later, 1)
    assert one["heads"].shape == (len(clients), CLASSES * 8 + CLASSES)
    for k, client in enumerate(clients):
        first = by_hand(task, theta, 0, client, theta[mask])
        torch.testing.assert_close(one["heads"][k], first, rtol=1e-4, atol=1e-5)
        mixed = (1 - GAMMA) * later[mask] + GAMMA * first
        torch.testing.assert_close(two["heads"][k], by_hand(task, later, 1, client, mixed), rtol=1e-4, atol=1e-5)
    cost = task.federation.cost
    assert cost.client_rounds == 2 * len(clients)
    assert cost.time_steps == 2 * 2 * 3  # two rounds of two epochs of the largest client's twelve samples, by fives
    assert (cost.bytes_up, cost.bytes_down) == (2 * len(clients) * (CLASSES * 8 + CLASSES) * 4, 0)


def test_what_is_known_of_a_round_stays_known() -> None:
    task = make_task()
    theta = task.original_model
    task.federation.local_updates(theta, [0, 2], 0)
    auxiliary_heads.record(task, {}, theta, 0)
    assert task.federation._known is not None
    assert task.federation._known[0] is theta
