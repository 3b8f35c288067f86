"""The gradient over all samples: torch's own, however it is cut into pieces."""

import pytest
import torch

from fu.federation import gradient
from tests.factories import make_federation
from tests.systems import random


@pytest.mark.parametrize("chunk", [1000, 5, 1])
@torch.no_grad()
def test_the_gradient_of_the_mean_loss_is_the_same_in_pieces_also_where_none_is_recorded(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient, "CHUNK", chunk)
    federation = make_federation()
    theta = random(federation.layout.size)
    x, y = federation.data.train(1)  # 12 samples: the last of five is cut short
    loss, found = gradient.loss_gradient(federation.network, theta, x, y)
    with torch.enable_grad():
        weights = theta.clone().requires_grad_()
        logits = torch.func.functional_call(federation.model, federation.layout.views(weights), (x,))
        mean = torch.nn.functional.cross_entropy(logits, y)
        (expected,) = torch.autograd.grad(mean, weights)
    assert loss == pytest.approx(mean.item(), rel=1e-5)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not found.requires_grad
