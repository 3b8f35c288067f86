"""FedAvg: the mean of the participating clients."""

from dataclasses import replace

import pytest
import torch

from fu.federation.task import State
from fu.training import fedavg
from tests.factories import SIZES, make_federation, make_task, params_of
from tests.systems import weighted_mean


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
@pytest.mark.parametrize(
    ("with_replacement", "number", "seed", "drawn"),
    [(False, None, 3, [0, 1, 2]), (False, 2, 6, [1, 2]), (True, 3, 2, [0, 0, 1])],
)
def test_a_round_adds_the_mean_update_of_those_drawn_and_one_drawn_twice_counts_twice(
    client_weights: str, with_replacement: bool, number: int | None, seed: int, drawn: list[int]
) -> None:
    task = make_task(trained=False)
    task = replace(task, clients_per_round=number, with_replacement=with_replacement, seed=seed)
    theta, p = task.first_model(), params_of(fedavg, client_weights=client_weights)
    assert task.participants(1) == drawn
    found = fedavg.step(task, p, State(theta), 1).theta
    sizes = [SIZES[client] if client_weights == "samples" else 1 for client in drawn]
    moved = weighted_mean(make_federation().local_updates(theta, drawn, 1).delta, sizes)
    torch.testing.assert_close(found, theta + moved, rtol=1e-5, atol=1e-6)
    assert task.federation.cost.client_rounds == len({*drawn})  # one that is drawn twice trains and sends once
