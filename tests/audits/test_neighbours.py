"""Harm to neighbours on numbers worked out by hand: logits (a, 0) of label 0, so that the loss is log(1 + e^-a)."""

from math import log, sqrt

import numpy as np
import pytest

from fu.audits import neighbours
from fu.audits.models import FORGOTTEN, TRAIN, Models


def logits(*rows: list[float]) -> "np.ndarray[tuple[int, int, int], np.dtype[np.float32]]":
    own = np.array(rows, np.float32)
    return np.stack([own, np.zeros_like(own)], -1)


def models(near_unlearned: list[list[float]], near_retrained: list[list[float]]) -> Models:
    """Return models whose original has retained samples at 0, 10, ... 100: numbers 10 and 3 are the nearest."""
    at = np.arange(0, 110, 10.0)
    original = {TRAIN: logits(list(at + 50), list(at - 50)), FORGOTTEN: logits([32, 99], [32, 99])}

    def kind(near: list[list[float]]) -> dict[str, np.ndarray[tuple[int, int, int], np.dtype[np.float32]]]:
        rows = [[-9.0] * 11 for _ in near]
        for row, (third, last) in zip(rows, near, strict=True):
            row[3], row[10] = third, last
        return {TRAIN: logits(*rows), FORGOTTEN: original[FORGOTTEN]}

    labels = {TRAIN: np.zeros(11, np.int64), FORGOTTEN: np.zeros(2, np.int64)}
    return Models(labels, kind(near_unlearned), kind(near_retrained), original)


def test_the_nearest_are_those_of_the_mean_over_original_models() -> None:
    assert neighbours.nearest(models([[1, 1]] * 2, [[1, 1]] * 2).original).tolist() == [10, 3]


def test_the_audit_by_hand() -> None:
    three = log(3)
    values = neighbours.audit(models([[-1, -1], [three, -three]], [[three, three], [three, -three]]))
    # accuracies 0, .5 against 1, .5: mean .25 - .75; deviation over retrained models .5 / sqrt(2)
    assert values["neighbours_accuracy"] == -0.5
    assert values["neighbours_accuracy_stds"] == pytest.approx(-sqrt(2))
    small, large = log(4 / 3), log(4)
    retrained = np.array([small, (small + large) / 2])
    unlearned = np.array([log(1 + np.e), (small + large) / 2])
    gap = unlearned.mean() - retrained.mean()
    assert values["neighbours_loss"] == pytest.approx(gap, rel=1e-5)
    assert values["neighbours_loss_stds"] == pytest.approx(gap / (log(3) / 2 / sqrt(2)), rel=1e-5)


def test_units_that_there_are_not_are_left_out() -> None:
    values = neighbours.audit(models([[-1, -1], [-1, -1]], [[1, 2], [2, 3]]))
    assert set(values) == {"neighbours_accuracy", "neighbours_loss", "neighbours_loss_stds"}
    assert values["neighbours_accuracy"] == -1
