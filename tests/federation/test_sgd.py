"""Momentum, weight decay, local steps, batches that a caller gives and factors of losses, in both strategies."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fu.federation.local import Federation, LocalTraining
from tests.factories import SMALL, builder, make_data, make_federation, make_partition
from tests.federation.runs import by_torch, start_of

STRATEGIES = ["sequential", "vectorised"]
SIZES = (7, 12, 1)


def federation_of(strategy: str, **training: Any) -> Federation:
    return make_federation(make_data(make_partition(SIZES), SMALL), strategy=strategy, **training)


def plain(*args: Any, **kwargs: Any) -> Tensor:
    """Return the update of one client by torch's own SGD."""
    return by_torch(builder(), *args, **kwargs)[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "kwargs", [{"momentum": 0.9}, {"weight_decay": 0.3}, {"momentum": 0.8, "weight_decay": 0.2}], ids=str
)
def test_momentum_and_weight_decay_are_those_of_torch_in_every_round(strategy: str, kwargs: dict[str, float]) -> None:
    """The clients take 4, 6 and 2 steps: one that has finished must not drift. Momentum starts at zero each round."""
    federation = federation_of(strategy, **kwargs)
    theta = start_of(federation)
    without = federation_of(strategy).local_updates(theta, [0, 1, 2], 2).delta
    for round in (0, 2):
        found = federation.local_updates(theta, [0, 1, 2], round).delta
        for client in range(3):
            batches = list(federation.batches(client, round, None))
            expected = plain(federation, theta, batches, 0.1 * 0.9**round, **kwargs)
            torch.testing.assert_close(found[client], expected, rtol=0, atol=2e-6)
    assert ((found - without).norm(dim=1) > 1e-3).all()


def test_weight_decay_is_added_to_what_a_regulariser_has_left() -> None:
    federation = federation_of("sequential", weight_decay=0.5, local_epochs=None, local_steps=1)
    theta = start_of(federation)

    def replaced(weights: Tensor, gradient: Tensor) -> None:
        gradient.fill_(1.0)

    found = federation.local_updates(theta, [1], 0, regularise=replaced)
    torch.testing.assert_close(found.delta[0], -0.1 * (1 + 0.5 * theta), rtol=0, atol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_local_steps_stand_in_for_epochs(strategy: str) -> None:
    federation = federation_of(strategy, local_epochs=None, local_steps=3)
    theta = start_of(federation)
    found = federation.local_updates(theta, [0, 1, 2], 0)
    same = federation_of(strategy).local_updates(theta, [0, 1, 2], 0, steps=3)
    assert torch.equal(found.delta, same.delta)
    assert federation.cost.steps == 9
    assert federation.cost.samples == (5 + 2 + 5) + (5 + 5 + 2) + 3


@pytest.mark.parametrize(("epochs", "steps"), [(None, None), (1, 1)])
def test_either_epochs_or_steps_are_given(epochs: int | None, steps: int | None) -> None:
    with pytest.raises(ValueError, match="local_epochs, local_steps: set exactly one of them"):
        LocalTraining(lr=0.1, lr_decay=1.0, batch_size=5, local_epochs=epochs, local_steps=steps)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_caller_may_name_the_samples_of_every_step(strategy: str) -> None:
    schedule = {0: [[6, 1], [0, 2, 3]], 1: [[11], [11]], 2: [[0], [0]]}
    federation = federation_of(strategy)
    theta = start_of(federation)
    found = federation.local_updates(
        theta, [0, 1, 2], 0, steps=2, rows=lambda client, step: torch.tensor(schedule[client][step])
    )
    for client, steps in schedule.items():
        batches = [federation.data.train(client, torch.tensor(rows)) for rows in steps]
        torch.testing.assert_close(found.delta[client], plain(federation, theta, batches, 0.1), rtol=0, atol=1e-6)
    assert (federation.cost.steps, federation.cost.samples) == (6, 9)
    assert not torch.equal(found.delta, federation.local_updates(theta, [0, 1, 2], 0, steps=2).delta)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_factor_multiplies_the_loss_of_its_client_alone(strategy: str) -> None:
    """With momentum and weight decay, which take it in different ways."""
    kwargs = {"momentum": 0.7, "weight_decay": 0.1}
    federation = federation_of(strategy, **kwargs)
    theta = start_of(federation)
    usual = federation.local_updates(theta, [0, 1, 2], 0)
    found = federation.local_updates(theta, [0, 1, 2], 0, factors={1: 2.5})
    for client, factor in ((0, 1.0), (1, 2.5), (2, 1.0)):
        expected = plain(federation, theta, list(federation.batches(client, 0, None)), 0.1, factor, **kwargs)
        torch.testing.assert_close(found.delta[client], expected, rtol=0, atol=2e-6)
    assert (found.delta[1] - usual.delta[1]).norm() > 1e-2
