"""McMahan et al.'s CNN without padding: its published size, and its layers."""

import torch

from fu.federation.flat import Layout
from tests.factories import GREY, builder


def test_the_cnn_has_its_published_number_of_parameters() -> None:
    net = builder("mcmahan_cnn", GREY)()
    assert Layout(net).size == 582_026
    assert [type(layer).__name__ for layer in net.children()] == [
        *(["Conv2d", "MaxPool2d", "ReLU"] * 2),
        *("Flatten", "Linear", "ReLU", "Linear"),
    ]
    assert net[:6](torch.zeros(1, 1, 28, 28)).shape == (1, 64, 4, 4)  # type: ignore[index, operator]
