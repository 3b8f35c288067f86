"""FedAvg (McMahan et al. 2017; FedOSD section 2.1): all clients train, their updates are averaged."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from fu.federation.local import aggregate
from fu.federation.task import State, Task, theta_of


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    client_weights: Literal["samples", "equal"] = Field(
        "samples", description="p_i = N_i / N (McMahan et al. 2017), or 1 / m"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return {"theta": task.new_model("original")}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of every client."""
    theta = theta_of(state)
    updates = task.federation.local_updates(theta, task.clients, round)
    return {"theta": theta + aggregate(updates, p.client_weights)}
