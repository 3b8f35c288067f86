"""Holm's correction by hand."""

import pytest

from fu.claims.correction import adjusted, levels


def test_adjusted_p_values_by_hand() -> None:
    # in order .01, .02, .022, .9: times 4, 3, 2, 1 = .04, .06, .044, .9; none is below one before it
    assert adjusted([0.02, 0.9, 0.01, 0.022]) == pytest.approx([0.06, 0.9, 0.04, 0.06])
    assert adjusted([0.6, 0.7]) == [1, 1]
    assert adjusted([]) == []


def test_an_adjusted_p_value_is_below_a_level_where_the_test_rejects() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    for level in (0.03, 0.05, 0.07):
        rejected = [one <= own for one, own in zip(p, levels(p, level), strict=True)]
        assert rejected == [one <= level for one in adjusted(p)]
