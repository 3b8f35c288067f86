"""A fixed model beside one that trains."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from fu.federation.local import Federation


def predictor(federation: Federation, theta: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what gives the logits [n, C] of the model theta [d] for a batch, also within another model's training.

    Without dropout, and with none of its draws.
    """
    views = federation.layout.views(theta)

    @torch.no_grad()
    def logits(x: Tensor) -> Tensor:
        training = federation.model.training
        federation.model.eval()
        found: Tensor = functional_call(federation.model, views, (x,))
        federation.model.train(training)
        return found

    return logits
