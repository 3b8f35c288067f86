"""The head of a model: its last fully connected layer."""

import torch
from torch import Tensor, nn

from fu.federation.network import Network


def head_of(model: nn.Module) -> nn.Linear | None:
    """Return the linear layer that the model lists last, if it has one."""
    return next((layer for layer in reversed([*model.modules()]) if isinstance(layer, nn.Linear)), None)


def head_mask(network: Network) -> Tensor:
    """Return which of the model's numbers [d] are the head's weights and biases (bool); all false without a head."""
    mask, head = torch.zeros(network.layout.size, device=network.device), head_of(network.model)
    own = {id(parameter) for parameter in head.parameters()} if head else set()
    views = network.layout.views(mask)
    for name, parameter in network.model.named_parameters():
        if id(parameter) in own:
            views[name].fill_(1)
    return mask.bool()
