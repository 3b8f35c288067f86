"""SAFARI (Algorithm 1): with probability q a round is one of FedAvg, otherwise one SGD step on the server's data.

The server's step uses one batch. Stores nothing; a client round communicates what FedAvg does, a server round nothing.
Line 6 starts clients from x_t, where x_r is meant, and counts K or K + 1 local steps; ours are the epochs (B.1: one) or
steps in the settings. Our choice: a round that is a client round at some q is one at every larger q, so that runs with
different q differ in as few rounds as possible.
"""

from typing import Literal

from pydantic import BaseModel, Field

from fu.federation.task import State, Task
from fu.seeds import derive_integer
from fu.training import fedavg, server_sgd

ESTIMATE = {"share": "q", "mean": 1}  # for the plan: in which rounds clients train, and that their mean is enough
SERVER = True  # it needs data of the server


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    q: float = Field(ge=0, le=1, examples=[0.5], description="probability of a client round; not printed in the paper")
    server_lr: float = Field(
        0.1,
        gt=0,
        allow_inf_nan=False,
        description="learning rate of the server's steps: B.1 prints .1 for all, Theorem 4 requires K / 2 times lr",
    )
    client_weights: Literal["samples", "equal"] = Field(
        "equal", description="weights of the clients; equal: 1 / |S_r| (Algorithm 1, line 8)"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round of clients or of the server."""
    if is_client_round(task, p.q, round):
        return fedavg.step(task, fedavg.Params(client_weights=p.client_weights), state, round)
    return server_sgd.step(task, server_sgd.Params(server_lr=p.server_lr), state, round)


def is_client_round(task: Task, q: float, round: int) -> bool:
    """Return whether the clients train in a round (line 3): drawn by name, 1 always and 0 never."""
    return derive_integer(task.seed, task.federation.stream, "round of clients", round) / 2**63 < q
