"""Groups: two of them, as far apart as alpha says, equal inside, as large as the classes allow."""

import numpy as np
import pytest

from fu.partitions import groups
from fu.partitions.groups import Params

CLASSES, CLIENTS = 10, 10
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(CLASSES), 600))


def counts(p: Params, seed: int = 0) -> np.ndarray:
    """Return how many samples of each class a client holds: [clients, classes]."""
    pools = groups.deal(LABELS, CLASSES, CLIENTS, p, np.random.default_rng(seed))
    rows = np.concatenate(pools)
    assert len(np.unique(rows)) == len(rows)  # nobody shares a sample
    return np.stack([np.bincount(LABELS[pool], minlength=CLASSES) for pool in pools])


@pytest.mark.parametrize("alpha", [0.1, 0.4, 0.7])
def test_groups_have_their_sizes_and_use_up_a_class(alpha: float) -> None:
    held = counts(Params(alpha=alpha))
    first, others = held[:4].sum(), held[4:].sum()
    assert first / (first + others) == pytest.approx(0.38, abs=0.005)
    assert 598 <= held.sum(0).max() <= 600  # a larger total would need more of that class than there is


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
