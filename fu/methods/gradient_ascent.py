"""Gradient ascent: the forgotten clients ascend their own cross-entropy, without a constraint (our choice: the simplest
method that uses their data).

The forgotten clients train as usual, on -CE, and their updates are averaged. As CE has no upper bound, the learning
rate and the number of rounds alone decide where it ends. Stores nothing; communicates one model up and down per
forgotten client and round.
"""

from pydantic import BaseModel, Field

from fu.federation.ascent import CLIP, clipped
from fu.federation.local import aggregate
from fu.federation.task import State, Task

needs: set[str] = set()
ESTIMATE = {"forgotten": 1, "retained": 0}  # how often they train in a round, for the plan
FIDELITY = {"source": "ours", "citation": "FedOSD section 2.2 describes it"}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    clip: float = Field(0, ge=0, description=CLIP)


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round of ascent by the forgotten clients."""
    updates = task.federation.local_updates(
        state.theta, task.forgotten, round, "negative_cross_entropy", regularise=clipped(p.clip)
    )
    return State(state.theta + aggregate(updates, "samples"))
