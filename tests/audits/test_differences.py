"""Differences between two kinds of models: by hand, and how often interval and p-value err in simulations."""

from collections.abc import Callable
from math import comb

import numpy as np
import pytest

from fu.audits.differences import compared, interval
from fu.audits.models import Floats, further


def test_two_models_against_two_by_hand() -> None:
    values = compared("more", np.array([3.0, 6.0]), np.array([1.0, 3.0]))
    assert values == {
        "more": 2.5,
        "more_low": 0,  # t of one degree of freedom is so wide that only the extremes are left: 3 - 3
        "more_high": 5,  # 6 - 1
        "more_worse": 3.5 / 4,  # a tie of 3 and 3
        "more_p": 2 / 6,  # of six sums of two models 9 appears twice, and nothing is larger
    }


def test_numbers_that_are_all_equal_differ_by_nothing() -> None:
    values = compared("more", np.full(3, 0.1), np.full(4, 0.1))
    assert list(values.values()) == pytest.approx([0, 0, 0, 0.5, 1])


def test_the_interval_is_wider_than_percentiles_as_by_t() -> None:
    """Of ten models of which five have a one, the mean is at most .1 in 1.07% of resamples; t asks for .86%."""
    share = sum(comb(10, k) for k in (0, 1)) / 2**10
    assert 0.0086 < share < 0.0118 < 0.025  # of t without sqrt(10 / 9), of plain percentiles
    ones = np.repeat([0.0, 1.0], 5)
    assert interval(ones, np.zeros(40)) == pytest.approx((0.1, 0.9))
    low, high = interval(np.zeros(40), ones)
    assert low < -0.5 < high < 0  # models of either kind are drawn again


def test_the_interval_covers_the_difference() -> None:
    random = np.random.default_rng(0)
    for number in (8, 16, 32):
        ends = [interval(2 + random.normal(size=number), 3 * random.normal(size=number)) for _ in range(400)]
        assert np.mean([low <= 2 <= high for low, high in ends]) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("kind", ["normal", "t3", "skewed", "bimodal"])
def test_the_level_is_kept(kind: str) -> None:
    random = np.random.default_rng(1)
    draws: dict[str, Callable[[int], Floats]] = {
        "normal": lambda size: random.normal(size=size),
        "t3": lambda size: random.standard_t(3, size),
        "skewed": lambda size: random.poisson(0.5, size).astype(np.float64),
        "bimodal": lambda size: 9.0 * random.integers(0, 2, size) + random.normal(size=size),
    }
    p = [further(draws[kind](number), draws[kind](number)) for number in (8, 16, 32) for _ in range(200)]
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5


def test_p_counts_labellings() -> None:
    zero = np.array([-1.0, 0, 0, 1])
    assert further(np.array([5.0, 6, 7, 8]), zero) == 1 / 70
    assert further(np.array([5.0, 6, 7, 0.5]), zero) == 2 / 70  # one more: 0.5 and 1 change places
    assert further(zero, zero + 9) == 1
    assert further(np.arange(32.0) + 99, np.arange(32.0)) == 1 / 50_000
