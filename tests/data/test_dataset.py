"""What is known of a data set by its name."""

import pytest

from fu.data.dataset import Dataset, about
from fu.datasets import cifar100
from fu.errors import UserError


def test_a_data_set_is_known_by_the_name_of_its_file() -> None:
    assert about("cifar100") is cifar100.ABOUT
    for name in ("minst", "../mnist"):
        with pytest.raises(UserError, match=rf"^there is no data set '{name}'; docs/data.md lists them\.$"):
            about(name)


def test_a_shape_of_neither_images_nor_text_is_refused() -> None:
    told = r"^shape must be \(height, width, channels\) of images or \(length,\) of text, got \(28, 28\)$"
    with pytest.raises(ValueError, match=told):
        Dataset((28, 28), 10, 100)
