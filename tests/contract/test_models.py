"""A model: drawn by the seed, for any shape and number of classes, each sample by itself."""

import pytest
import torch

from fu import plugins
from fu.federation.flat import Layout
from tests.contract.names import plugins_of
from tests.factories import CLASSES, COLOUR, GREY, default_params


@pytest.mark.parametrize("shape", [GREY, COLOUR])
@pytest.mark.parametrize("name", plugins_of("models"))
def test_a_model_takes_images_to_outputs_and_is_drawn_by_the_seed(name: str, shape: tuple[int, int, int]) -> None:
    module = plugins.load("models", name)
    p = default_params(module.Params)
    nets = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        nets.append(module.build(shape, CLASSES, p).eval())
    one, same, other = (Layout(net).flatten(dict(net.named_parameters())) for net in nets)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    height, width, channels = shape
    x = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))
    y = nets[0](x)
    assert y.shape == (2, CLASSES)
    assert torch.isfinite(y).all()
    assert torch.equal(y, nets[0](x))
    torch.testing.assert_close(nets[0](x[:1]), y[:1])  # a sample does not see the others
    assert module.build(shape, 7, p)(x).shape == (2, 7)
