"""The loss functions shared by methods: name -> per-sample loss of logits [n, C] and labels [n].

Edits here affect all training; a loss of a single method belongs in that method's file.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from fu.errors import nearest


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """CE = -log p_y (FedOSD Eq. 1)."""
    return F.cross_entropy(logits, labels, reduction="none")


def negative_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-CE, whose descent is gradient ascent on CE (FedOSD section 2.2)."""
    return -F.cross_entropy(logits, labels, reduction="none")


def unlearning_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """UCE = -log(1 - p_y / 2) (FedOSD Eq. 3), bounded by 0 and log 2."""
    log_p = F.log_softmax(logits, dim=1).gather(1, labels[:, None]).squeeze(1)
    return -torch.log1p(-torch.exp(log_p - math.log(2.0)))


Objective = Callable[[Tensor, Tensor], Tensor]
OBJECTIVES: dict[str, Objective] = {
    function.__name__: function for function in (cross_entropy, negative_cross_entropy, unlearning_cross_entropy)
}


def resolve(objective: str | Objective) -> Objective:
    """Return the loss function that a name stands for, or the function itself; `ValueError` for an unknown name."""
    if not isinstance(objective, str):
        return objective
    if objective not in OBJECTIVES:
        raise ValueError(f"local_updates: there is no loss {objective!r}{nearest(objective, OBJECTIVES)}")
    return OBJECTIVES[objective]
