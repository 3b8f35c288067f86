"""A data set: what is stated of it is sensible."""

import pytest

from fu.data import torchvision_import
from fu.data.dataset import about
from tests.contract.names import plugins_of


@pytest.mark.parametrize("name", plugins_of("datasets"))
def test_what_is_stated_of_a_data_set_is_sensible(name: str) -> None:
    """`ABOUT` is valid: 2 to 256 classes, sides of at least 8, 1 or 3 channels, means and deviations in [0, 1]."""
    facts = about(name)
    *sides, channels = (*facts.shape, 1) if facts.text else facts.shape
    assert len(sides) == (1 if facts.text else 2)
    assert min(sides) >= 8
    assert channels in (1, 3)
    assert facts.owners is None or 2 <= facts.owners <= facts.samples
    assert facts.training is None or facts.training < facts.samples
    assert 2 <= facts.classes <= 256  # labels are stored in a byte
    assert facts.samples > facts.classes
    assert len(facts.mean) == len(facts.std)
    assert len(facts.mean) in (1, channels)
    assert all(0 <= value <= 1 for value in facts.mean)
    assert all(0 < value <= 1 for value in facts.std)
    assert not (facts.torchvision and facts.embedded)


@pytest.mark.parametrize("name", plugins_of("datasets", lambda name: about(name).torchvision))
def test_what_downloads_a_data_set_exists(name: str) -> None:
    """`torchvision` names a class in torchvision.datasets."""
    assert hasattr(torchvision_import.datasets(), str(about(name).torchvision))
