"""The two sides of every statement, against numbers worked out by hand, and the verdicts that follow from them."""

from math import sqrt

import numpy as np
import pytest

from fu.artefacts import bounds
from fu.artefacts.bounds import ROWS, Row, Sides
from fu.artefacts.quadratics import Groups, across, loss, unlearn, weighted
from tests.artefacts.factories import cells, made, make_entry

# By hand, beside what they come from.
BY_HAND: dict[str, Sides] = {
    "Lemma 5.6": (0.9**20 / 2, (1 - 2 / 10) / 2),  # x <- (1 - 1/T) x
    "Lemma 5.8": (
        (1 - 0.5**4) ** 2 / 2,
        0.5 * 0.5 * 4 / 2 * (1 + 1) ** 2,
    ),  # from 0 towards -1, half of the way a round
    "Theorem 5.10": (0 + 1 / 2, 0.5 / sqrt(2) * 4 + (1 - 2) / 2),  # in one step to -1
    "Theorem 5.11": (0, 1),
    # g_S (0, 4): all of g_J is left, 4; (2, -4): cos^2 = 16 / (4 * 20), which leaves 3.2.
    "Lemma 6.3, sampling": ((4 + 3.2) / 2, (1 + (0 + 0.2) / 2) * (1 + 1)),
    "Lemma 6.3, all": (0, (1 + 1) * (1 + 1)),
    "Lemma 6.3, all, drawn": (0, 0),
    "(36) with 1 - cos²": (1, 1),
    # H = 3x^2 + x + 7/4 at -1 and at 0. phi = 25 / 4 * 2, G = 2, zeta' = 2: B = 25 (4 + 4), v = 64 B / (8 - 4).
    "Theorem 6.4": (3 - 1, (16 * 200 / 10_016 + 1) / 2),
    "Theorem 6.4, B of (29)": (3 - 1, (16 * 25 * (12.5 * 4 + 4) / 10_016 + 1) / 2),
    "Theorem 6.10": (1 / 32, 0),
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.statement)
def test_both_sides_are_those_worked_out_by_hand(row: Row) -> None:
    if row.statement in BY_HAND:
        assert row.sides() == pytest.approx(BY_HAND[row.statement], rel=1e-6, abs=1e-9)


def test_theorem_6_7_by_hand() -> None:
    """V shrinks by (1 - .01 / 50)^2 a round; F_J's estimate leaves zeta'^2 = (.99 (1 - .9998^100))^2; D = .005."""
    epsilon, zeta = 0.9998**2, (0.99 * (1 - 0.9998**100)) ** 2
    slow, fast = 1 - 1 / 200 + 1e-4, 1 - 1 / 100 + (0.5 * epsilon + 2) * 1e-4
    bound = (slow**100 + fast**100) / 2 + 0.5 * zeta / 200 / 0.005
    assert bounds.theorem_6_7() == pytest.approx((0.9998**200, bound), rel=1e-9)
    assert bounds.theorem_6_7() == pytest.approx((0.961, 0.494), abs=5e-4)


def test_what_is_contradicted_and_what_is_not() -> None:
    frame = made(make_entry("bounds")).frame
    assert list(frame) == ["statement", "system", "quantity", "value", "bound", "holds"]
    assert frame["statement"].is_unique
    assert list(frame["statement"][frame["holds"]]) == ["Lemma 6.3, all", "Lemma 6.3, all, drawn", "(36) with 1 - cos²"]
    assert set(BY_HAND) == {*frame["statement"]} - {"Theorem 6.7", "Lemma 6.3, all, with 1 - cos²"}


def test_the_draws_would_show_a_factor_that_is_too_small() -> None:
    """With 1 - cos^2 the lemma fails where |g_J| cos > |grad F|: then |g_J - grad F|^2 + |grad F|^2 < |g_J|^2."""
    left, right = bounds.lemma_6_3(np.array([[1.0, 0.0]]), np.array([3.0, 1.0]), sign=-1)
    assert (left, right) == pytest.approx((1, 0.1 * (4 + 1 + 1)))
    g_s, g_j = bounds.drawn()
    failed = ((g_j * g_s[:, 0]).sum(-1) > (g_s[:, 0] ** 2).sum(-1)).sum()
    assert bounds.violations(-1) == (failed, 0)
    assert failed > 1_000


