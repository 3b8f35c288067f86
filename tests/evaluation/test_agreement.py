"""What two models say of the same samples, worked out by hand."""

import math

import pytest
import torch
from torch import Tensor

from fu.evaluation.agreement import disagreement, total_variation


def logits(*shares: tuple[float, ...]) -> Tensor:
    """Return logits whose softmax is these shares, shifted by as much as changes nothing."""
    return torch.tensor([[math.log(share) + 30 * k for share in row] for k, row in enumerate(shares)])


ONE = logits((0.5, 0.3, 0.2), (0.15, 0.8, 0.05), (0.2, 0.2, 0.6), (0.7, 0.2, 0.1))
OTHER = logits((0.3, 0.5, 0.2), (0.3, 0.6, 0.1), (0.2, 0.2, 0.6), (0.1, 0.2, 0.7))


def test_two_models_disagree_on_the_samples_that_they_put_into_different_classes() -> None:
    assert disagreement(ONE, OTHER) == disagreement(OTHER, ONE) == 2 / 4
    assert disagreement(ONE, ONE + 5) == 0


def test_the_total_variation_is_half_the_distance_of_the_shares_averaged_over_samples() -> None:
    assert total_variation(ONE, OTHER) == pytest.approx((0.2 + 0.2 + 0 + 0.6) / 4, abs=1e-6)
    assert total_variation(OTHER, ONE) == total_variation(ONE, OTHER)
    assert total_variation(ONE, ONE + 5) == pytest.approx(0, abs=1e-6)
    sure = torch.tensor([[500.0, -500.0], [0.0, 0.0]])
    assert total_variation(sure, -sure) == 0.5


def test_models_of_other_samples_or_classes_are_not_compared() -> None:
    for compared in (disagreement, total_variation):
        with pytest.raises(ValueError, match=r"logits \[4, 3\] and \[1, 3\] are not of the same samples and classes"):
            compared(ONE, OTHER[:1])
