"""The CNN: its size, and its dropout."""

from torch import nn

from fu.federation.flat import Layout
from tests.factories import COLOUR, builder


def test_the_cnn_has_its_number_of_parameters_with_and_without_dropout() -> None:
    for dropout in ((0.0, 0.0), (0.2, 0.5)):
        net = builder("cnn", COLOUR, dropout=dropout)()
        assert Layout(net).size == 797_962
        kinds = [type(layer).__name__ for layer in net.children()]
        assert [layer.p for layer in net.modules() if isinstance(layer, nn.Dropout)] == [p for p in dropout if p]
        hidden = ["Linear", "ReLU", "Dropout"] if any(dropout) else ["Linear", "ReLU"]
        assert kinds == [*(["Conv2d", "MaxPool2d", "ReLU"] * 2), "Flatten", *hidden, *hidden, "Linear"]
