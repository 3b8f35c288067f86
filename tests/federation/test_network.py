"""A model at any flat vector."""

from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from fu.federation.network import Network
from tests.factories import GREY, builder
from tests.systems import random


def test_a_network_gives_the_models_outputs_at_any_vector_however_the_images_are_batched() -> None:
    network = Network(builder("lenet5", GREY)(), torch.device("cpu"))
    x = random(7, 1, 28, 28)
    for seed in (1, 2):
        theta = random(network.layout.size, seed=seed) / 10
        net = builder("lenet5", GREY)()
        net.load_state_dict(network.layout.named(theta))
        expected = net(x)
        for batch in (1, 3, 7, 1000):
            found = network.logits(theta, x, batch)
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
            assert not found.requires_grad


@pytest.mark.parametrize("model", ["mlp", "lenet5"])
def test_a_descent_moves_the_weights_by_the_rate_against_the_gradient(model: str) -> None:
    network = Network(builder(model, GREY)(), torch.device("cpu"))
    net = builder(model, GREY)()
    x, theta = random(4, 1, 28, 28), random(network.layout.size) / 10
    network.weights.copy_(theta)
    for factor in (1.0, 3.0):  # the second step's gradient holds nothing of the first's
        net.load_state_dict(network.layout.named(network.weights))
        net.zero_grad()
        (factor * net(x).square().sum()).backward()
        gradient = network.layout.flatten({name: p.grad for name, p in net.named_parameters() if p.grad is not None})
        expected = network.weights - 0.01 * gradient
        network.descend(factor * network.model(x).square().sum(), 0.01)
        assert gradient.norm() > 0.1
        torch.testing.assert_close(network.weights, expected, rtol=1e-5, atol=1e-6)
    assert not network.model.training


def test_a_regulariser_sees_weights_and_gradient_as_vectors_and_changes_the_gradient() -> None:
    network = Network(builder("lenet5", GREY)(), torch.device("cpu"))
    x, theta = random(4, 1, 28, 28), random(network.layout.size) / 10
    network.weights.copy_(theta)
    seen: list[Tensor] = []

    def turned(weights: Tensor, gradient: Tensor) -> None:
        assert torch.equal(weights, theta)
        seen.append(gradient.clone())
        gradient.neg_()

    network.descend(network.model(x).square().sum(), 0.25, turned)
    assert seen[0].norm() > 0.1
    assert torch.equal(network.weights, theta + 0.25 * seen[0])


class Partly(nn.Module):
    """A model that holds a layer back and does not use another."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.idle, self.last = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1)
        self.held.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.last(self.held(x)))


def raised(weights: Tensor, gradient: Tensor) -> None:
    assert not gradient[:12].any()  # of what is held back and of what is idle
    gradient.add_(1.0)


@pytest.mark.parametrize("regularise", [None, raised])
def test_what_is_held_back_or_not_used_gets_no_gradient(regularise: Callable[[Tensor, Tensor], None] | None) -> None:
    network = Network(Partly(), torch.device("cpu"))
    network.weights.copy_(random(network.layout.size))
    before = network.layout.named(network.weights.clone())
    network.descend(network.model(torch.ones(3, 2)).sum(), 0.5, *filter(None, [regularise]))
    moved = {name: value - before[name] for name, value in network.layout.named(network.weights).items()}
    assert not moved["held.weight"].any()
    torch.testing.assert_close(moved["idle.bias"], torch.full((2,), -0.5 if regularise else 0.0))
    torch.testing.assert_close(moved["last.bias"], torch.tensor([-1.5 - 0.5 * bool(regularise)]))
