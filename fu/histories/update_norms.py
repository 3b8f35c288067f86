"""Norms of every client's update, per layer and round: all that FedEraser needs of the updates."""

import torch
from torch import Tensor

from fu.federation.flat import Layout
from fu.federation.task import Record, Task


def record(task: Task, so_far: Record, theta: Tensor, round: int) -> Record:
    """Return `norms` [rounds, m, layers] after a round that began at theta [d]; its updates are known, cost nothing."""
    updates = task.federation.local_updates(theta, task.clients, round, counted=False)
    found = layer_norms(task.federation.layout, updates.delta)[None]
    return {"norms": torch.cat([so_far["norms"], found]) if so_far else found}


def layer_norms(layout: Layout, delta: Tensor) -> Tensor:
    """Return the Euclidean norms [m, layers] of updates [m, d]; weights and biases count as layers of their own."""
    return torch.stack([piece.norm(dim=1) for piece in delta.split(layout.sizes, dim=1)], dim=1)
