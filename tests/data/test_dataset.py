"""What is known of a data set by its name."""

import pytest

from fu.data.dataset import about
from fu.datasets import cifar100
from fu.errors import UserError


def test_a_data_set_is_known_by_the_name_of_its_file() -> None:
    assert about("cifar100") is cifar100.ABOUT


@pytest.mark.parametrize("name", ["minst", "", "../mnist", "mnist.x"])
def test_an_unknown_data_set_is_told_in_one_sentence(name: str) -> None:
    with pytest.raises(UserError) as caught:
        about(name)
    assert str(caught.value) == f"there is no data set {name!r}; docs/data.md lists them."
