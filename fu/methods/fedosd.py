"""FedOSD: orthogonal steepest descent (Pan et al. 2025, Algorithm 1), and the variants of its ablation (section 4.3).

Unlearning: the forgotten client trains on UCE (Eq. 3), the retained clients on CE. The server moves along d, the vector
closest to -g_u among those orthogonal to every retained g_i, with the norm of g_u (Eq. 5 and 6). The projection in
post-training (Eq. 7) is `fu/projections/away_from_original.py`; M5 omits it.

With delta_i = theta_i - theta = -lr g_i every formula is written in updates, and lr d is a function of them. The
printed mu of Eq. 6 gives a vector of norm ||g_u||^2; the norm that Eq. 5 requires is set directly, also for M3 and M4.
The gradients of several forgotten clients are summed into one g_u; Algorithm 1 has one client, and the authors' code
averages. Stores nothing; communicates one model up and down per client and round.
"""

from typing import Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.ascent import CLIP, clipped
from fu.federation.local import generator
from fu.federation.losses import Objective
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "paper and code", "citation": "Pan et al. 2025, Algorithm 1"}
RANK_TOLERANCE = 2e-7  # of the largest singular value of the normalised updates: below it is rounding of float32
SPAN_TOLERANCE = 1e-6  # of the target's norm: what is left of it below that is rounding of float32 updates
PUBLISHED_TOLERANCE = 1e-6  # absolute, of the singular values of the float32 Gram matrix, in the published code


def undivided(logits: Tensor, labels: Tensor) -> Tensor:
    """-log(1 - p_y), UCE without the division by 2 (M6, appendix B.2): unbounded towards p_y = 1."""
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return logits.logsumexp(1) - others.logsumexp(1)


LOSSES: dict[str, str | Objective] = {
    "uce": "unlearning_cross_entropy",
    "ascent": "negative_cross_entropy",
    "uce-undivided": undivided,
}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    loss: Literal["uce", "ascent", "uce-undivided"] = Field(
        "uce",
        description="the forgotten client's loss: UCE (Eq. 3); M1: gradient ascent on CE; M6: -log(1 - p), UCE "
        "without the division by 2",
    )
    direction: Literal["orthogonal", "target", "common-descent", "random", "as-published-code"] = Field(
        "orthogonal",
        description="Eq. 6 in float64; M2: -g_u; M3: common descent by MGDA (Fliege and Svaiter 2000); M4: a random "
        "solution of G d = 0 with d . g_u < 0; the authors' code: Eq. 6 with GG^T in float32",
    )
    clip: float = Field(0, ge=0, description=f"for ascent (M1): {CLIP}")


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round of Algorithm 1, lines 3 to 8."""
    theta = state.theta
    target = task.federation.local_updates(
        theta, task.forgotten, round, LOSSES[p.loss], regularise=clipped(p.clip)
    ).delta.sum(0)
    if p.direction == "target":
        return State(theta + target)
    retained = task.federation.local_updates(theta, task.retained, round).delta
    if not (torch.isfinite(retained).all() and torch.isfinite(target).all()):
        return State(torch.full_like(theta, torch.nan))
    if p.direction == "as-published-code":
        rate = task.federation.rate(round)
        return State(theta + rate * published_direction(retained / rate, target / rate))
    if p.direction == "common-descent":
        return State(theta + common_descent(retained, target))
    if p.direction == "random":
        drawn = torch.randn(len(theta), generator=generator(task.seed, "direction", round)).to(theta.device)
        return State(theta + random_direction(retained, target, drawn))
    return State(theta + direction(retained, target))


def direction(retained: Tensor, target: Tensor) -> Tensor:
    """Return the vector closest to `target` [d] that is orthogonal to the rows of `retained` [m, d], with its norm.

    Orthogonal to far below max |cos| = 1e-6, whatever the rank (QR in float64: a Gram matrix would square the condition
    number); zero where the target lies in the span of the rows to float32 rounding.
    """
    return scaled(outside(retained, target), target)


def random_direction(retained: Tensor, target: Tensor, drawn: Tensor) -> Tensor:
    """Return the part of `drawn` [d] orthogonal to the rows, turned to the target's side, with its norm (M4)."""
    rest = outside(retained, drawn)
    return scaled(rest if rest @ target.double() >= 0 else -rest, target)


def common_descent(retained: Tensor, target: Tensor) -> Tensor:
    """Return the direction that no client's gradient opposes, the target's included, with the target's norm (M3).

    The minimum-norm point of the convex hull of all updates: its product with each of them is at least its squared
    norm.
    """
    rows = torch.cat([retained, target[None]]).double()
    return scaled(minimum_norm_weights(rows) @ rows, target)


def minimum_norm_weights(rows: Tensor) -> Tensor:
    """Return the weights [m] >= 0 of sum 1 for which ||weights @ rows|| is least (rows [m, d], float64).

    Least-distance programming (Lawson and Hanson 1974, chapter 23): the non-negative least squares u of
    [rows^T; s 1^T] u = (0, s) are a multiple of the weights, whatever s > 0 is. QR first leaves m numbers a row.
    """
    from scipy.optimize import nnls  # a third of a second that M3 alone has to pay

    r = torch.linalg.qr(rows.T, mode="r").R
    lengths = r.norm(dim=0)
    if not lengths.min() > 0:  # a row of zeros is the minimum-norm point itself
        return (lengths == lengths.min()).to(rows.dtype) / (lengths == lengths.min()).sum()
    system = torch.cat([r / lengths.min(), torch.ones_like(r[:1])])  # the shortest row must not drown in the others
    scale = system.norm(dim=0)
    wanted = torch.zeros(len(system), dtype=r.dtype)
    wanted[-1] = 1
    found = nnls((system / scale).cpu().numpy(), wanted.numpy(), maxiter=100 * len(rows))[0]
    weights = torch.from_numpy(found).to(rows.device) / scale
    return weights / weights.sum()


def outside(retained: Tensor, vector: Tensor) -> Tensor:
    """Return the part of `vector` [d] that is orthogonal to the rows of `retained` [m, d], in float64; zero where only
    rounding is left.
    """
    rows, wanted = retained.double(), vector.double()
    lengths = rows.norm(dim=1, keepdim=True)
    rows = rows / torch.where(lengths > 0, lengths, torch.ones_like(lengths))
    q, r = torch.linalg.qr(rows.T)
    u, values, _ = torch.linalg.svd(r)
    basis = q @ u[:, values > RANK_TOLERANCE * values.max()]
    rest = wanted - basis @ (basis.T @ wanted)
    rest = rest - basis @ (basis.T @ rest)  # the second pass removes what rounding left of the first
    return rest if rest.norm() > SPAN_TOLERANCE * wanted.norm() else torch.zeros_like(rest)


def scaled(vector: Tensor, target: Tensor) -> Tensor:
    """Return `vector` [d] with the norm and type of `target` [d]; zero stays zero."""
    length = vector.norm()
    if length <= SPAN_TOLERANCE * target.double().norm():
        return torch.zeros_like(target)
    return (vector * (target.double().norm() / length)).to(target.dtype)


def published_direction(retained: Tensor, target: Tensor) -> Tensor:
    """Return the direction as the authors' code has it: orthogonal to about 1e-4."""
    u, values, vh = torch.linalg.svd(retained @ retained.T)
    inverse = torch.where(values > PUBLISHED_TOLERANCE, 1 / values, values)
    rest = target - retained.T @ (vh.T @ (inverse * (u.T @ (retained @ target))))
    length = rest.norm()
    return rest * (target.norm() / torch.where(length > 0, length, torch.ones_like(length)))
