"""Balanced classes: none is left without a client, all clients are as large, and the draw is a draw."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fu.partitions import balanced_classes
from fu.partitions.balanced_classes import Params
from tests.data.draws import LABELS, SIZES
from tests.federation.enumeration import gathered


@pytest.mark.parametrize("each", [1, 2, 5, 10])
@pytest.mark.parametrize("seed", range(5))
def test_every_class_has_as_many_clients_as_a_client_has_classes(each: int, seed: int) -> None:
    pools = balanced_classes.deal(LABELS, 10, 10, Params(classes=each), np.random.default_rng(seed))
    counts = np.stack([np.bincount(LABELS[pool], minlength=10) for pool in pools])
    assert ((counts > 0).sum(0) == each).all()
    assert ((counts > 0).sum(1) == each).all()
    assert set(counts[counts > 0].tolist()) == {min(SIZES) // each}
    rows = np.concatenate(pools)
    assert len(set(rows.tolist())) == len(rows)


def test_more_clients_than_classes_share_them_evenly() -> None:
    held = balanced_classes.assign(15, 10, 2, np.random.default_rng(0))
    assert (held.sum(1) == 2).all()
    assert (held.sum(0) == 3).all()


@pytest.mark.whole
def test_every_balanced_assignment_is_equally_likely() -> None:
    """Four clients with two of four classes each: 90 assignments (chi-square, 99.9% quantile for 89 degrees: 135)."""
    rounds = 1800
    draws = [balanced_classes.assign(4, 4, 2, np.random.default_rng(seed)).tobytes() for seed in range(rounds)]
    counts = Counter(draws)
    assert len(counts) == 90
    assert sum((count - rounds / 90) ** 2 / (rounds / 90) for count in counts.values()) < 135


def test_a_switch_is_as_likely_as_the_switch_back() -> None:
    """Of two clients with two of four classes each, by walking through all outcomes: a symmetric chain."""
    states = [frozenset(held) for held in combinations(range(4), 2)]

    def after(random: Any, before: frozenset[int]) -> tuple[frozenset[int]]:
        held = np.array([[label in before for label in range(4)], [label not in before for label in range(4)]])
        balanced_classes.switch(held, random)
        assert (held[0] != held[1]).all()
        return (frozenset(np.flatnonzero(held[0]).tolist()),)

    laws = {state: gathered(lambda random, at=state: after(random, at)) for state in states}  # type: ignore[misc]
    chances = [[laws[one].get((other,), 0) for other in states] for one in states]
    assert chances == [list(column) for column in zip(*chances, strict=True)]
    # of the pairs of clients one half are two; each gives one of two classes for one of two
    assert sorted(chances[0]) == [0, *[Fraction(1, 8)] * 4, Fraction(1, 2)]


@pytest.mark.parametrize("each", [2, 10])
def test_a_draw_is_that_of_its_generator(each: int) -> None:
    """Also where every client holds all classes: which samples of them is drawn, too."""
    one, again, other = (
        balanced_classes.deal(LABELS, 10, 10, Params(classes=each), np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert all(map(np.array_equal, one, again))
    assert not any(np.array_equal(np.sort(mine), np.sort(theirs)) for mine, theirs in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("clients", "classes", "each", "words"),
    [
        (10, 10, 11, "a client cannot hold 11 of 10 classes"),
        (7, 10, 3, "7 clients with 3 classes each cannot hold 10 classes equally often"),
    ],
)
def test_what_cannot_be_balanced_is_refused(clients: int, classes: int, each: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        balanced_classes.check(clients, classes, Params(classes=each))
    balanced_classes.check(10, 10, Params(classes=3))
