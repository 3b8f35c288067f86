"""Measurements that several evaluators share: client accuracies, attack success, distance."""

from typing import Literal

import torch
from torch import Tensor

from fu.evaluation.context import Context


def client_accuracies(context: Context, split: Literal["validation", "test"] = "test") -> Tensor:
    """Return each retained client's accuracy on its own test (or validation) set: [retained]."""
    data = context.data
    pairs = [data.held_out(client, split) for client in data.retained]
    predicted = context.network.logits(context.theta, torch.cat([x for x, _ in pairs])).argmax(1)
    right = predicted == torch.cat([y for _, y in pairs])
    parts = right.double().split([len(y) for _, y in pairs])
    return torch.stack([part.mean() for part in parts])


def attack_success_rate(context: Context, split: Literal["train", "validation"] = "train") -> float:
    """Return ASR: the accuracy on all training (or validation) samples of the forgotten clients, with trigger and
    flipped labels.
    """
    return context.accuracy(*triggered_samples(context, split))


def triggered_samples(context: Context, split: Literal["train", "validation"] = "train") -> tuple[Tensor, Tensor]:
    """Return all training (or validation) images [n, c, h, w] of the forgotten clients with the trigger, and their
    flipped labels [n].
    """
    pairs = [context.data.backdoored(client, split) for client in context.data.partition.attacked.tolist()]
    x, y = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    return x, y


def distance(context: Context) -> float:
    """Return ||theta - theta_original||, the Euclidean distance of the parameters to those of the original model."""
    assert context.original is not None
    return (context.theta - context.original)[: context.network.layout.parameters].double().norm().item()
