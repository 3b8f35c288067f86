"""Disagreement of two models on the same samples (our choice: a distance of parameters does not measure it)."""

from torch import Tensor


def disagreement(one: Tensor, other: Tensor) -> float:
    """Return the share of samples that two models put into different classes, by their logits [n, C]."""
    _check(one, other)
    return (one.argmax(1) != other.argmax(1)).double().mean().item()


def total_variation(one: Tensor, other: Tensor) -> float:
    """Return the mean over samples of 1/2 sum_c |p_c - q_c|, in [0, 1], of the softmax of two models' logits [n, C]."""
    _check(one, other)
    return ((one.double().softmax(1) - other.double().softmax(1)).abs().sum(1) / 2).mean().item()


def _check(one: Tensor, other: Tensor) -> None:
    if one.shape != other.shape:
        raise ValueError(f"logits {[*one.shape]} and {[*other.shape]} are not of the same samples and classes")
