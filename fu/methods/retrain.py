"""Retraining from scratch: FedAvg of the retained clients from a fresh model (FedOSD section 4.1, "Retraining").

Stores nothing; communicates a model up and down per retained client and round. No data of a forgotten client is read.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from fu.federation.local import aggregate
from fu.federation.task import State, Task, theta_of

needs: set[str] = set()
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    client_weights: Literal["samples", "equal"] = Field(
        "samples", description="p_i = N_i / N over the retained clients, as in the original training"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's."""
    return {"theta": task.new_model("retrained")}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of the retained clients."""
    theta = theta_of(state)
    updates = task.federation.local_updates(theta, task.retained, round)
    return {"theta": theta + aggregate(updates, p.client_weights)}
