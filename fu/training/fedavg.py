"""FedAvg (McMahan et al. 2017; FedOSD section 2.1): a round's clients train, and the server averages their updates."""

from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from fu.data.partition import Indices
from fu.federation.task import State, Task

STATISTICS = True  # it averages running statistics, too
ESTIMATE = {"mean": 1}  # for the plan: of what clients send, their mean is enough


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    client_weights: Literal["samples", "equal"] = Field(
        "samples", description="weights of the clients; samples: p_i = N_i / N (McMahan et al. 2017); equal: 1 / m"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of the clients that take part; one that is drawn twice counts twice."""
    theta = state.theta
    return State(theta + task.federation.mean_update(theta, task.participants(round), round, p.client_weights))


def trained_on(task: Task, p: Params) -> Indices:
    """Return the rows of the data set that are in any batch of any round, from the names of the draws alone."""
    federation, drawn = task.federation, np.zeros(len(task.federation.data.y), bool)
    for round in range(task.rounds):
        for client in dict.fromkeys(task.participants(round)):
            for order in federation.orders(client, round):
                drawn[federation.data.rows[client][order.numpy()]] = True
    return np.flatnonzero(drawn)
