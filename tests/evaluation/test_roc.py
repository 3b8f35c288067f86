"""Area and true positives of score lists, worked out by hand."""

import pytest
import torch
from sklearn.metrics import roc_auc_score, roc_curve

from fu.evaluation.roc import area, caught


@pytest.mark.parametrize(
    ("members", "others", "expected"),
    [
        ([2.0, 3.0], [0.0, 1.0], 1.0),
        ([0.0, 1.0], [2.0, 3.0], 0.0),
        ([1.0, 3.0], [0.0, 2.0], 3 / 4),
        ([1.0], [1.0], 1 / 2),
        ([1.0, 2.0, 2.0], [2.0, 0.0], (0.5 * 2 + 1 * 3) / 6),
    ],
)
def test_the_area_is_the_share_of_pairs_won(members: list[float], others: list[float], expected: float) -> None:
    assert area(torch.tensor(members), torch.tensor(others)).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 1 / 4), (0.1, 1 / 4), (0.2, 2 / 4), (0.4, 3 / 4), (0.6, 3 / 4), (0.79, 3 / 4), (0.8, 1.0)],
)
def test_few_may_be_accused_wrongly(share: float, expected: float) -> None:
    """Of five others 9, 7, 5, 3 and 1; members 10, 8, 6 and 2."""
    members, others = torch.tensor([2.0, 8.0, 10.0, 6.0]), torch.tensor([5.0, 9.0, 1.0, 7.0, 3.0])
    assert caught(members, others, share).item() == expected


def test_a_member_as_high_as_a_non_member_is_not_caught() -> None:
    assert caught(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0]), 0.01).item() == 0.0


def test_several_attacks_at_once_are_as_one_after_another_and_as_scikit_learn_has_them() -> None:
    random = torch.Generator().manual_seed(0)
    members, others = (torch.randint(20, (5, 200), generator=random).float() for _ in range(2))
    members += 2
    for k in range(5):
        truth, scores = [1] * 200 + [0] * 200, torch.cat([members[k], others[k]])
        assert area(members, others)[k].item() == pytest.approx(roc_auc_score(truth, scores))
        wrong, right, _ = roc_curve(truth, scores, drop_intermediate=False)
        assert caught(members, others, 0.1)[k].item() == pytest.approx(right[wrong <= 0.1].max())
