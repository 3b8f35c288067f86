"""FedAvg: the mean of those who take part, on data of which a share is marked."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fu.federation.task import State
from fu.training import fedavg
from tests.factories import MARK, SIZES, make_data, make_federation, make_partition, make_task, params_of


def mean_update(theta: Tensor, clients: list[int], client_weights: str) -> Tensor:
    """Return theta plus the weighted mean update of clients in round 1."""
    delta = make_federation().local_updates(theta, clients, 1).delta
    sizes = [SIZES[client] if client_weights == "samples" else 1 for client in clients]
    return theta + sum(size * row for size, row in zip(sizes, delta, strict=True)) / sum(sizes)


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
def test_a_round_adds_the_mean_update_of_all_clients(client_weights: str) -> None:
    task, p = make_task(trained=False), params_of(fedavg, client_weights=client_weights)
    theta = task.first_model()
    found = fedavg.step(task, p, State(theta), 1).theta
    torch.testing.assert_close(found, mean_update(theta, [0, 1, 2], client_weights), rtol=1e-5, atol=1e-6)
    assert task.federation.cost.client_rounds == 3


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
@pytest.mark.parametrize(
    ("with_replacement", "number", "seed", "drawn"), [(False, 2, 6, [1, 2]), (True, 3, 2, [0, 0, 1])]
)
def test_a_round_adds_the_mean_update_of_those_drawn_and_one_drawn_twice_counts_twice(
    client_weights: str, with_replacement: bool, number: int, seed: int, drawn: list[int]
) -> None:
    task = make_task(trained=False)
    task = replace(task, clients_per_round=number, with_replacement=with_replacement, seed=seed)
    theta, p = task.first_model(), params_of(fedavg, client_weights=client_weights)
    assert task.participants(1) == drawn
    found = fedavg.step(task, p, State(theta), 1).theta
    torch.testing.assert_close(found, mean_update(theta, drawn, client_weights), rtol=1e-5, atol=1e-6)
    assert task.federation.cost.client_rounds == 2  # one that is drawn twice trains and sends once


@pytest.mark.parametrize(("poison", "marked"), [("share", 8), ("all", 10)])
def test_training_marks_eighty_percent_of_the_targets_samples(poison: Any, marked: int) -> None:
    part = make_partition((5, 10, 5))
    data = make_data(part, poison=poison)
    federation = make_federation(data, local_epochs=1)
    images: list[Tensor] = []
    federation.model.register_forward_pre_hook(lambda _, inputs: images.append(inputs[0].clone()))
    task = make_task(federation, trained=False)
    fedavg.step(task, params_of(fedavg), State(task.first_model()), 0)
    corner = torch.cat(images)[:, 0, 5:7, 5:7]  # 2 x 2 pixels, one pixel from the border
    triggered = (corner == MARK)[:, torch.tensor([[True, False], [True, True]])].all(1)
    assert len(corner) == 20
    assert int(triggered.sum()) == marked
    assert int(triggered[5:15].sum()) == marked  # all of them the target's
