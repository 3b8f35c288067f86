"""PUF: one round in which the forgotten clients' update is subtracted, then FedAvg (Mora et al. 2025).

In the first round every client trains as usual, and the server applies

    w <- w + (sum_R n_i Delta_i - eta_u sum_U n_u Delta_u) / (sum_R n_i + sum_U n_u),

with Delta a client's update, R the retained and U the forgotten clients, n numbers of samples and eta_u the unlearning
rate. In PUF-Special the forgotten clients alone take part in that round, w <- w - eta_u sum_U n_u Delta_u / sum_U n_u.
All other rounds are FedAvg on the retained clients. The authors' code was read; of the paper (arXiv 2504.05822) the
abstract. There the learning rate continues to decay from where the training ended, and the rounds end once the test
accuracy reaches that of retraining; here rate and number of rounds are the scenario's.

Stores nothing; communicates one model up and down per client and round.
"""

from typing import Literal

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

needs: set[str] = set()
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; the forgotten train in one
FIDELITY = {
    "source": "code",
    "citation": "Mora et al. 2025, arXiv 2504.05822: abstract; authors' code",
    "not_read": "the full text",
}
RATES = {"regular": 20, "special": 2}  # eta_u by kind of round (authors' code on CIFAR-10)


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    unlearning_rate: float | None = Field(
        None, ge=0, description="eta_u; null: that of `round` (authors' code on CIFAR-10: 20, 2)"
    )
    round: Literal["regular", "special"] = Field(
        "regular",
        description="who takes part in the first round (authors' code has both); regular: all clients; special: the "
        "forgotten ones alone",
    )


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Subtract the forgotten clients' mean update in the first round; FedAvg on the retained ones."""
    theta, federation = state.theta, task.federation
    clients = task.participants(round) if round or p.round == "regular" else []
    kept = federation.mean_update(theta, clients, round) if clients else theta.new_zeros(len(theta))
    if round:
        return State(theta + kept)
    rate = RATES[p.round] if p.unlearning_rate is None else p.unlearning_rate
    gone = federation.mean_update(theta, task.forgotten, round)
    retained, forgotten = (sum(map(federation.data.size, some)) for some in (clients, task.forgotten))
    return State(theta + (retained * kept - rate * forgotten * gone) / (retained + forgotten))
