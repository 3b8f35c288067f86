"""A model at any flat vector theta [d]: what training and evaluation share."""

import torch
from torch import Tensor, nn

from fu.federation.flat import Layout


class Network:
    """A model whose parameters are views of one vector `weights` [d], and their gradients of `gradient` [d]."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        """Move the model to the device and bind it."""
        self.model = model.to(device).eval()
        self.device = device
        self.layout = Layout(model)
        self.weights = torch.zeros(self.layout.size, device=device)
        self.gradient = torch.zeros_like(self.weights)
        self.layout.bind(self.model, self.weights, self.gradient)

    @torch.no_grad()
    def logits(self, theta: Tensor, x: Tensor, batch: int = 1000) -> Tensor:
        """Return the model's outputs [n, C] at theta for images [n, c, h, w]."""
        self.weights.copy_(theta)
        return torch.cat([self.model(piece) for piece in x.split(batch)])
