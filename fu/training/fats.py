"""FATS: FedAvg with sampling that makes exact unlearning cheap (Tao et al. 2024, Algorithm 1; `fu/methods/fats.py`).

In every round K clients are drawn with replacement. Each performs E steps of SGD, every step on b of its samples drawn
without replacement and independently of the other steps; the server averages over K. A client drawn twice trains once
and has weight 2 / K (section 5.2). K, E and b are the settings `clients_per_round`, `local_steps` and `batch_size`;
with M clients of N samples and R rounds, rho_C = K R / M and rho_S = b K R E / (M N) (section 4.1). Stores the model at
the start of every `keep_every`-th round; the draws are derived again when needed. Communicates one model up and down
per distinct client and round.
"""

import numpy as np
from pydantic import BaseModel, Field

from fu.data.partition import Indices
from fu.federation.sampled import drawn, trained
from fu.federation.sampling import History
from fu.federation.task import State, Task

ESTIMATE = {"mean": 1}  # for the plan: of what clients send, their mean is enough
NEEDS = ("clients_per_round", "local_steps", "with_replacement")  # of settings.training
KEEPS = "keep_every"  # the hyper-parameter that says how many models are kept, for the plan and the stages


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    keep_every: int | None = Field(
        1,
        ge=1,
        description="number of rounds between two stored models, each from the start of a round (Algorithm 1, line "
        "19: 1); null: only the first. Rounds in between are trained again with the same draws",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on what the history says."""
    return stepped(task, state, round)


def stepped(task: Task, state: State, round: int, *, distinct: bool = False) -> State:
    """Keep the model before a round if it is to be kept, and return the one after it; `distinct`: as in `trained`."""
    if task.kept is not None and task.original is None:
        task.kept.write(round, state.theta)
    return State(trained(task, history(task), state.theta, round, distinct=distinct))


def trained_on(task: Task, p: Params) -> Indices:
    """Return the rows of the data set that are in any batch of any round, as the history says."""
    found, drawn = history(task), np.zeros(len(task.federation.data.y), bool)
    for round in range(task.rounds):
        for client in dict.fromkeys(found.clients(round)):
            for batch in found.batches(round, client):
                drawn[batch] = True
    return np.flatnonzero(drawn)


def history(task: Task) -> History:
    """Return the sampling history of a training from the start."""
    data = task.federation.data
    name = "history", len(data.request.waves) if data.request else 0
    if name not in task.memory:
        task.memory[name] = drawn(task, task.rounds, task.population, data.rows, task.federation.stream)
    found: History = task.memory[name]
    return found
