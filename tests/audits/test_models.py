"""What audits share, on numbers worked out by hand."""

import copy
from math import comb, log

import numpy as np
import pytest

from fu.audits.models import (
    FORGOTTEN,
    TEST,
    area,
    caught,
    fitted,
    halves,
    labellings,
    labellings_by_half,
    margins,
    paired,
    smallest_p,
    tenth,
)
from tests.audits.synthetic import logits_of, models_of


def test_a_margin_is_the_log_odds_of_the_own_label() -> None:
    logits = np.log(np.array([[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [8, 1, 1]]], np.float32))
    found = margins(logits, np.array([1, 2]))
    # p = 2/6, 3/6; 1/3, 1/10
    assert found == pytest.approx(np.log([[2 / 4, 3 / 3], [1 / 2, 1 / 9]]), abs=1e-6)
    assert found.dtype == np.float64


def test_margins_keep_their_digits_where_a_probability_is_nearly_one_or_nothing() -> None:
    logits = np.array([[[1000, 0, 0], [1000, 0, 0]]], np.float32)
    found = margins(logits, np.array([0, 1]))
    assert found == pytest.approx(np.array([[1000 - log(2), -1000]]), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_diverged_repeat_is_refused(bad: float) -> None:
    logits = np.zeros((2, 3, 4), np.float32)
    logits[1, 2, 3] = bad
    with pytest.raises(ValueError, match="repeats that diverged are to be left out"):
        margins(logits, np.zeros(3, np.int64))


def test_the_spread_of_few_models_is_nearly_that_of_all_samples() -> None:
    # squares 2, 0, 0, mean 2/3: (2 + 20/3) / 11 = 26/33, (20/3) / 11 = 20/33
    mean, variance = fitted(np.array([[2.0, 4, 6], [4, 4, 6]]))
    assert mean.tolist() == [3, 4, 6]
    assert variance == pytest.approx([26 / 33, 20 / 33, 20 / 33])
    # 91 models: variances 4 and 0, mean 2: (90 * 4 + 10 * 2) / 100 and 10 * 2 / 100
    values = np.zeros((91, 2))
    values[:90, 0] = np.tile([2, -2], 45)
    assert fitted(values)[1] == pytest.approx([3.8, 0.2])
    assert fitted(np.ones((2, 3)))[1].tolist() == [1e-4] * 3


def test_areas_and_rates_are_counted() -> None:
    assert area(np.array([1.0, 2]), np.array([0.0, 1])) == 3.5 / 4
    negatives = np.random.default_rng(0).permutation(100.0 + np.arange(100))
    positives = np.array([198, 198.5, 199, 300])
    assert caught(positives, negatives, 0.01) == 3 / 4  # above 198, which one exceeds
    assert caught(positives, negatives, 0.02) == 1
    assert caught(positives, negatives, 0.001) == 1 / 4


def test_a_tenth_is_one_at_least_and_halves_are_even_and_odd() -> None:
    assert [tenth(number) for number in (1, 10, 11, 100)] == [1, 1, 2, 10]
    assert [half.tolist() for half in halves(np.arange(5.0))] == [[0, 2, 4], [1, 3]]


def test_the_first_models_are_those_of_each_kind_on_every_probe() -> None:
    few, many = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    models = models_of(unlearned=few, retrained=many, original=many).first(3)
    assert models.repeats == {"unlearned": 2, "retrained": 3, "original": 3}
    assert np.array_equal(margins(models.retrained[TEST], models.labels[TEST]).round(4), many[:3])


def test_a_repeat_with_a_logit_that_is_not_finite_is_left_out_of_all_kinds_and_probes() -> None:
    kinds = [{probe: logits_of(np.arange(12.0).reshape(4, 3) + k) for probe in (FORGOTTEN, TEST)} for k in range(3)]
    given = copy.deepcopy(kinds)
    given[0][FORGOTTEN][2, 0, 1] = np.inf
    given[2][TEST][0, 2, 2] = np.nan
    found = paired({}, *given)
    for of, whole in zip((found.unlearned, found.retrained, found.original), kinds, strict=True):
        for probe in (FORGOTTEN, TEST):
            assert np.array_equal(of[probe], whole[probe][[1, 3]])
    assert set(paired({}, {}, *kinds[1:]).repeats.values()) == {0}


def test_no_p_is_smaller_than_that_of_the_true_labelling_alone() -> None:
    assert [1 / smallest_p(number) for number in (4, 8, 9, 16)] == pytest.approx([6**2, 70**2, 252 * 70, 50_000])
    for number in (4, 9):
        assert 1 / smallest_p(number) == pytest.approx(len(labellings_by_half(number, number)[0]))


def test_labellings_are_all_of_few_models_and_the_true_one_is_the_first() -> None:
    assert labellings(2, 1).tolist() == [[True, True, False], [True, False, True], [False, True, True]]
    every = labellings(8, 8)
    assert every.shape == (12_870, 16) == (comb(16, 8), 16)
    assert len(np.unique(every, axis=0)) == 12_870
    assert {*every.sum(1)} == {8}
    assert every[0].tolist() == [True] * 8 + [False] * 8


def test_of_many_models_49999_labellings_are_drawn() -> None:
    assert comb(18, 9) > 20_000
    drawn = labellings(9, 10)
    assert drawn.shape == (50_000, 19)
    assert drawn[0].tolist() == [True] * 9 + [False] * 10
    assert {*drawn.sum(1)} == {9}
    assert drawn.mean(0) == pytest.approx(9 / 19, abs=0.02)
    assert np.array_equal(drawn, labellings.__wrapped__(9, 10))
    assert not drawn.flags.writeable


def test_relabellings_within_halves_are_all_pairs_of_those_of_each() -> None:
    even, odd = labellings_by_half(4, 5)  # two and three, two and two
    assert (even.shape, odd.shape) == ((60, 5), (60, 4))
    assert len({(*one, *other) for one, other in zip(even.tolist(), odd.tolist(), strict=True)}) == 60
    assert (even[0].tolist(), odd[0].tolist()) == ([True] * 2 + [False] * 3, [True] * 2 + [False] * 2)
    assert ({*even.sum(1)}, {*odd.sum(1)}) == ({2}, {2})
    assert labellings_by_half(5, 4)[0].sum(1).tolist() == [3] * 60


@pytest.mark.parametrize("number", [12, 32])
def test_of_many_they_are_drawn_for_each_half_by_itself(number: int) -> None:
    even, odd = labellings_by_half(number, number)
    assert even.shape == odd.shape == (50_000, number)
    assert even[0].tolist() == odd[0].tolist() == [True] * (number // 2) + [False] * (number // 2)
    shared = (even[1:] & odd[1:]).mean()
    assert shared == pytest.approx(1 / 4, abs=0.01)  # half of the places in each, as if the other did not exist
    assert not (even[1:] == odd[1:]).all(1).mean() > 0.01
