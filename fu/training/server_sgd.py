"""SGD on the server's data alone, without clients: a baseline that SAFARI (B.1) names without printing its numbers.

Implemented as SAFARI at q = 0 (section 4): one step per round. Stores nothing, communicates nothing.
"""

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

ESTIMATE = {"share": 0, "mean": 1}  # for the plan: in no round do clients train
SERVER = True  # it needs data of the server


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    server_lr: float = Field(
        0.1, gt=0, allow_inf_nan=False, description="learning rate of the server's steps: SAFARI B.1"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Take one step on a batch of the server's data (SAFARI Algorithm 1, line 10)."""
    theta = state.theta
    return State(theta + task.federation.server_update(theta, round, p.server_lr, task.server))
