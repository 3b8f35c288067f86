"""Fine-tuning: FedAvg on the retained clients from the original model (our choice: the baseline that any unlearning
method must beat).

Stores nothing; communicates one model up and down per client and round. Reads no data of forgotten clients.
"""

from pydantic import BaseModel

from fu.federation.task import State, Task

needs: set[str] = set()
SAMPLES = True  # it can be asked to forget samples, too
STATISTICS = True  # it averages running statistics, too
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
FIDELITY = {"source": "ours", "citation": "FedAvg: McMahan et al. 2017, Algorithm 1"}


class Params(BaseModel, extra="forbid"):
    """There are no hyper-parameters."""


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on the retained clients."""
    return State(state.theta + task.federation.mean_update(state.theta, task.participants(round), round))


def again(task: Task, p: Params, state: State, round: int) -> State:
    """Continue with the next request from the model that met the previous one."""
    return state
