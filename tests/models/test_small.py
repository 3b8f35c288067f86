"""The small models: their published sizes, the CNN's dropout, and what the others compute by hand."""

import pytest
import torch
from torch import nn

from fu import plugins
from fu.federation.flat import Layout
from tests.factories import CLASSES, COLOUR, GREY, builder
from tests.systems import random


@pytest.mark.parametrize(
    ("model", "shape", "parameters"),
    [
        ("lenet5", GREY, 61_706),
        ("mlp", GREY, 478_410),
        ("mcmahan_cnn", GREY, 582_026),
        ("cnn", COLOUR, 797_962),
        ("leaf_cnn", GREY, 32 * 26 + 64 * (32 * 25 + 1) + 2048 * (64 * 49 + 1) + 10 * 2049),
        ("logistic", GREY, 7_850),
        ("logistic", COLOUR, 30_730),
    ],
)
def test_a_model_has_its_published_number_of_parameters(
    model: str, shape: tuple[int, int, int], parameters: int
) -> None:
    plugin = plugins.load("models", model)
    assert Layout(plugin.build(shape, CLASSES, plugin.Params())).size == parameters


def test_the_cnn_drops_out_after_its_hidden_layers() -> None:
    net = builder("cnn", COLOUR, dropout=(0.2, 0.5))()
    assert Layout(net).size == 797_962
    assert [layer.p for layer in net.modules() if isinstance(layer, nn.Dropout)] == [0.2, 0.5]
    kinds = [type(layer).__name__ for layer in net.children()]
    assert kinds == [*(["Conv2d", "MaxPool2d", "ReLU"] * 2), "Flatten", *(["Linear", "ReLU", "Dropout"] * 2), "Linear"]


def test_leafs_cnn_normalises_its_inputs_before_the_padding() -> None:
    torch.manual_seed(0)
    net = builder("leaf_cnn", GREY, mean=0.5, std=0.25)()
    x = torch.rand(2, 1, 28, 28)
    torch.testing.assert_close(net[:2](x), net[1]((x - 0.5) * 4))  # type: ignore[index, operator]


def test_logistic_regression_is_linear_in_the_pixels() -> None:
    net = builder("logistic", COLOUR)()
    x = random(4, 3, 32, 32)
    weight, bias = net.parameters()
    torch.testing.assert_close(net(x), x.flatten(1) @ weight.T + bias)
