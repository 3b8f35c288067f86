"""The data sets: their published sizes, and that the embedded ones are as large as stated."""

import pytest

from fu.data import sources
from fu.data.dataset import about
from fu.pipeline.catalogue import available


def test_data_sets_state_their_published_sizes() -> None:
    known = {name: about(name) for name in available("datasets")}
    assert {name: (facts.shape, facts.classes, facts.samples) for name, facts in known.items()} == {
        "mnist": ((28, 28, 1), 10, 70_000),
        "fashion_mnist": ((28, 28, 1), 10, 70_000),
        "cifar10": ((32, 32, 3), 10, 60_000),
        "cifar100": ((32, 32, 3), 100, 60_000),
        "digits": ((28, 28, 1), 10, 1_797),
        "digits_rgb": ((32, 32, 3), 10, 1_797),
    }


@pytest.mark.parametrize("name", [name for name in available("datasets") if about(name).embedded])
def test_embedded_digits_have_the_number_of_samples_that_the_plan_counts_with(name: str) -> None:
    arrays = sources.embedded(about(name))
    assert len(arrays["y_train"]) + len(arrays["y_test"]) == about(name).samples