@pytest.mark.parametrize(
    ("sign", "value", "holds"),
    [
        *[("≤", 0.9, True), ("≤", 1.1, False), ("≤", 1 + 1e-12, True)],
        *[("≥", 0.9, False), ("≥", 1.1, True)],
        *[("=", 0.9, False), ("=", 1.1, False), ("=", 1 - 1e-12, True)],
    ],
)
def test_a_verdict_follows_from_the_two_sides(sign: str, value: float, holds: bool) -> None:
    row = Row("Lemma", "system", "V", sign, "C", lambda: (value, 1), "because")
    assert row.holds(value, 1.0) is holds


@pytest.mark.parametrize(
    ("w", "multipliers", "nu"),
    [
        (1 / 4, (1, 0), 0),  # the saddle point: r = (0, -1/4), and F + f_1 is least
        (1 / 2, (1, 0), (4 - 1) * 3 / 32),  # r_1 = 1/8 - 1/32, of which a multiplier of Lambda makes the most
        (0, (0, 0), 1 / 4 - 1 / 8),  # nothing exceeds, but F is less at 1/2
        (1 / 4, (2, 0), 7 / 32 - 5 / 24),  # F + 2 f_1 is less at 1/6
    ],
)
def test_how_far_a_point_is_from_a_saddle_point(w: float, multipliers: tuple[float, float], nu: float) -> None:
    assert bounds.FAIR.nu(np.array([w]), np.array(multipliers, float)) == pytest.approx(nu)


def test_a_table_shows_both_sides_and_what_is_to_be_known_of_each_statement() -> None:
    result = made(make_entry("bounds"))
    head, *lines = cells(result.body)
    assert head == ["Statement", "System", "Claim", "Left", "Right", "Verdict"]
    shown = {line[0]: line[2:] for line in lines}
    assert shown["Lemma 5.8"] == ["S ≥ C_2", "0.439", "2", "false"]
    assert shown["Lemma 6.3, all"] == ["‖g_c‖² ≤ bound", "0", "4", "holds"]
    assert [[row.statement for row in ROWS]] == [[text.partition(": ")[0] for text in texts] for texts in result.words]


def test_the_weighted_sum_of_quadratics_is_their_sum_everywhere() -> None:
    one, other = loss([2, 1], [1, -3]), loss([4, 5], [0, 2])
    both, w = weighted((one, other), (0.3, 2.0)), np.array([0.7, -1.1])
    assert both(w) == pytest.approx(0.3 * one(w) + 2 * other(w))
    assert both.gradient(w) == pytest.approx(0.3 * one.gradient(w) + 2 * other.gradient(w))
    assert both.gradient(both.centre) == pytest.approx(0)
    assert (one.mu, one.smoothness) == (1, 2)


def test_unlearning_takes_a_step_and_then_one_across_it() -> None:
    """From (1, 1) at rate .1: g_S = (1, 2), so w-bar = (.9, .8); g_J = (2, 0) + 2 (w-bar - w_o) = (1.8, -.4)."""
    groups = Groups(loss([1, 2], [0, 0]), loss([2, 1], [0, 1]), 0.5)
    rest = np.array([1.8, -0.4]) - 1 / 5 * np.array([1, 2])
    assert across(np.array([1.8, -0.4]), np.array([1.0, 2.0])) == pytest.approx(rest)
    path = unlearn(groups, np.ones(2), [0.1], penalty=4)
    assert path.tolist() == [[1, 1], pytest.approx(np.array([0.9, 0.8]) - 0.1 * 4 * 0.5 * rest)]
    assert unlearn(groups, np.ones(2), [0.1])[1] == pytest.approx([0.9, 0.8])
