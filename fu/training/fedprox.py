"""FedProx (Li et al. 2020, Algorithm 2): FedAvg whose clients stay near the global model w_t.

Client k minimises F_k(w) + (mu / 2) ||w - w_t||^2, so that each of its steps has the gradient g + mu (w - w_t). All
clients take their full number of steps; the paper also lets slow ones take fewer. As in FedAvg, clients are drawn
uniformly and weighted by samples; Algorithm 2 draws by p_k and weights equally. At mu = 0 it is FedAvg. Histories
record FedAvg's updates, so none can be recorded. Communicates one model up and down per client and round.
"""

from pydantic import BaseModel, Field
from torch import Tensor

from fu.data.partition import Indices
from fu.federation.local import aggregate
from fu.federation.task import State, Task
from fu.training import fedavg

RECORDS = False  # histories would record other updates than these


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    mu: float = Field(
        0.1,
        ge=0,
        description="weight of the proximal term: our choice, between the .001 and 1 of Li et al. 2020, section 5",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of the clients that take part; one that is drawn twice counts twice."""
    theta = state.theta

    def proximal(weights: Tensor, gradient: Tensor) -> None:
        gradient.add_(weights - theta, alpha=p.mu)

    updates = task.federation.local_updates(
        theta, task.participants(round), round, regularise=proximal if p.mu else None
    )
    return State(theta + aggregate(updates, "samples"))


def trained_on(task: Task, p: Params) -> Indices:
    """Return the rows of the data set that are in any batch of any round, as by FedAvg."""
    return fedavg.trained_on(task, fedavg.Params())
