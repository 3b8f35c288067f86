"""FedEraser: retraining that takes its step lengths from the original training (Liu et al. 2021; FedOSD section 4.1).

From the initial model of the original training, in each calibration round every retained client trains a share of its
local steps; layer by layer its update U' is given the length that its update U had in a stored round, ||U|| U' /
||U'||, and these are averaged. We could not consult Liu et al.: the rule, the interval and their ratio of one half are
as later papers describe them; mirrors of the authors' program differ (`federaser_as_published.py`). FedOSD's Table 12
(.99 to 1.00 of retraining's time) means full local training, our default. Every round's norms are stored, and those
used follow from the number of calibration rounds: 2000 in 200 are every tenth. Stores m x layers numbers per round;
communicates one model up and down per retained client and round.
"""

import math

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from fu.federation.flat import Layout
from fu.federation.local import Federation, Updates, aggregate
from fu.federation.task import State, Task

needs = {"update_norms"}
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    interval: int | None = Field(
        None,
        gt=0,
        description="stored rounds per calibration round; null: stored over calibration rounds (FedOSD "
        "section 4.1: 10)",
    )
    calibration_ratio: float = Field(
        1.0, gt=0, le=1, description="share of the local steps: all (FedOSD Table 12; Liu et al. 2021: a half)"
    )


def start(task: Task, p: Params) -> State:
    """Begin at the model that the original training began from."""
    return State(task.new_model("original"))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One calibration round of the retained clients."""
    theta = state.theta
    norms = task.histories["update_norms"]["norms"]
    interval = p.interval or max(1, len(norms) // task.rounds)
    stored = norms[min(round * interval, len(norms) - 1), task.places(task.retained)]
    updates = calibration(task.federation, theta, task.retained, round, p.calibration_ratio)
    delta = calibrated(task.federation.layout, updates.delta, stored)
    return State(theta + aggregate(Updates(delta, updates.sizes, updates.losses), "samples"))


def calibration(federation: Federation, theta: Tensor, clients: list[int], round: int, ratio: float) -> Updates:
    """Return the clients' updates after a share of their local steps, at least one."""
    wanted = [math.ceil(ratio * federation.steps_of(client, None) - 1e-9) for client in clients]
    parts = {
        steps: federation.local_updates(
            theta, [c for c, n in zip(clients, wanted, strict=True) if n == steps], round, steps=steps
        )
        for steps in sorted(set(wanted))
    }
    order = [place for steps in parts for place, n in enumerate(wanted) if n == steps]
    back = torch.tensor(order, device=theta.device).argsort()
    return Updates(
        *(torch.cat([getattr(part, name) for part in parts.values()])[back] for name in ("delta", "sizes", "losses"))
    )


def calibrated(layout: Layout, delta: Tensor, norms: Tensor) -> Tensor:
    """Return updates [m, d] whose layers have the given norms [m, layers]; a layer that did not move stays."""
    pieces = []
    for piece, wanted in zip(delta.split(layout.sizes, dim=1), norms.T, strict=True):
        length = piece.norm(dim=1)
        pieces.append(piece * torch.where(length > 0, wanted / length, torch.zeros_like(length))[:, None])
    return torch.cat(pieces, dim=1)
