"""LEAF's CNN: its published size, its layers, and the normalisation of its inputs."""

import torch
from torch import nn

from fu.federation.flat import Layout
from tests.factories import GREY, builder


def test_the_cnn_has_its_published_number_of_parameters() -> None:
    net = builder("leaf_cnn", GREY)()
    # 32 x 25 + 32, 64 x 32 x 25 + 64, 2048 x 64 x 49 + 2048, and 2048 + 1 for each class
    assert Layout(net).size == 832 + 51_264 + 6_424_576 + 10 * 2049
    assert [type(layer).__name__ for layer in net.children()] == [
        "Normalised",
        *(["Conv2d", "MaxPool2d", "ReLU"] * 2),
        *("Flatten", "Linear", "ReLU", "Linear"),
    ]
    assert net[:7](torch.zeros(1, 1, 28, 28)).shape == (1, 64, 7, 7)  # type: ignore[index, operator]


def test_inputs_are_normalised_before_the_padding() -> None:
    torch.manual_seed(0)
    net = builder("leaf_cnn", GREY, mean=0.5, std=0.25)()
    first = net[1]  # type: ignore[index]
    assert isinstance(first, nn.Conv2d)
    x = torch.rand(2, 1, 28, 28)
    torch.testing.assert_close(net[:2](x), first((x - 0.5) * 4))  # type: ignore[index, operator]
