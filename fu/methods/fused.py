"""FUSED: sparse adapters of the most sensitive layers overwrite the forgotten knowledge (Zhong et al. 2025).

The model w is frozen. The most sensitive layers get an adapter A, zero at first, of which a random share of entries may
change; the retained clients train A by FedAvg, and the model is w + A. Dropping A restores w. In our reading the most
sensitive layers change most (mean |Delta| over weights and clients) when the retained clients train from w for a round.
The abstract, summaries and the authors' code were read. That code has such a measure, but its FUSED never computes it:
it names the layers by hand (LeNet-5: the first convolution and the head), gives them low-rank adapters (LoRA, rank 16,
dropout .1), which in these two layers leave every weight free (`density: 1`), and averages clients equally.

Stores a mask [d]; communicates one model up and down per client of the first round, and per client and round the
numbers that an adapter may change.
"""

from dataclasses import dataclass, replace

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.flat import Layout
from fu.federation.local import FLOAT_BYTES, aggregate, generator
from fu.federation.task import State, Task

needs: set[str] = set()
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan
FIDELITY = {
    "source": "second-hand",
    "citation": "Zhong et al., CVPR 2025, arXiv 2502.20709: abstract, summaries; authors' code, with other adapters",
    "not_read": "the full text",
}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    layers: int = Field(2, ge=1, description="number of layers with an adapter (authors' code: two of LeNet-5's five)")
    density: float = Field(
        0.1,
        gt=0,
        le=1,
        description="share of an adapter's entries that may change: our choice, as the abstract calls adapters sparse",
    )


@dataclass(frozen=True)
class Adapted(State):
    """The model w + A [d], and which of its numbers A may change (1 or 0) [d]."""

    mask: Tensor


def start(task: Task, p: Params) -> Adapted:
    """Begin at the original model, with empty adapters of its most sensitive layers."""
    theta, layout = task.original_model, task.federation.layout
    clients = [*dict.fromkeys(task.participants(0))]
    delta = task.federation.local_updates(theta.clone(), clients, 0).delta  # not side by side with the first round
    mask = torch.zeros_like(theta)
    views, random = layout.views(mask), generator(task.seed, "adapters")
    for name in sensitive(layout, delta)[: p.layers]:
        drawn = torch.rand(views[name].shape, generator=random) < p.density
        views[name].copy_(drawn)
    return Adapted(theta, mask)


def step(task: Task, p: Params, state: Adapted, round: int) -> Adapted:
    """Train the adapters one round on the retained clients."""
    chosen, original = state.mask.bool(), task.original_model

    def hold(weights: Tensor) -> None:
        weights.copy_(torch.where(chosen, weights, original))

    clients = task.participants(round)
    updates = task.federation.local_updates(state.theta, clients, round, project=hold)
    rest = int((~chosen).sum()) * len({*clients}) * FLOAT_BYTES  # of which nothing is sent
    task.federation.cost.add(bytes_up=-rest, bytes_down=-rest)
    return replace(state, theta=state.theta + aggregate(updates, "samples"))


def sensitive(layout: Layout, delta: Tensor) -> list[str]:
    """Return the names of the layers' weights by mean absolute change of the updates [m, d], the largest first."""
    change = {name: view.abs().mean().item() for name, view in layout.views(delta).items() if view.dim() > 2}
    return sorted(change, key=lambda name: -change[name])
