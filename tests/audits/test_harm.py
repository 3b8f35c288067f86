"""Harm on numbers worked out by hand: logits (a, 0), so that a model predicts class 0 where a > 0 and else class 1."""

import numpy as np
import pytest

from fu.audits import harm
from fu.audits.models import FORGOTTEN, TEST, TRAIN, Models

Rows = list[list[float]]
TESTED: tuple[Rows, Rows] = [[1.0, 1, 1], [-1, -1, -1]], [[1.0, -1, 1], [-1, -1, 1]]  # of labels 0, 1, 0


def logits(*rows: list[float]) -> "np.ndarray[tuple[int, int, int], np.dtype[np.float32]]":
    own = np.array(rows, np.float32)
    return np.stack([own, np.zeros_like(own)], -1)


def models(near_unlearned: Rows, near_retrained: Rows, tested: tuple[Rows, Rows] = TESTED) -> Models:
    """Return models whose original has retained samples at 0, 10, ... 100: numbers 10 and 3 are the nearest."""
    at = np.arange(0, 110, 10.0)
    original = {TRAIN: logits(list(at + 50), list(at - 50)), FORGOTTEN: logits([32, 99], [32, 99])}

    def kind(near: Rows, test: Rows) -> dict[str, np.ndarray[tuple[int, int, int], np.dtype[np.float32]]]:
        rows = [[-9.0] * 11 for _ in near]
        for row, (third, last) in zip(rows, near, strict=True):
            row[3], row[10] = third, last
        return {TRAIN: logits(*rows), TEST: logits(*test), FORGOTTEN: original[FORGOTTEN]}

    labels = {TRAIN: np.zeros(11, np.int64), TEST: np.array([0, 1, 0]), FORGOTTEN: np.zeros(2, np.int64)}
    return Models(labels, kind(near_unlearned, tested[0]), kind(near_retrained, tested[1]), original)


def test_the_nearest_are_those_of_the_mean_over_original_models() -> None:
    assert harm.nearest(models([[1, 1]] * 2, [[1, 1]] * 2).original).tolist() == [10, 3]


def test_the_audit_by_hand_of_two_models_and_three_samples() -> None:
    values = harm.audit(models([[-1, -1], [3, -3]], [[3, 3], [3, -3]]))
    assert values == pytest.approx(
        {
            "harm_near": 75 - 25,  # errors 100, 50 against 0, 50
            "harm_near_low": 50 - 50,
            "harm_near_high": 100 - 0,
            "harm_near_worse": 3.5 / 4,
            "harm_near_p": 2 / 6,  # either model with 50 errors, beside that with 100
            "harm_test": (100 / 3 + 200 / 3) / 2 - (0 + 100 / 3) / 2,
            "harm_test_low": 0,
            "harm_test_high": 200 / 3,
            "harm_test_worse": 3.5 / 4,
            "harm_test_p": 2 / 6,
        }
    )
