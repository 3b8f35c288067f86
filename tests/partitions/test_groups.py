"""Groups: two of them, as far apart as alpha says, equal inside, as large as the smallest class."""

import numpy as np
import pytest

from fu.partitions import groups
from fu.partitions.groups import Params

CLASSES, CLIENTS = 10, 10
SIZES, SMALLEST = np.array([600, 640, 700, 530, 610, 580, 560, 660, 620, 590]), 3
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(CLASSES), SIZES))


def counts(p: Params, seed: int = 0) -> np.ndarray:
    """Return how many samples of each class a client holds: [clients, classes]."""
    pools = groups.deal(LABELS, CLASSES, CLIENTS, p, np.random.default_rng(seed))
    rows = np.concatenate(pools)
    assert len(np.unique(rows)) == len(rows)  # nobody shares a sample
    return np.stack([np.bincount(LABELS[pool], minlength=CLASSES) for pool in pools])


class SameClass(np.random.Generator):
    """Draws proportions that are all of the smallest class."""

    def dirichlet(self, alpha: np.ndarray, size: int) -> np.ndarray:  # type: ignore[override]
        return np.eye(len(alpha))[[SMALLEST] * size]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.4, 0.7, 50])
def test_clients_hold_the_same_number_whatever_alpha_and_the_draw(alpha: float, seed: int) -> None:
    """The smallest class has 530 samples: 201 (.38) for four clients, 329 for six."""
    held = counts(Params(alpha=alpha), seed)
    assert held.sum(1).tolist() == [51, 50, 50, 50, 55, 55, 55, 55, 55, 54]


def test_two_groups_that_want_the_same_class_alone_find_enough() -> None:
    pools = groups.deal(LABELS, CLASSES, CLIENTS, Params(), SameClass(np.random.PCG64(0)))
    assert (LABELS[np.concatenate(pools)] == SMALLEST).all()
    assert len(np.unique(np.concatenate(pools))) == 530


def test_clients_of_a_group_hold_the_same() -> None:
    held = counts(Params(alpha=0.7))
    for group in (held[:4], held[4:]):
        assert (np.ptp(group, 0) <= 1).all()
        assert np.ptp(group.sum(1)) <= 1  # what cannot be shared equally goes round


def test_two_groups_are_two_draws_of_the_dirichlet_distribution() -> None:
    held = counts(Params(alpha=0.7, first=3, share=0.5), seed=4)
    drawn = np.random.default_rng(4).dirichlet(np.full(CLASSES, 0.7), 2)
    for group, proportions in zip((held[:3], held[3:]), drawn, strict=True):
        np.testing.assert_allclose(group.sum(0) / group.sum(), proportions, atol=0.003)


def test_a_test_set_dealt_by_the_same_generator_has_the_same_proportions() -> None:
    p, few = Params(alpha=0.4), LABELS[::6]
    train = counts(p)
    test = groups.deal(few, CLASSES, CLIENTS, p, np.random.default_rng(0))
    own = np.stack([np.bincount(few[pool], minlength=CLASSES) for pool in test])
    for part, other in ((train[:4], own[:4]), (train[4:], own[4:])):
        np.testing.assert_allclose(part.sum(0) / part.sum(), other.sum(0) / other.sum(), atol=0.03)


def test_one_group_is_none() -> None:
    with pytest.raises(ValueError, match="first: must be below the number of clients, 4, got 4"):
        groups.check(4, CLASSES, Params())
