"""MoDe: momentum degradation and memory guidance (Zhao et al. 2023; FedOSD section 4.1).

A second model starts at random and is trained by FedAvg on the retained clients. In the first rounds each brings one
round of it, then degradation, w <- lambda w + (1 - lambda) w_de, then guidance: one round of FedAvg on w in which the
forgotten client trains on the classes that the second model gives its data, the retained on their labels. The last
rounds are guidance alone. The paper that introduced it is not at hand: the formula is fairly sure, the pseudo-labels
likely, how many rounds each part has is our reading. Stores a second model [d]; communicates two models up and down per
retained client and round, one up and two down per forgotten one.
"""

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.func import functional_call

from fu.federation.local import FLOAT_BYTES, Updates, aggregate
from fu.federation.task import State, Task, theta_of

needs: set[str] = set()


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    lambda_: float = Field(0.95, ge=0, le=1, alias="lambda", description="FedOSD appendix B.1: .95")
    degradation_share: float = Field(
        0.8, ge=0, le=1, description="share of the rounds with degradation, the rest is guidance alone: our choice"
    )


def start(task: Task, p: Params) -> State:
    """Begin at the original model, with a fresh second one."""
    return {"theta": task.original_model, "second": task.new_model("degradation")}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round: degradation in the first rounds, and guidance."""
    theta, second = theta_of(state), state["second"]
    assert isinstance(second, Tensor)
    if round < p.degradation_share * task.rounds:
        second = second + aggregate(task.federation.local_updates(second, task.retained, round), "samples")
        theta = degrade(theta, second, p.lambda_)
    return {"theta": theta + guidance(task, theta, second, round), "second": second}


def degrade(theta: Tensor, second: Tensor, momentum: float) -> Tensor:
    """Return lambda w + (1 - lambda) w_de."""
    return theta + (1 - momentum) * (second - theta)


def guidance(task: Task, theta: Tensor, second: Tensor, round: int) -> Tensor:
    """Return the mean update [d] of a round in which the forgotten clients train on the second model's classes."""
    federation = task.federation
    views = federation.layout.views(second)

    @torch.no_grad()
    def relabel(x: Tensor, y: Tensor) -> Tensor:
        training = federation.model.training
        federation.model.eval()  # no dropout, and none of its draws
        logits: Tensor = functional_call(federation.model, views, (x,))
        federation.model.train(training)
        return logits.argmax(1)

    gone = federation.local_updates(theta, task.forgotten, round, relabel=relabel)
    kept = federation.local_updates(theta, task.retained, round)
    federation.cost.add(bytes_down=len(task.forgotten) * federation.layout.size * FLOAT_BYTES)
    both = (torch.cat([getattr(kept, name), getattr(gone, name)]) for name in ("delta", "sizes", "losses"))
    return aggregate(Updates(*both), "samples")
