"""FUPGA: projected gradient ascent (Halimi et al. 2022; FedOSD sections 1 and A.3).

The forgotten client alone trains while unlearning: ascent on CE from the reference w_ref = (n w - w_u) / (n - 1), every
step projected to the ball of radius delta around w_ref; w_u is its last local model. delta is a share of the mean
distance of the original model to ten random models (FedOSD's wording). Stores w_u [d]; communicates one model up and
down per round.
"""

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from fu.federation.task import State, Task, theta_of

needs = {"last_local_models"}


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    radius_share: float = Field(1 / 3, gt=0, description="a third of the mean distance (FedOSD's code)")
    random_models: int = Field(10, gt=0, description="ten random models (FedOSD's code)")


def start(task: Task, p: Params) -> State:
    """Begin at the reference model, the original without the forgotten clients' last part."""
    original, local = task.original_model, task.histories["last_local_models"]["theta"]
    total, gone = len(task.clients), len(task.forgotten)
    reference = (total * original - local.sum(0)) / (total - gone)
    distances = [(task.new_model("random", k) - original).norm() for k in range(p.random_models)]
    radius = p.radius_share * torch.stack(distances).mean()
    return {"theta": reference, "reference": reference, "radius": radius.item()}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round of ascent by the forgotten clients, inside the ball."""
    theta, reference, radius = theta_of(state), state["reference"], state["radius"]
    assert isinstance(reference, Tensor)

    def project(weights: Tensor) -> None:
        offset = weights - reference
        weights.copy_(reference + offset * (radius / offset.norm()).clamp(max=1))

    updates = task.federation.local_updates(theta, task.forgotten, round, "negative_cross_entropy", project=project)
    return {**state, "theta": theta + updates.delta.mean(0)}
