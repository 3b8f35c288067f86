"""FedAvg: a round of it, which retraining shares, on data of which a share is marked."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fu.federation.task import theta_of
from fu.methods import retrain
from fu.training import fedavg
from tests.factories import MARK, SIZES, make_data, make_federation, make_partition, make_task, params_of


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
@pytest.mark.parametrize(("plugin", "clients"), [(retrain, [0, 2]), (fedavg, [0, 1, 2])])
def test_a_round_of_federated_averaging_adds_the_mean_update(
    plugin: Any, clients: list[int], client_weights: str
) -> None:
    task = make_task()
    p = params_of(plugin, client_weights=client_weights)
    theta = task.original_model
    delta = make_federation().local_updates(theta, clients, 1).delta
    sizes = [SIZES[client] if client_weights == "samples" else 1 for client in clients]
    expected = theta + sum(size * row for size, row in zip(sizes, delta, strict=True)) / sum(sizes)
    torch.testing.assert_close(theta_of(plugin.step(task, p, {"theta": theta}, 1)), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("poison", "marked"), [("share", 8), ("all", 10)])
def test_training_marks_eighty_percent_of_the_targets_samples(poison: Any, marked: int) -> None:
    part = make_partition((5, 10, 5))
    data = make_data(part, poison=poison)
    federation = make_federation(data, local_epochs=1)
    images: list[Tensor] = []
    federation.model.register_forward_pre_hook(lambda _, inputs: images.append(inputs[0].clone()))
    task = make_task(federation)
    fedavg.step(task, params_of(fedavg), {"theta": task.original_model}, 0)
    corner = torch.cat(images)[:, 0, 5:7, 5:7]  # 2 x 2 pixels, one pixel from the border
    triggered = (corner == MARK)[:, torch.tensor([[True, False], [True, True]])].all(1)
    assert len(corner) == 20
    assert int(triggered.sum()) == marked
    assert int(triggered[5:15].sum()) == marked  # all of them the target's
