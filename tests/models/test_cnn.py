"""The CNN: its size, and its dropout."""

from torch import nn

from fu.federation.flat import Layout
from tests.factories import COLOUR, builder


def test_the_cnn_has_its_number_of_parameters_with_and_without_dropout() -> None:
    for dropout in ((0.0, 0.0), (0.2, 0.5)):
        net = builder("cnn", COLOUR, dropout=dropout)()
        assert Layout(net).size == 797_962
        shares = [layer.p for layer in net.modules() if isinstance(layer, nn.Dropout)]
        assert shares == ([0.2, 0.2, 0.5, 0.5] if any(dropout) else [])
