"""Who takes part: uniformly drawn, by name, from the population alone."""

from collections import Counter

import numpy as np
import pytest

from fu.federation.participation import participants

POPULATION = [7, 2, 5, 0, 11, 3]
ROUNDS = 10_000


def test_all_of_the_population_take_part_where_no_number_is_given() -> None:
    assert participants(POPULATION, None, False, 0, "training", 4) == [0, 2, 3, 5, 7, 11]


@pytest.mark.parametrize("with_replacement", [False, True])
def test_every_client_and_every_pair_is_drawn_equally_often(with_replacement: bool) -> None:
    """Chi-square over 10,000 rounds of two of six clients, with the 99.9% quantiles for 5 and 14 (20) degrees."""
    rounds = [tuple(participants(POPULATION, 2, with_replacement, 3, "training", r)) for r in range(ROUNDS)]
    clients, pairs = Counter(client for pair in rounds for client in pair), Counter(rounds)
    assert clients.keys() == set(POPULATION)
    expected = 2 * ROUNDS / 6
    spread = 1 - 1 / 5 if not with_replacement else 1  # two draws of one round are correlated without replacement
    assert sum((count - expected) ** 2 / expected for count in clients.values()) / spread < 20.5
    share = {
        (a, b): 1 / 15 if not with_replacement else (1 / 36 if a == b else 2 / 36)
        for a in sorted(POPULATION)
        for b in sorted(POPULATION)
        if a < b or (a == b and with_replacement)
    }
    assert pairs.keys() == share.keys()
    statistic = sum((pairs[pair] - ROUNDS * p) ** 2 / (ROUNDS * p) for pair, p in share.items())
    assert statistic < (36.1 if not with_replacement else 45.3)


def test_a_draw_depends_on_its_name_alone() -> None:
    np.random.seed(0)  # noqa: NPY002 (no draw may hang on it)
    one = participants(POPULATION, 3, False, 1, "training", 5)
    participants(POPULATION, 3, False, 1, "training", 4)
    assert participants(sorted(POPULATION), 3, False, 1, "training", 5) == one
    others = {
        tuple(participants(POPULATION, 3, False, seed, stream, round))
        for seed, stream, round in [(1, "training", 6), (2, "training", 5), (1, "unlearning", 5), (1, "training", 7)]
    }
    assert len(others | {tuple(one)}) > 1
    assert others != {tuple(one)}


def test_one_drawn_twice_stands_there_twice() -> None:
    assert participants([4], 3, True, 0, "training", 0) == [4, 4, 4]


@pytest.mark.parametrize(("population", "number", "replace"), [([1, 2], 3, False), ([], 1, True)])
def test_more_than_there_are_cannot_be_drawn(population: list[int], number: int, replace: bool) -> None:
    with pytest.raises(ValueError, match=f"{number} clients cannot be drawn from {len(population)}"):
        participants(population, number, replace, 0, "training", 0)
