"""A model at any flat vector."""

import torch

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


def test_gradients_of_a_network_lie_in_one_vector() -> None:
    network = Network(builder()(), torch.device("cpu"))
    network.weights.copy_(random(network.layout.size))
    network.model(random(4, 1, 8, 8)).sum().backward()
    named = {name: p.grad for name, p in network.model.named_parameters() if p.grad is not None}
    assert torch.equal(network.layout.flatten(named), network.gradient)
    assert network.gradient.norm() > 0
    assert not network.model.training
