"""Post-training: a round of the retained clients, whose updates may be projected."""

import pytest
import torch
from torch import Tensor

from fu.federation import recovery
from fu.federation.local import aggregate
from fu.federation.task import State
from tests.factories import SIZES, make_federation, make_task
from tests.systems import random


@pytest.mark.parametrize("client_weights", ["samples", "equal"])
def test_a_post_training_round_averages_what_the_projection_leaves(client_weights: str) -> None:
    task = make_task()
    theta = task.original_model + 0.1 * random(task.original_model.numel(), seed=5)
    updates = make_federation().local_updates(theta, [0, 2], 4)
    plain = recovery.step(task, State(theta), 4, client_weights, None).theta
    assert torch.equal(plain, theta + aggregate(updates, client_weights))

    def second_only(at: Tensor, delta: Tensor) -> Tensor:
        assert at is theta
        return delta * torch.tensor([[0.0], [1.0]])

    found = recovery.step(task, State(theta), 4, client_weights, second_only).theta
    share = SIZES[2] / (SIZES[0] + SIZES[2]) if client_weights == "samples" else 0.5
    torch.testing.assert_close(found, theta + share * updates.delta[1])
