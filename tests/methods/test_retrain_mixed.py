"""Weights between the original model and a retrained one: retraining up to the last round, then a mean."""

from dataclasses import replace

import pytest
import torch

from fu.federation.plugged import training_of
from fu.methods import retrain, retrain_mixed
from fu.plugins import Choice
from tests.factories import make_task, params_of


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_after_the_last_round_it_is_the_weighted_mean(weight: float) -> None:
    task = replace(make_task(rounds=3), training=training_of(Choice(name="fedavg")))
    p, again = params_of(retrain_mixed, weight=weight), params_of(retrain, repeat=retrain_mixed.DRAWS)
    state, alone = retrain_mixed.start(task, p), retrain.start(task, again)
    for round in range(3):
        assert torch.equal(state.theta, alone.theta)
        state, alone = retrain_mixed.step(task, p, state, round), retrain.step(task, again, alone, round)
    expected = weight * task.original_model + (1 - weight) * alone.theta
    torch.testing.assert_close(state.theta, expected, rtol=0, atol=0)
