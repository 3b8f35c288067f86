"""A partition: deals every sample at most once, gives every client samples, and is repeatable by the generator."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fu import plugins
from fu.data.partition import Indices
from tests.contract.names import plugins_of, runs
from tests.factories import CLASSES, default_params

CLIENTS, SAMPLES = 10, 2000
LABELS: NDArray[Any] = np.random.default_rng(1).integers(0, CLASSES, SAMPLES, dtype=np.uint8)


def dealt(name: str, labels: NDArray[Any] = LABELS, seed: int = 0) -> list[Indices]:
    module = plugins.load("partitions", name)
    p = default_params(module.Params)
    module.check(CLIENTS, CLASSES, p)
    found: list[Indices] = module.deal(labels, CLASSES, CLIENTS, p, np.random.default_rng(seed))
    return found


RUNNING = plugins_of("partitions", lambda name: runs("partitions", name))


@pytest.mark.parametrize("name", RUNNING)
def test_a_partition_deals_every_sample_at_most_once_and_every_client_some(name: str) -> None:
    """`deal` gives every client samples, and every sample to at most one client."""
    pools = dealt(name)
    assert len(pools) == CLIENTS
    assert all(len(pool) for pool in pools)
    every = np.concatenate(pools)
    assert np.issubdtype(every.dtype, np.integer)
    assert len(np.unique(every)) == len(every)
    assert set(every.tolist()) <= set(range(SAMPLES))


@pytest.mark.parametrize("name", RUNNING)
def test_a_partition_is_repeatable_by_the_generator_and_leaves_the_labels_unchanged(name: str) -> None:
    """`deal` is reproducible from its generator and does not modify the labels."""
    labels = LABELS.copy()
    one, two = dealt(name, labels), dealt(name, labels)
    assert [pool.tolist() for pool in one] == [pool.tolist() for pool in two]
    assert np.array_equal(labels, LABELS)
