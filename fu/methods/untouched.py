"""No unlearning: the original model, unchanged (our choice: a control that forgets nothing).

Stores nothing; communicates nothing. Reads no data.
"""

from pydantic import BaseModel

from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
SAMPLES = True  # it can be asked to forget samples, too
REQUESTS = True  # it can restart at every request: its steps do not depend on the number of rounds
STATISTICS = True  # it leaves them as they are
CONTROL = True  # it stands still, at no cost: an evaluation must tell it from a method that forgets
ESTIMATE = {"forgotten": 0, "retained": 0}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """There are no hyper-parameters."""


def start(task: Task, p: Params) -> State:
    """Return the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Leave it as it is."""
    return state


def done(state: State) -> bool:
    """Whether nothing is left to compute: from the start."""
    return True
