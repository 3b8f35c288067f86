"""A model: drawn by the seed, for any shape and number of classes, each sample by itself."""

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from fu import plugins
from fu.federation.flat import Layout, tensors_of
from tests.contract.names import plugins_of
from tests.factories import CLASSES, COLOUR, GREY, default_params

TEXT = (80,), (20,)


def reads_text(module: ModuleType) -> bool:
    return getattr(module, "TEXT", False)


def offline_params(module: ModuleType) -> Any:
    """Return the default hyper-parameters, but random weights where the default ones are to be downloaded."""
    p = default_params(module.Params)
    return p.model_copy(update={"weights": "random"}) if hasattr(p, "weights") else p


def samples(shape: tuple[int, ...]) -> Tensor:
    random = torch.Generator().manual_seed(0)
    if len(shape) == 1:
        return torch.randint(CLASSES, (2, *shape), generator=random)
    return torch.randn(2, shape[2], *shape[:2], generator=random)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", plugins_of("models"))
def test_a_model_takes_samples_to_outputs_and_is_drawn_by_the_seed(name: str, which: int) -> None:
    """`build` draws weights from torch's seed. For any shape and number of classes, the model gives one finite output
    for each class, and a sample's outputs do not depend on the rest of its batch.
    """
    module = plugins.load("models", name)
    p, shape = offline_params(module), (TEXT if reads_text(module) else (GREY, COLOUR))[which]
    nets = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        nets.append(module.build(shape, CLASSES, p).eval())
    one, same, other = (Layout(net).flatten(tensors_of(net)) for net in nets)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    x = samples(shape)
    y = nets[0](x)
    assert y.shape == (2, CLASSES)
    assert torch.isfinite(y).all()
    assert torch.equal(y, nets[0](x))
    torch.testing.assert_close(nets[0](x[:1]), y[:1])  # a sample does not see the others
    assert module.build(shape, 11, p)(x).shape == (2, 11)
