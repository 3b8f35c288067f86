"""A fixed model beside one that trains."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from fu.federation.local import Federation


def predictor(federation: Federation, theta: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function from a batch to the logits [n, C] of the fixed model theta [d].

    It may be called while another model trains. Dropout is off, and draws nothing.
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
