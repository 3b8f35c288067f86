"""The original model with noise: how much, from which draws, at no cost."""

import pytest
import torch
from torch import Tensor

from fu.federation.local import Cost
from fu.methods import noise
from tests.factories import make_federation, make_task, params_of


def added(std: float, rounds: int = 1, seed: int = 3) -> Tensor:
    """Return what is added to the original model [d]."""
    task, p = make_task(make_federation(seed=seed), rounds=rounds), params_of(noise, std=std)
    state = noise.start(task, p)
    assert torch.equal(state.theta, task.original_model)
    for round in range(rounds):
        state = noise.step(task, p, state, round)
    assert task.federation.cost == Cost()
    return state.theta - task.original_model


@pytest.mark.parametrize("rounds", [1, 4])
def test_all_rounds_together_add_noise_of_the_standard_deviation(rounds: int) -> None:
    found = added(0.5, rounds)
    assert len(found) == 682  # 64 x 8 + 8, 8 x 8 + 8, 8 x 10 + 10: standard errors of .019 and .014
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 0.5) < 0.04


def test_twice_as_much_is_the_same_noise_twice_and_every_seed_has_its_own() -> None:
    torch.testing.assert_close(added(0.2), 2 * added(0.1), rtol=0, atol=1e-6)
    assert abs(torch.corrcoef(torch.stack([added(1.0), added(1.0, seed=4)]))[0, 1]) < 0.15
