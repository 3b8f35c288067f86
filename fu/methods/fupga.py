"""FUPGA: projected gradient ascent (Halimi et al. 2022; FedOSD sections 1 and A.3, appendix B.1).

During unlearning only the forgotten client trains: ascent on CE from the reference w_ref = (n w0 - w_u) / (n - 1), with
every step projected onto the ball of radius delta around w_ref; w0 is the original model and w_u the client's last
local model. FedOSD's delta is a third of the mean distance from w0 to ten random models. The code of Halimi et al.
measures from w_ref, takes the root of a third of the mean squared distance, uses momentum, and stops permanently once
the local model is far enough from w_u (by a summary of the paper, vicw0ng-hk/feul: once validation accuracy is below a
threshold). w_ref is the other clients' mean where all weigh the same, as there. Several forgotten clients count
equally. The steps of a round after a client has stopped count as steps, though they change nothing. Stores w_u [d];
communicates one model up and down per round.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.ascent import CLIP, clipped
from fu.federation.task import State, Task

needs = {"last_local_models"}
FIDELITY = {
    "source": "second-hand",
    "citation": "Halimi et al. 2022, as FedOSD appendix B.1 describes it; `as-original-code`: the authors' notebook",
    "not_read": "Halimi et al. 2022",
}
ESTIMATE = {"forgotten": 1, "retained": 0}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    radius: Literal["from-original", "from-reference"] = Field(
        "from-original",
        description="from-original: share * mean ||w_random - w0|| (FedOSD appendix B.1); from-reference: "
        "sqrt(share * mean ||w_random - w_ref||^2) (the code of Halimi et al.)",
    )
    radius_share: float = Field(1 / 3, gt=0, description="share of the mean distance: a third (FedOSD appendix B.1)")
    random_models: int = Field(10, gt=0, description="number of random models: ten (FedOSD appendix B.1)")
    clip: float = Field(0, ge=0, description=CLIP)
    momentum: float = Field(
        0, ge=0, lt=1, description="momentum of the ascent, reset to zero in each round (FedOSD section 4.1: SGD)"
    )
    stop_distance: float = Field(
        0,
        ge=0,
        description="squared distance to w_u beyond which the client stops permanently; 0: it never stops (FedOSD B.1)",
    )


@dataclass(frozen=True)
class Bounded(State):
    """The model [d], the centre [d] and radius of its ball, and whether the clients have stopped for good."""

    reference: Tensor
    radius: float
    stopped: bool = False


def start(task: Task, p: Params) -> Bounded:
    """Begin at the reference model, the original without the forgotten clients' last part."""
    original, local = task.original_model, local_models(task)
    total, gone = len(task.clients), len(task.forgotten)
    reference = (total * original - local.sum(0)) / (total - gone)
    centre = original if p.radius == "from-original" else reference
    distances = torch.stack([(task.new_model("random", k) - centre).norm() for k in range(p.random_models)])
    if p.radius == "from-original":
        radius = p.radius_share * distances.mean()
    else:
        radius = (p.radius_share * distances.square().mean()).sqrt()
    return Bounded(reference, reference, radius.item())


def step(task: Task, p: Params, state: Bounded, round: int) -> Bounded:
    """One round of ascent by the forgotten clients, inside the ball; nothing once they have stopped."""
    if state.stopped:
        return state
    deltas, stopped = [], []
    for client, local in zip(task.forgotten, local_models(task), strict=True):
        ascent = Ascent(p, state.reference, state.radius, local)
        updates = task.federation.local_updates(
            state.theta, [client], round, "negative_cross_entropy", regularise=ascent.accelerate, project=ascent.project
        )
        deltas.append(updates.delta[0])
        stopped.append(ascent.rest is not None)
    return replace(state, theta=state.theta + torch.stack(deltas).mean(0), stopped=all(stopped))


def local_models(task: Task) -> Tensor:
    """Return the forgotten clients' last local models [k, d] out of the history, which holds theirs or everybody's."""
    recorded = task.histories["last_local_models"]["theta"]
    return recorded if len(recorded) == len(task.forgotten) else recorded[task.places(task.forgotten)]


class Ascent:
    """One client's steps of a round: clip and momentum before, the ball and the stop after."""

    def __init__(self, p: Params, reference: Tensor, radius: float, local: Tensor) -> None:
        """Begin without velocity."""
        self.p, self.reference, self.radius, self.local = p, reference, radius, local
        self.clip = clipped(p.clip)
        self.velocity: Tensor | None = None
        self.rest: Tensor | None = None

    def accelerate(self, weights: Tensor, gradient: Tensor) -> None:
        """Clip the gradient and add what is left of the velocity."""
        if self.clip:
            self.clip(weights, gradient)
        if self.p.momentum:
            if self.velocity is not None:
                gradient.add_(self.velocity, alpha=self.p.momentum)
            self.velocity = gradient.clone()  # training's momentum is added to the gradient in place, after this

    def project(self, weights: Tensor) -> None:
        """Bring the weights back into the ball, or to where they came to rest."""
        if self.rest is not None:
            weights.copy_(self.rest)
            return
        offset = weights - self.reference
        weights.copy_(self.reference + offset * (self.radius / offset.norm()).clamp(max=1))
        if self.p.stop_distance and (weights - self.local).square().sum() > self.p.stop_distance:
            self.rest = weights.clone()
