"""Membership advantage on numbers worked out by hand."""

import numpy as np
import pytest

from fu.audits import members
from fu.audits.models import FORGOTTEN, HELD_OUT, TEST, TRAIN
from tests.audits.synthetic import models_of

HIGH, LOW = [1.0, 2, 3], [0.0, 2, -1]


def kind(*advantages: int) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Return a model for each: members have lower losses (1), higher ones (-1), or the same (0)."""
    train = np.array([{1: HIGH, 0: LOW, -1: LOW}[one] for one in advantages])
    test = np.array([{1: LOW, 0: LOW, -1: HIGH}[one] for one in advantages])
    return {TRAIN: train, TEST: test, FORGOTTEN: train, HELD_OUT: test}


def test_the_audit_by_hand() -> None:
    # of nine pairs 2, 2.5 and 3 are won: 2 * 7.5 / 9 - 1 = 2/3
    values = members.audit(models_of(kind(1, 1), kind(1, 0), kind(-1, 0)))
    assert values == pytest.approx(
        {
            "members_unlearned": 2 / 3,
            "members_retrained": 1 / 3,
            "members_original": -1 / 3,
            "members_gap": 1 / 3,
            "members_gap_low": 0,
            "members_gap_high": 2 / 3,
            "members_gap_worse": 3 / 4,  # advantages 2/3, 2/3 against 2/3, 0: two ties
            "members_gap_p": 3 / 6,  # any two of the three models with 2/3
        }
    )
