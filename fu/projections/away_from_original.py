"""FedOSD's gradient projection in post-training: no update moves back towards the original model (Eq. 7, Algorithm 1).

A retained client's update that would reduce the distance to the original model is projected orthogonally to that
direction (Eq. 7) and rescaled to its original length (line 17, which is not part of Eq. 7).
"""

from typing import Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.task import Task

SPAN_TOLERANCE = 1e-6  # of an update's norm: what is left of it below that is rounding of float32


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    where: Literal["conflicting", "always"] = Field(
        "conflicting",
        description="which updates are projected; conflicting: those with g_i . g_a > 0 (Algorithm 1, "
        "line 15); always: all, as in FedOSD's code",
    )


def project(task: Task, p: Params, theta: Tensor, delta: Tensor) -> Tensor:
    """Return the retained updates [m, d] without their part towards the original model (lines 14 to 20).

    g_a = theta - theta_original; g_i . g_a > 0 is delta_i . g_a < 0. At the original model itself (g_a = 0) nothing
    is projected.
    """
    away, full = (theta - task.original_model).double(), delta.double()
    square = away @ away
    if square == 0:
        return delta
    along = full @ away
    moved = torch.ones_like(along, dtype=torch.bool) if p.where == "always" else along < 0
    flat = full - (along / square)[:, None] * away
    lengths, norms = flat.norm(dim=1), full.norm(dim=1)
    # An update along the line alone leaves nothing but rounding, which must not be scaled up.
    scale = torch.where(lengths > SPAN_TOLERANCE * norms, norms / lengths, torch.zeros_like(norms))
    return torch.where(moved[:, None], (flat * scale[:, None]).to(delta.dtype), delta)
