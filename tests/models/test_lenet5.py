"""LeNet-5: its size."""

from fu import plugins
from fu.federation.flat import Layout
from tests.factories import CLASSES, GREY


def test_lenet5_has_the_published_number_of_parameters() -> None:
    plugin = plugins.load("models", "lenet5")
    assert Layout(plugin.build(GREY, CLASSES, plugin.Params())).size == 61_706
