"""FedAU: which numbers it replaces, and by what."""

import pytest
import torch
from torch import nn

from fu.errors import UserError
from fu.methods import fedau
from tests.factories import CLASSES, make_task, params_of
from tests.systems import forgetting_two, random, states_of

HEAD = CLASSES * 8 + CLASSES


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("everybody", [False, True])
def test_the_head_is_mixed_with_the_mean_auxiliary_head_and_nothing_else_changes(
    rounds: int, alpha: float, everybody: bool
) -> None:
    heads = random(4 if everybody else 2, HEAD)
    task = make_task(forgetting_two(), histories={"auxiliary_heads": {"heads": heads}}, rounds=rounds)
    original, *_, found = (state.theta for state in states_of(fedau, task, alpha=alpha))
    assert torch.equal(original, task.original_model)
    mean = (heads[1] + heads[3]) / 2 if everybody else (heads[0] + heads[1]) / 2
    torch.testing.assert_close(found[-HEAD:], (1 - alpha) * original[-HEAD:] + alpha * mean)
    assert torch.equal(found[:-HEAD], original[:-HEAD])
    assert set(task.federation.cost.record().values()) == {0}


def test_a_model_without_a_fully_connected_layer_is_refused() -> None:
    with pytest.raises(UserError, match="fedau needs a model with a fully connected layer"):
        fedau.check(nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten()), params_of(fedau))
    fedau.check(nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten(), nn.Linear(3, 10)), params_of(fedau))
