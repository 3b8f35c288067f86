"""FedOSD: orthogonal steepest descent (Pan et al. 2025, Algorithm 1).

Unlearning: the forgotten client trains on UCE (Eq. 3), the retained on CE; the server moves along d, the vector closest
to -g_u among those orthogonal to every retained g_i, with the norm of g_u (Eq. 5 and 6). Post-training: a retained
update that would pull back to the original model is projected off that line (Eq. 7) and rescaled (line 17).

With delta_i = theta_i - theta = -lr g_i every formula is written in updates, and lr d = direction(delta). The printed
mu of Eq. 6 gives a vector of norm ||g_u||^2; the norm that Eq. 5 asks for is set directly. Several forgotten clients
are summed into one g_u. Stores nothing; communicates one model up and down per client and round.
"""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from fu.federation.task import State, Task, theta_of

needs: set[str] = set()
RANK_TOLERANCE = 2e-7  # of the largest singular value of the normalised updates: below it is rounding of float32
SPAN_TOLERANCE = 1e-6  # of the target's norm: what is left of it below that is rounding of float32 updates
PUBLISHED_TOLERANCE = 1e-6  # absolute, of the singular values of the float32 Gram matrix, in the published code


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    gram: Literal["float64", "as-published-code"] = Field(
        "float64",
        description="orthogonalisation in float64 with relative tolerance (ours), or the authors' code: GG^T in "
        "float32, singular values below 1e-6 left as they are instead of dropped",
    )
    project: Literal["conflicting", "always"] = Field(
        "conflicting", description="Algorithm 1, line 15: only where g_i . g_a > 0; the authors' code: always"
    )


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return {"theta": task.original_model}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round of Algorithm 1, lines 3 to 8."""
    theta = theta_of(state)
    retained = task.federation.local_updates(theta, task.retained, round).delta
    target = task.federation.local_updates(theta, task.forgotten, round, "unlearning_cross_entropy").delta.sum(0)
    if p.gram == "float64":
        return {"theta": theta + direction(retained, target)}
    rate = task.federation.rate(round)
    return {"theta": theta + rate * published_direction(retained / rate, target / rate)}


def direction(retained: Tensor, target: Tensor) -> Tensor:
    """Return the vector closest to `target` [d] that is orthogonal to the rows of `retained` [m, d], with its norm.

    Orthogonal to far below max |cos| = 1e-6, whatever the rank (QR in float64: a Gram matrix would square the condition
    number); zero where the target lies in the span of the rows to float32 rounding.
    """
    rows, wanted = retained.double(), target.double()
    if not (torch.isfinite(rows).all() and torch.isfinite(wanted).all()):
        return torch.full_like(target, torch.nan)
    lengths = rows.norm(dim=1, keepdim=True)
    rows = rows / torch.where(lengths > 0, lengths, torch.ones_like(lengths))
    q, r = torch.linalg.qr(rows.T)
    u, values, _ = torch.linalg.svd(r)
    basis = q @ u[:, values > RANK_TOLERANCE * values.max()]
    rest = wanted - basis @ (basis.T @ wanted)
    rest = rest - basis @ (basis.T @ rest)  # the second pass removes what rounding left of the first
    length = rest.norm()
    if length <= SPAN_TOLERANCE * wanted.norm():
        return torch.zeros_like(target)
    return (rest * (wanted.norm() / length)).to(target.dtype)


def published_direction(retained: Tensor, target: Tensor) -> Tensor:
    """Return the direction as the authors' code has it: orthogonal to about 1e-4."""
    if not (torch.isfinite(retained).all() and torch.isfinite(target).all()):
        return torch.full_like(target, torch.nan)
    u, values, vh = torch.linalg.svd(retained @ retained.T)
    inverse = torch.where(values > PUBLISHED_TOLERANCE, 1 / values, values)
    rest = target - retained.T @ (vh.T @ (inverse * (u.T @ (retained @ target))))
    length = rest.norm()
    return rest * (target.norm() / torch.where(length > 0, length, torch.ones_like(length)))


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
    moved = torch.ones_like(along, dtype=torch.bool) if p.project == "always" else along < 0
    flat = full - (along / square)[:, None] * away
    lengths, norms = flat.norm(dim=1), full.norm(dim=1)
    # An update along the line alone leaves nothing but rounding, which must not be scaled up.
    scale = torch.where(lengths > SPAN_TOLERANCE * norms, norms / lengths, torch.zeros_like(norms))
    return torch.where(moved[:, None], (flat * scale[:, None]).to(delta.dtype), delta)
