"""The gradient of a model's loss over all samples of a client, which no training takes."""

import torch
from torch import Tensor

from fu.federation.losses import cross_entropy
from fu.federation.network import Network

CHUNK = 1000  # samples whose gradient is taken at once


@torch.enable_grad()
def loss_gradient(network: Network, theta: Tensor, x: Tensor, y: Tensor) -> tuple[float, Tensor]:
    """Return the mean cross-entropy over images [n, c, h, w] (or text [n, length]) at theta, and its gradient [d].

    Running statistics are taken as they are, and their places in the gradient are zero.
    """
    total, gradient = 0.0, torch.zeros_like(theta)
    trained = {name: weight for name, weight in network.model.named_parameters() if weight.requires_grad}
    views = network.layout.views(gradient)
    network.weights.copy_(theta)
    for part_x, part_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
        loss = cross_entropy(network.model(part_x), part_y).sum() / len(y)
        parts = torch.autograd.grad(loss, [*trained.values()], materialize_grads=True)
        for name, part in zip(trained, parts, strict=True):
            views[name].add_(part)
        total += loss.item()
    return total, gradient
