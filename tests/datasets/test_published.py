"""The data sets: their published sizes, and that the embedded ones are as large as stated."""

from pathlib import Path

import pytest

from fu.data import sources
from fu.data.dataset import about
from fu.pipeline.provenance.catalogue import available


def test_data_sets_state_their_published_sizes() -> None:
    known = {name: about(name) for name in available("datasets")}
    assert {name: (facts.shape, facts.classes, facts.samples) for name, facts in known.items()} == {
        "mnist": ((28, 28, 1), 10, 70_000),
        "fashion_mnist": ((28, 28, 1), 10, 70_000),
        "cifar10": ((32, 32, 3), 10, 60_000),
        "cifar100": ((32, 32, 3), 100, 60_000),
        "femnist": ((28, 28, 1), 62, 811_586),
        "shakespeare": ((80,), 80, 3_678_451),
        "letters": ((80,), 26, 3_910),
        "digits": ((20, 20, 1), 10, 1_797),
        "digits_noisy": ((20, 20, 1), 10, 1_797),
        "digits_shifted": ((20, 20, 1), 10, 1_797),
        "digits_rgb": ((20, 20, 3), 10, 1_797),
        "digits_rgb_20": ((20, 20, 3), 20, 1_797),
    }


@pytest.mark.parametrize("name", [name for name in available("datasets") if about(name).embedded])
def test_embedded_data_have_the_number_of_samples_that_the_plan_counts_with(name: str) -> None:
    arrays, facts = sources.fetch(name, about(name), Path("nowhere")), about(name)
    train, total = len(arrays["y_train"]), len(arrays["y_train"]) + len(arrays["y_test"])
    assert (train, total) == (facts.training, facts.samples)
    if facts.owners:
        assert set(arrays["client_train"].tolist()) == set(arrays["client_test"].tolist()) == set(range(facts.owners))


def test_the_clients_of_naturally_federated_data_are_those_of_the_paper() -> None:
    found = {name: about(name).owners for name in available("datasets") if about(name).owners}
    assert found == {"femnist": 3_556, "shakespeare": 660, "letters": 40}
    shares = {name: (about(name).training or 0) / about(name).samples for name in found}
    assert shares == {"femnist": pytest.approx(0.9, 1e-5), "shakespeare": pytest.approx(0.8, 1e-5), "letters": 0.8}
