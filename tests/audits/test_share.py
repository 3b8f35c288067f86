"""Power and the bound on what is left: by hand, and their coverage."""

from math import sqrt

import numpy as np
import pytest

from fu.audits.share import bound, power, resampled, resolution

ZERO = np.array([-1.0, 0, 0, 1])


def test_the_bound_is_the_least_share_that_is_rejected_as_all_larger_ones_are() -> None:
    at = {left: ZERO + 10 * left for left in (0.01, 0.1, 0.3, 1.0)}
    assert bound(ZERO, at) == 0.3  # of 10% the means are 1 apart, of 30% 3
    assert bound(ZERO + 3, at) == 1.0
    assert bound(ZERO + 10, at) is None
    assert bound(ZERO, {**at, 0.1: ZERO + 50, 0.3: ZERO}) == 1.0  # beyond one that is not rejected nothing counts


def test_power_is_the_level_where_nothing_is_left_and_1_where_much_is() -> None:
    random = np.random.default_rng(0)
    none, much = random.normal(size=(2, 32))
    assert power(none - none.mean(), much - much.mean(), 0.05) == pytest.approx(0.05, abs=0.02)
    assert power(much + 3, none, 0.001) == 1
    # a shift of one standard deviation, 32 models: noncentrality 4, limit 1.67
    one = (none - none.mean()) / none.std()
    other = (much - much.mean()) / much.std()
    assert power(one + 0.5, other, 0.05) == pytest.approx(0.63, abs=0.05)


def test_what_is_drawn_varies_as_the_models_do() -> None:
    drawn = resampled(np.array([0.0, 2]), np.random.default_rng(0))  # mean 1, variance 2
    assert np.unique(drawn) == pytest.approx([1 - sqrt(2), 1 + sqrt(2)])


def test_the_resolution_is_the_least_share_with_power_as_all_larger_ones() -> None:
    assert resolution({0.1: 0.96, 0.3: 0.95, 1.0: 1.0}) == 0.1
    assert resolution({0.1: 0.96, 0.3: 0.949, 1.0: 1.0}) == 1.0
    assert resolution({0.1: 0.96, 0.3: 0.96, 1.0: 0.9}) is None


@pytest.mark.parametrize("kind", ["normal", "t3", "skewed"])
@pytest.mark.parametrize("number", [8, 16])
def test_the_bound_lies_below_the_true_share_in_at_most_5_percent(kind: str, number: int) -> None:
    random = np.random.default_rng(0)
    draw = {
        "normal": lambda: random.normal(size=number),
        "t3": lambda: random.standard_t(3, number),
        "skewed": lambda: random.exponential(size=number),
    }[kind]
    shares, wrong = (0.03, 0.1, 0.3, 1.0), 0
    for _ in range(200):
        found = bound(draw() + 6 * 0.1, {left: draw() + 6 * left for left in shares})
        wrong += found is not None and found <= 0.1
    assert wrong <= 17  # of 200, 10 on average; more in 2% of all tests
