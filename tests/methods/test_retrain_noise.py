"""Retraining with noise: that of the same draws, and the noise after its last round."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fu.federation.plugged import training_of
from fu.methods import fedrecovery, retrain
from fu.plugins import Choice
from tests.factories import make_federation, make_task, params_of


def added(std: float, seed: int = 3) -> Tensor:
    """Return by how much a run ends beside the retraining of the same draws [d]."""
    task = replace(make_task(make_federation(seed=seed)), training=training_of(Choice(name="fedavg")))
    p, again = params_of(retrain, repeat=1, noise_std=std), params_of(retrain, repeat=1)
    state, alone = retrain.start(task, p), retrain.start(task, again)
    for round in range(task.rounds):
        assert torch.equal(state.theta, alone.theta)
        state, alone = retrain.step(task, p, state, round), retrain.step(task, again, alone, round)
    return state.theta - alone.theta


def test_noise_of_the_standard_deviation_is_added_after_the_last_round() -> None:
    found = added(0.5)
    assert len(found) == 682  # standard errors of mean and deviation: .019 and .014
    assert abs(found.mean()) < 0.06
    assert abs(found.std() - 0.5) < 0.04
    assert not added(0.0).any()


def test_every_seed_has_noise_of_its_own_and_none_that_fedrecovery_draws() -> None:
    task = make_task(rounds=1, histories={"update_sums": {"sums": torch.zeros(3, 682), "weight": torch.ones(1)}})
    p = params_of(fedrecovery, noise_std=1.0)
    theirs = fedrecovery.step(task, p, fedrecovery.start(task, p), 0).theta - task.original_model
    assert theirs.std() == pytest.approx(1, abs=0.1)
    assert torch.corrcoef(torch.stack([added(1.0), added(1.0, seed=4), theirs])).triu(1).abs().max() < 0.15
