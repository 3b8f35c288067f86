"""The original model with normal noise on every weight (our choice: a control that forgets by damage alone).

w = w_T + N(0, s^2 I). Stores nothing; communicates nothing. Reads no data.
"""

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
CONTROL = "hides"  # in what damages all outputs
ESTIMATE = {"forgotten": 0, "retained": 0}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    std: float = Field(gt=0, examples=[0.01], description="s (our choice: small and large)")


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Add noise; more rounds than one share its variance equally."""
    return task.noisy(state, p.std / task.rounds**0.5, round)
