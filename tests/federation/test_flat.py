"""A model's parameters as one vector, and back."""

import pytest
import torch
from torch import nn

from fu.errors import UserError
from fu.federation.flat import Layout
from tests.factories import COLOUR, GREY, SMALL, builder


@pytest.mark.parametrize(("model", "shape"), [("mlp", SMALL), ("lenet5", GREY), ("cnn", COLOUR)])
def test_flat_vectors_and_named_tensors_convert_exactly(model: str, shape: tuple[int, int, int]) -> None:
    net = builder(model, shape)()
    layout = Layout(net)
    tensors = dict(net.named_parameters())
    theta = layout.flatten(tensors)
    assert theta.shape == (layout.size,)
    assert theta.dtype == torch.float32
    named = layout.named(theta)
    assert list(named) == list(tensors)
    assert all(torch.equal(named[name], tensors[name]) for name in tensors)
    assert all(value.is_contiguous() for value in named.values())
    assert torch.equal(layout.flatten(named), theta)
    views = layout.views(theta)
    assert all(torch.equal(views[name], tensors[name]) for name in tensors)
    assert all(view.untyped_storage().data_ptr() == theta.untyped_storage().data_ptr() for view in views.values())


def test_convolution_weights_lie_channels_last_in_the_vector() -> None:
    layout = Layout(nn.Sequential(nn.Conv2d(2, 3, (2, 4))))
    theta = torch.arange(layout.size, dtype=torch.float32)
    weight = layout.views(theta)["0.weight"]
    for o, i, h, w in [(0, 0, 0, 1), (0, 1, 0, 0), (1, 1, 1, 2), (2, 0, 1, 3)]:
        assert weight[o, i, h, w] == ((o * 2 + h) * 4 + w) * 2 + i
    assert torch.equal(layout.views(theta)["0.bias"], theta[-3:])


def test_views_of_many_vectors_are_the_views_of_each() -> None:
    layout = Layout(builder("lenet5", GREY)())
    thetas = torch.randn(2, 3, layout.size, generator=torch.Generator().manual_seed(0))
    together, alone = layout.views(thetas), layout.views(thetas[1, 2])
    assert all(torch.equal(together[name][1, 2], alone[name]) for name in layout.shapes)


def test_bind_makes_parameters_views_of_a_flat_vector() -> None:
    net = builder("lenet5", GREY)()
    layout = Layout(net)
    theta = torch.randn(layout.size)
    layout.bind(net, theta)
    assert torch.equal(layout.flatten(dict(net.named_parameters())), theta)
    theta.mul_(2)
    assert torch.equal(layout.flatten(dict(net.named_parameters())), theta)


def test_weights_of_another_model_are_refused_with_the_tensor_named() -> None:
    layout = Layout(builder(hidden=8)())
    other = dict(builder(hidden=9)().named_parameters())
    with pytest.raises(UserError, match=r"x\.safetensors.*'1\.bias' is \(9,\), expected \(8,\)"):
        layout.flatten(other, "x.safetensors")
    with pytest.raises(UserError, match=r"'1\.weight' is absent, expected \(8, 64\)"):
        layout.flatten({k: v for k, v in builder(hidden=8)().named_parameters() if k != "1.weight"})
