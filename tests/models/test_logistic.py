"""Logistic regression: its size, and the probabilities that it models."""

import pytest
import torch

from fu.federation.flat import Layout
from tests.factories import COLOUR, GREY, builder
from tests.systems import random


@pytest.mark.parametrize(("shape", "parameters"), [(GREY, 7_850), (COLOUR, 30_730)])
def test_logistic_regression_is_linear_in_the_pixels(shape: tuple[int, int, int], parameters: int) -> None:
    net = builder("logistic", shape)()
    assert Layout(net).size == parameters
    height, width, channels = shape
    x = random(4, channels, height, width)
    weight, bias = net.parameters()
    torch.testing.assert_close(net(x), x.flatten(1) @ weight.T + bias)
