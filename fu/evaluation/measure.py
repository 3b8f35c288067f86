"""What is measured after a round as well as at the end: accuracies and distance."""

from typing import Literal

import torch
from torch import Tensor

from fu.federation.task import Task


def accuracy(task: Task, theta: Tensor, x: Tensor, y: Tensor) -> float:
    """Return the share of images [n, c, h, w] whose predicted class is y [n]."""
    return (task.federation.logits(theta, x).argmax(1) == y).double().mean().item()


def client_accuracies(task: Task, theta: Tensor, split: str = "test") -> Tensor:
    """Return each retained client's accuracy on its own test (or validation) set: [retained]."""
    pairs = [task.federation.data.held_out(client, split) for client in task.retained]  # type: ignore[arg-type]
    right = task.federation.logits(theta, torch.cat([x for x, _ in pairs])).argmax(1) == torch.cat(
        [y for _, y in pairs]
    )
    parts = right.double().split([len(y) for _, y in pairs])
    return torch.stack([part.mean() for part in parts])


def attack_success_rate(task: Task, theta: Tensor, split: Literal["train", "validation"] = "train") -> float:
    """Return ASR: the accuracy on all training (or validation) samples of the forgotten clients, triggered and with
    flipped labels.
    """
    pairs = [task.federation.data.backdoored(client, split) for client in task.forgotten]
    return accuracy(task, theta, torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs]))


def distance(task: Task, theta: Tensor) -> float:
    """Return ||theta - theta_original||, the Euclidean distance to the original model."""
    return (theta - task.original_model).double().norm().item()


def measure(task: Task, theta: Tensor) -> dict[str, float]:
    """Return the metrics of a round: R-Acc (mean, std, worst, best), ASR, distance to the original model."""
    accuracies = client_accuracies(task, theta)
    out = {
        "r_acc": accuracies.mean().item(),
        "r_acc_std": accuracies.std(correction=0).item(),
        "r_acc_worst": accuracies.min().item(),
        "r_acc_best": accuracies.max().item(),
    }
    if task.forgotten and task.federation.data.partition.trigger.size:
        out["asr"] = attack_success_rate(task, theta)
    if task.original is not None:
        out["distance"] = distance(task, theta)
    return out
