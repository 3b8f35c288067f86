"""KLoM on numbers worked out by hand, on Gaussians with a closed form, and the level of its test."""

from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest

from fu.audits import klom
from fu.audits.klom import binned, divergence, p_value
from fu.audits.models import FORGOTTEN, HELD_OUT, TEST, TRAIN, Floats, fitted, refitted
from tests.audits.synthetic import World, models_of


def test_the_divergence_of_two_gaussians() -> None:
    narrow, wide = (np.array([0.0]), np.array([1.0])), (np.array([1.0]), np.array([4.0]))
    assert divergence(wide, narrow) == pytest.approx([(4 - 1 - log(4) + 1) / 2])
    assert divergence(narrow, wide) == pytest.approx([(1 / 4 - 1 + log(4) + 1 / 4) / 2])
    assert divergence(wide, wide).tolist() == [0]


def test_the_audit_by_hand() -> None:
    around = np.array([[1.0], [1], [-1], [-1]])  # variance 4/3; halves are alike
    apart = np.array([[2.0], [0], [0], [-2]])  # variance 8/3; halves have means 1 and -1, variance 2
    zeros = np.zeros(3)
    retrained = {FORGOTTEN: around + zeros, TRAIN: apart + zeros, HELD_OUT: around + zeros, TEST: around + zeros}
    shifts = {FORGOTTEN: [1, 2, 4], TRAIN: [4, 0, 0], HELD_OUT: [0, 0, 0], TEST: [9, 9, 9]}
    unlearned = {probe: values + shifts[probe] for probe, values in retrained.items()}
    values = klom.audit(models_of(unlearned, retrained, retrained))
    del values["klom_p"]
    assert values == pytest.approx(
        {
            "klom_forgotten": (3 / 8 + 3 / 2 + 6) / 3,  # m2 / (2 * 4/3)
            "klom_forgotten_95": 1.5 + 0.9 * 4.5,
            "klom_forgotten_halves": 0,
            "klom_forgotten_halves_95": 0,
            "klom_train": 1,  # (16 / (2 * 8/3) + 0 + 0) / 3
            "klom_train_95": 0.9 * 3,
            "klom_train_halves": 1,  # 2 * 2 / (2 * 2)
            "klom_train_halves_95": 1,
            "klom_held_out": 0,
            "klom_held_out_95": 0,
            "klom_held_out_halves": 0,
            "klom_held_out_halves_95": 0,
            # models of both kinds share a bin only where 2 is added: half of the unlearned and half of the retrained
            "klom_binned_forgotten": (1 + 0.5 + 1) / 3 * log(0.5 / 1e-5),
            "klom_binned_forgotten_95": log(0.5 / 1e-5),
        },
        abs=1e-5,
    )


def test_it_runs_from_unlearned_to_retrained_and_halves_are_of_retrained_models() -> None:
    retrained = np.array([[0.0], [4], [2], [0], [4]])  # variance 4; even: mean 2, variance 4, odd: mean 2, variance 8
    unlearned = np.array([[3.0], [3], [1], [5]])  # mean 3, variance 8/3; even: mean 2, odd: mean 4, variance 2
    values = klom.audit(models_of(unlearned, retrained, retrained))
    assert values["klom_forgotten"] == pytest.approx((2 / 3 - 1 - log(2 / 3) + 1 / 4) / 2, abs=1e-5)
    assert values["klom_forgotten_halves"] == pytest.approx((1 / 2 - 1 - log(1 / 2)) / 2, abs=1e-5)


def test_fits_of_labellings_are_those_of_the_models_that_they_name() -> None:
    values = np.array([[1.0, -3, 10], [2, 5, 0], [7, 0, 4], [0, 1, -6], [3, 3, 2]])
    members = np.array([[True, False, True, False, True], [False, True, True, True, False]])
    mean, variance = refitted(values, members)
    for k, row in enumerate(members):
        expected = fitted(values[row])
        assert mean[k] == pytest.approx(expected[0])
        assert variance[k] == pytest.approx(expected[1])


def test_the_binned_variant_by_hand_of_two_models() -> None:
    """Samples: equal; apart; the retrained spread; all models alike; cut off below; one bin apart, out of twenty."""
    unlearned = np.array([[0.0, 0, 0, 7, -1000, 0], [20, 1, 0, 7, -1000, 0.9]])
    retrained = np.array([[0.0, 20, 0, 7, -100, 1], [20, 20, 20, 7, 100, 20]])
    far = log(1 / 1e-5)
    assert binned(unlearned, retrained) == pytest.approx([0, far - log(2), log(2), 0, log(2), far])


def test_halves_tell_what_no_difference_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other repeats of retraining, as many as a half has, are as far from a half as the other half is."""
    monkeypatch.setattr(klom, "p_value", lambda *_: 1.0)  # it takes most of the time
    world = World(0)
    both = []
    for _ in range(100):
        halves = klom.audit(world.models(16, 0.0))["klom_forgotten_halves"]
        both.append((halves, klom.audit(world.models(8, 0.0))["klom_forgotten"]))
    halves, repeats = np.array(both).T
    assert abs(halves.mean() - repeats.mean()) < 3 * sqrt((halves.var() + repeats.var()) / 100)


def statistic(one: Floats, other: Floats) -> float:
    return float(np.percentile(divergence(fitted(one), fitted(other)), 95))


@pytest.mark.parametrize("samples", [5, 20_000])  # in one step, and in six
def test_p_is_the_share_of_labellings_that_give_as_much(samples: int) -> None:
    random = np.random.default_rng(0)
    values = 100 + random.normal(size=(7, samples))
    values[:3] += 0.4
    every = [
        statistic(values[list(chosen)], np.delete(values, chosen, 0)) for chosen in combinations(range(7), 3)
    ]  # 35, as likely each
    exact = np.mean(np.array(every) >= every[0] - 1e-12)
    assert 0.02 < exact < 0.95
    assert p_value(values[:3], values[3:]) == pytest.approx(exact)


def test_p_is_never_0_and_its_level_is_kept() -> None:
    random = np.random.default_rng(1)
    assert p_value(random.normal(100, 1, (16, 3)), random.normal(0, 1, (16, 3))) == 1 / 50_000
    assert p_value(random.normal(100, 1, (7, 3)), random.normal(0, 1, (9, 3))) == 1 / 11_440
    drawn = [p_value(*random.normal(size=(2, 8, 3))) for _ in range(500)]
    assert np.mean(np.array(drawn) < 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.05)
