"""What is known of a data set by its name."""

import re

import pytest

from fu.data.dataset import Dataset, about
from fu.datasets import cifar100
from fu.errors import UserError


def test_a_data_set_is_known_by_the_name_of_its_file() -> None:
    assert about("cifar100") is cifar100.ABOUT


@pytest.mark.parametrize("shape", [(28, 28), (), (1, 28, 28, 1)])
def test_a_shape_of_neither_images_nor_text_is_refused(shape: tuple[int, ...]) -> None:
    told = rf"^shape must be \(height, width, channels\) of images or \(length,\) of text, got {re.escape(str(shape))}$"
    with pytest.raises(ValueError, match=told):
        Dataset(shape, 10, 100)


@pytest.mark.parametrize("name", ["minst", "", "../mnist", "mnist.x"])
def test_an_unknown_data_set_is_told_in_one_sentence(name: str) -> None:
    with pytest.raises(UserError) as caught:
        about(name)
    assert str(caught.value) == f"there is no data set {name!r}; docs/data.md lists them."
