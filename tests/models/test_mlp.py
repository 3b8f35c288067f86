"""The multilayer perceptron: its size."""

from fu import plugins
from fu.federation.flat import Layout
from tests.factories import CLASSES, GREY


def test_mlp_has_the_published_number_of_parameters() -> None:
    plugin = plugins.load("models", "mlp")
    assert Layout(plugin.build(GREY, CLASSES, plugin.Params())).size == 478_410
