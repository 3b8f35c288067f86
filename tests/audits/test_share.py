"""Power and the bound on what is left: by hand, and their coverage."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

from fu.audits.models import Floats
from fu.audits.share import bound, power, resampled, resolution, welch

ZERO = np.array([-1.0, 0, 0, 1])


def test_the_bound_is_the_least_share_that_is_rejected_as_all_larger_ones_are() -> None:
    at = {left: ZERO + 10 * left for left in (0.01, 0.1, 0.3, 1.0)}
    assert bound(ZERO, at) == 0.3  # of 10% the means are 1 apart, of 30% 3
    assert bound(ZERO + 3, at) == 1.0
    assert bound(ZERO + 10, at) is None
    assert bound(ZERO, {**at, 0.1: ZERO + 50, 0.3: ZERO}) == 1.0  # beyond one that is not rejected nothing counts
    assert bound(ZERO, at, 1 / 70) is None  # of 70 labellings none has a smaller chance
    assert bound(ZERO, at, 1 / 69) == 0.3


def test_power_is_that_at_the_lower_end_of_what_the_controls_mean_may_be() -> None:
    random = np.random.default_rng(0)
    none, much = random.normal(size=(2, 32))
    assert power(much + 3, none, 0.001) == 1
    # 32 models with a deviation of 1: the difference has an error of 1/4, the interval's end is 1.67 errors off
    one, other = ((of - of.mean()) / of.std(ddof=1) for of in (none, much))
    assert power(one + 1.67 / 4, other, 0.05) == pytest.approx(0.05, abs=0.02)
    assert power(one + (2 + 1.67) / 4, other, 0.05) == pytest.approx(0.63, abs=0.05)  # noncentrality 2, limit 1.67


def test_the_limit_is_that_of_welch() -> None:
    one, other = np.array([[0.0, 2, 4]]), np.array([[1.0, 1, 2, 2]])  # variances 4 of 3 models, 1/3 of 4
    error, freedom = 4 / 3 + 1 / 12, (4 / 3 + 1 / 12) ** 2 / ((4 / 3) ** 2 / 2 + (1 / 12) ** 2 / 3)
    assert freedom == pytest.approx(2.252, abs=0.001)
    assert welch(one, other, 0.05) == pytest.approx(2.709 * sqrt(error), rel=1e-3)  # t of 2.252 degrees
    assert welch(one * 0, other * 0, 0.05)[0] < 1e-5


# A sample [n] (or [m, n]) of each distribution, and its standard deviation.
KINDS: dict[str, tuple[Callable[[np.random.Generator, Any], Floats], float]] = {
    "normal": (lambda random, n: random.normal(size=n), 1),
    "t3": (lambda random, n: random.standard_t(3, n), sqrt(3)),
    "skewed": (lambda random, n: random.exponential(size=n), 1),
    "bimodal": (lambda random, n: np.where(random.random(n) < 0.8, 1, -1) + 0.1 * random.normal(size=n), sqrt(0.65)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [8, 16, 32])
def test_a_share_found_half_of_the_time_is_seldom_called_detectable(kind: str, number: int) -> None:
    (draw, deviation), random = KINDS[kind], np.random.default_rng(0)
    shift = 1.7 * deviation * sqrt(2 / number)  # a power of about .5 at 5% (.6 for t3)
    called = [power(draw(random, number) + shift, draw(random, number), 0.05) >= 0.95 for _ in range(100)]
    assert np.mean(called) <= (0.02 if kind == "normal" else 0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [8, 16, 32])
def test_the_resolution_is_seldom_a_share_whose_power_is_below_90_percent(kind: str, number: int) -> None:
    (draw, deviation), random = KINDS[kind], np.random.default_rng(0)
    shifts = {left: 6 * left * deviation for left in (0.01, 0.03, 0.1, 0.3, 0.5, 1.0)}
    true = {}
    for left, shift in shifts.items():
        one, other = draw(random, (2_000, number)) + shift, draw(random, (2_000, number))
        true[left] = np.mean(one.mean(1) - other.mean(1) > welch(one, other, 0.05))
    assert [true[0.01], true[1.0]] == pytest.approx([0.06, 1], abs=0.035)
    stated = []
    for _ in range(40):
        powers = {
            left: power(draw(random, number) + shift, draw(random, number), 0.05) for left, shift in shifts.items()
        }
        stated.append(resolution(powers))
    assert sum(left is not None and true[left] < 0.9 for left in stated) <= 3
    assert sum(left is None or left > (1 if number == 8 else 0.5) for left in stated) <= 3  # nor does it miss much


def test_what_is_drawn_varies_as_the_models_do() -> None:
    drawn = resampled(np.array([0.0, 2]), np.random.default_rng(0))  # mean 1, variance 2
    assert np.unique(drawn) == pytest.approx([1 - sqrt(2), 1 + sqrt(2)])


def test_the_resolution_is_the_least_share_with_power_as_all_larger_ones() -> None:
    assert resolution({0.1: 0.96, 0.3: 0.95, 1.0: 1.0}) == 0.1
    assert resolution({0.1: 0.96, 0.3: 0.949, 1.0: 1.0}) == 1.0
    assert resolution({0.1: 0.96, 0.3: 0.96, 1.0: 0.9}) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [8, 16, 32])
def test_the_bound_lies_below_the_true_share_in_at_most_5_percent(kind: str, number: int) -> None:
    (draw, _), random = KINDS[kind], np.random.default_rng(0)
    shares, wrong = (0.03, 0.1, 0.3, 1.0), 0
    for _ in range(200):
        models, at = draw(random, number) + 6 * 0.1, {left: draw(random, number) + 6 * left for left in shares}
        found = bound(models, at)
        wrong += found is not None and found <= 0.1
    assert wrong <= 19  # of 200, 10 on average; more in .3% of all tests
