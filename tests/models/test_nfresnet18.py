"""NFResNet-18: its size, its standardised filters, and the variance of its channels."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fu.models import nfresnet18
from tests.factories import COLOUR
from tests.systems import random


@pytest.mark.parametrize(
    ("params", "parameters"), [({}, 11_215_332), ({"stem": 64, "widths": [128, 256]}, 2_650_852)], ids=["four", "two"]
)
def test_nfresnet18_has_its_number_of_parameters(params: dict[str, Any], parameters: int) -> None:
    with torch.device("meta"):
        net = nfresnet18.build(COLOUR, 100, nfresnet18.Params(**params))
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert not list(net.buffers())


def test_a_standardised_filter_has_mean_zero_and_the_norm_of_its_gain() -> None:
    layer = nfresnet18.Convolution(3, 5, 3)
    gains = torch.tensor([1.0, 0.5, 2.0, -1.5, 0.0])
    with torch.no_grad():
        layer.weight.mul_(4).add_(2)  # far from mean zero
        layer.gain.copy_(gains)
        impulses = torch.zeros(3, 3, 3, 3)
        impulses[range(3), range(3), 1, 1] = 1
        filters = layer(impulses).transpose(0, 1).flip(2, 3)  # [output, input, 3, 3]
    torch.testing.assert_close(filters.flatten(1).mean(1), torch.zeros(5), rtol=0, atol=1e-6)
    torch.testing.assert_close(filters.flatten(1).norm(dim=1), gains.abs(), rtol=1e-5, atol=1e-6)
    weight = layer.weight.detach().flatten(1)
    aligned = F.cosine_similarity(filters.flatten(1), weight - weight.mean(1, keepdim=True))
    torch.testing.assert_close(aligned, gains.sign(), rtol=1e-5, atol=1e-6)
    x = random(2, 3, 6, 6)
    torch.testing.assert_close(layer(x), F.conv2d(x, filters, padding=1), rtol=1e-4, atol=1e-5)


def test_a_block_divides_its_input_by_its_expected_standard_deviation() -> None:
    one, other = nfresnet18.Block(3, 5, 1, 0.2, 1.0), nfresnet18.Block(3, 5, 1, 0.2, 0.25)
    other.load_state_dict(one.state_dict())
    x = random(2, 3, 6, 6)
    torch.testing.assert_close(other(4 * x), one(x))
    assert (other(x) - one(x)).abs().max() > 0.1


def test_the_expected_variance_grows_with_every_block_and_starts_anew_where_the_width_changes() -> None:
    with torch.device("meta"):
        net = nfresnet18.build(COLOUR, 10, nfresnet18.Params(stem=16, widths=[16, 32, 64], alpha=0.5))
    variances = [block.beta**-2 for block in net.modules() if isinstance(block, nfresnet18.Block)]
    assert variances == pytest.approx([1, 1.25, 1.5, 1.25, 1.5, 1.25])


@pytest.mark.parametrize("widths", [[16, 32, 64, 128], [128, 256]], ids=["four", "two"])
def test_channels_keep_their_variance_through_the_blocks_of_nfresnet18(widths: list[int]) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nfresnet18.build(COLOUR, 10, nfresnet18.Params(stem=widths[0], widths=widths))
    assert isinstance(net, nn.Sequential)
    inner: list[Tensor] = []
    for block in net:
        if isinstance(block, nfresnet18.Block):
            block.second.register_forward_hook(lambda _, inputs, output: inner.append(output))
    seen, h = [], random(8, 3, 32, 32)
    with torch.no_grad():
        for block in net:
            h = block(h)
            if isinstance(block, nfresnet18.Block):
                seen.append(h.var(dim=(0, 2, 3)).mean().item())
    assert len(seen) == 2 * len(widths)
    assert all(0.5 < variance < 2 for variance in seen), seen
    branches = [part.var(dim=(0, 2, 3)).mean().item() for part in inner]
    assert all(0.5 < variance < 2 for variance in branches), branches
