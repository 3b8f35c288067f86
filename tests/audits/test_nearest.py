"""The three-sample test on numbers worked out by hand, its level, and its power by closed form."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from fu.audits import nearest
from fu.audits.nearest import compared, direction, p_value, position
from tests.audits.synthetic import World, models_of

# midpoints 5, 5.5, 5.5, 6.5, 5
RETRAINED = np.array([[0.0], [1], [0], [1], [0]])
ORIGINAL = np.array([[10.0], [10], [11], [12], [10]])
UNLEARNED = np.array([[4.9], [5.6], [5.4], [6.6], [5.1]])


def test_the_audit_by_hand() -> None:
    assert compared(UNLEARNED, RETRAINED, ORIGINAL).tolist() == [True, True, False, False, False]  # 0, 2, 4, 1, 3
    values = nearest.audit(models_of(UNLEARNED, RETRAINED, ORIGINAL))
    assert values["nearest_share"] == 2 / 5
    assert values["nearest_p"] == pytest.approx(26 / 32)  # of 32 sequences 1 has none and 5 have one
    assert values["nearest_position"] == pytest.approx((5.52 - 0.4) / (10.6 - 0.4), rel=1e-5)


def test_of_kinds_with_more_models_the_first_are_compared() -> None:
    more, most = np.vstack([RETRAINED, [[100]]]), np.vstack([ORIGINAL, [[-50], [-70]]])
    assert compared(UNLEARNED, more, most).tolist() == compared(UNLEARNED, RETRAINED, ORIGINAL).tolist()


def test_samples_count_by_their_spread() -> None:
    retrained, original = np.array([[0.0, 0], [2, 0]]), np.array([[4.0, 3], [4, 3]])
    # variances 12/11 and 10/11 of the one, .0001 of the other
    expected = [3 / ((12 / 11 + 1e-4) / 2), 3 / ((10 / 11 + 1e-4) / 2)]
    assert direction(retrained, original) == pytest.approx(expected)
    at = np.array([[1.0, 3.0], [1, 3]])  # away along the second alone
    assert position(at, retrained, original) == pytest.approx(expected[1] / sum(expected))


def test_p_is_exact() -> None:
    assert [p_value(*pair) for pair in ((0, 8), (7, 8), (8, 8), (5, 5))] == [1, 9 / 256, 1 / 256, 1 / 32]
    assert nearest.found({"nearest_p": 0.05})
    assert not nearest.found({"nearest_p": 0.049})


def test_the_position_is_0_at_the_retrained_and_1_at_the_original() -> None:
    world = World(0)
    models = world.models(16, 0.0)
    margins = [world.margins(16, "forgotten", share) for share in (0.0, 1.0)]
    assert position(margins[0], *margins) == 0
    assert position(margins[1], *margins) == pytest.approx(1)
    assert position(2 * margins[1] - margins[0], *margins) == pytest.approx(2)
    assert position(margins[0], margins[0], margins[0]) == 0.5
    assert not nearest.found(nearest.audit(models))


@pytest.mark.parametrize(("number", "least"), [(8, 7), (16, 12), (32, 22)])
def test_the_level_is_that_of_the_binomial_for_models_that_lie_midway(number: int, least: int) -> None:
    """At most .05 over 10,000 draws, though the direction is estimated from few models."""
    random = np.random.default_rng(number)
    exact = stats.binom.sf(least - 1, number, 0.5)
    assert exact <= 0.05
    passed = 0
    for _ in range(10_000):
        unlearned, retrained, original = random.normal(size=(3, number, 2))
        nearer = compared(unlearned + 0.5, retrained, original + 1)
        passed += p_value(int(nearer.sum()), number) < nearest.LEVEL
    assert passed / 10_000 <= 0.05
    assert passed / 10_000 == pytest.approx(exact, abs=4 * sqrt(exact / 10_000))


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_the_level_is_nearly_kept_where_original_models_vary_otherwise(spread: float) -> None:
    """A direction from the compared models themselves passes 93% of them, a common midpoint 99.7%."""
    random = np.random.default_rng(0)
    passed = 0
    for _ in range(2000):
        unlearned, retrained, original = random.normal(size=(3, 16, 40))
        nearer = compared(unlearned + 0.1, retrained, spread * original + 0.2)
        passed += p_value(int(nearer.sum()), 16) < nearest.LEVEL
    assert passed / 2000 <= 0.07


def power(share: float, number: int, gap: float) -> float:
    """Return the chance that models with a share of the gap left pass: u - (r + o) / 2 has variance 1.5."""
    nearer = stats.norm.cdf(gap * (0.5 - share) / sqrt(1.5))
    least = stats.binom.isf(nearest.LEVEL, number, 0.5) + 1
    return float(stats.binom.sf(least - 1, number, nearer))


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.975), (0.1, 0.893), (0.3, 0.408), (0.5, 0.038), (1.0, 0.0)])
def test_power_by_mixtures(share: float, expected: float) -> None:
    random = np.random.default_rng(0)
    assert power(share, 16, 3.0) == pytest.approx(expected, abs=0.001)
    passed = 0
    for _ in range(2000):
        unlearned, retrained, original = random.normal(size=(3, 16, 1))
        nearer = compared(unlearned + 3 * share, retrained, original + 3)
        passed += p_value(int(nearer.sum()), 16) < nearest.LEVEL
    assert passed / 2000 == pytest.approx(expected, abs=4 * 0.5 / sqrt(2000))
