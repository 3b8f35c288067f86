"""The loss functions: their closed forms and derivatives, and that they stay finite."""

import math
import re

import pytest
import torch
from torch import Tensor

from fu.federation.losses import OBJECTIVES, cross_entropy, negative_cross_entropy, resolve, unlearning_cross_entropy
from tests.factories import make_task


def closed_forms(p: Tensor, y: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Return, for probabilities p [n, C], each objective's values [n] and derivatives by the logits [n, C]."""
    right = p.gather(1, y[:, None])
    away = p - torch.nn.functional.one_hot(y, p.shape[1])
    return {
        "cross_entropy": (-right.log().squeeze(1), away),
        "negative_cross_entropy": (right.log().squeeze(1), -away),
        "unlearning_cross_entropy": (-(1 - right / 2).log().squeeze(1), -right / (2 - right) * away),
    }


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_objectives_equal_their_closed_forms(name: str) -> None:
    logits = torch.randn(20, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = torch.arange(20) % 5
    values, derivatives = closed_forms(logits.detach().softmax(1), y)[name]
    found = OBJECTIVES[name](logits, y)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    torch.testing.assert_close(found, values, rtol=0, atol=1e-12)
    torch.testing.assert_close(gradient, derivatives, rtol=0, atol=1e-12)


def test_objectives_are_known_by_the_names_of_their_functions() -> None:
    functions = (cross_entropy, negative_cross_entropy, unlearning_cross_entropy)
    assert [resolve(function.__name__) for function in functions] == list(functions)
    assert [resolve(function) for function in functions] == list(functions)
    assert set(OBJECTIVES) == set(closed_forms(torch.tensor([[0.5, 0.5]]), torch.tensor([0])))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("cross_entrpy", "did you mean 'cross_entropy'? allowed: cross_entropy, "), ("kl", "allowed: cro")],
)
def test_an_unknown_loss_is_one_sentence_with_the_nearest(name: str, hint: str) -> None:
    task = make_task()
    with pytest.raises(ValueError, match=rf"^local_updates: there is no loss {name!r}; {re.escape(hint)}"):
        task.federation.local_updates(task.original_model, [0], 0, name)


@pytest.mark.parametrize("margin", [1e4, 200.0, 90.0, 20.0])
def test_the_unlearning_loss_is_bounded_and_finite_at_both_ends(margin: float) -> None:
    logits = torch.tensor([[margin, 0.0, 0.0], [-margin, 0.0, 0.0]], requires_grad=True)
    values = unlearning_cross_entropy(logits, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert values[0].item() == pytest.approx(math.log(2), abs=1e-6)
    assert values[1].item() == pytest.approx(0, abs=1e-8)
    assert torch.isfinite(gradient).all()
    assert gradient.abs().max() < 1e-6


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_gradients_of_objectives_are_finite_far_from_the_label(name: str) -> None:
    logits = torch.tensor([[1e4, 0.0], [-1e4, 0.0]], requires_grad=True)
    values = OBJECTIVES[name](logits, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    assert torch.isfinite(values).all()
    assert torch.isfinite(gradient).all()
