"""FATS: FedAvg whose draws make exact unlearning cheap (Tao et al. 2024, Algorithm 1; see `fu/methods/fats.py`).

In every round K clients are drawn with replacement; each trains E steps of SGD, every step on b of its samples drawn
without replacement and independently of the others; the server takes the mean over K. A client that is drawn twice
trains once and counts 2 / K (section 5.2). K, E and b are the settings' `clients_per_round`, `local_steps` and
`batch_size`, or follow from `rho_c` and `rho_s`. Stores models at the start of rounds, every `keep_every`-th; the draws
are derived again. Communicates one model up and down per different client and round.
"""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from fu.data.partition import Indices
from fu.errors import UserError
from fu.federation.local import FLOAT_BYTES, aggregate
from fu.federation.sampling import History, Shape, begin
from fu.federation.task import State, Task, theta_of
from fu.seeds import derive_integer

KEEPS = "keep_every"  # the hyper-parameter that says how many models are kept, for the plan and the stages


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    keep_every: int | None = Field(
        1,
        ge=1,
        description="the models at the start of every how many rounds are kept (Algorithm 1, line 19: 1); null: the "
        "first alone. What lies between is trained again with the same draws",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return {"theta": task.first_model()}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on what the history says."""
    theta = theta_of(state)
    if task.kept is not None and task.original is None:
        task.kept.write(round, theta)
    return {"theta": trained(task, history(task), theta, round)}


def shape_of(task: Task, rounds: int) -> Shape:
    """Return K, R, E and b; `UserError` where the settings do not say them."""
    local = task.federation.training
    if task.clients_per_round is None or local.local_steps is None or not task.with_replacement:
        raise UserError(
            "FATS draws clients_per_round clients, with_replacement: true, for local_steps steps; set all three."
        )
    if task.federation.stochastic:
        raise UserError("FATS derives its draws again, and dropout is none of them; use a model without dropout.")
    return Shape(task.clients_per_round, rounds, local.local_steps, local.batch_size)


def drawn(task: Task, rounds: int, clients: list[int], rows: list[Indices], stream: str) -> History:
    """Return the sampling history of a training of `rounds` on these clients, with all `rows` of each client."""

    def random(*name: int | str) -> Any:
        return np.random.default_rng(derive_integer(task.seed, stream, "sampling", *name))

    return begin({client: rows[client] for client in clients}, shape_of(task, rounds), random)


def history(task: Task) -> History:
    """Return the sampling history of a training from the start."""
    data = task.federation.data
    name = "history", len(data.request.waves) if data.request else 0
    if name not in task.memory:
        task.memory[name] = drawn(task, task.rounds, task.population, data.rows, task.federation.stream)
    found: History = task.memory[name]
    return found


def trained(task: Task, history: History, theta: Tensor, round: int, replayed: int = 0) -> Tensor:
    """Return theta [d] after a round: the mean over the K clients that the history names, each on its batches.

    The first `replayed` of E steps only rebuild what was there: they are counted apart.
    """
    federation, clients = task.federation, history.clients(round)
    places: dict[int, tuple[Tensor, ...]] = {}
    for client in dict.fromkeys(clients):
        batches = history.batches(round, client)
        places[client] = federation.data.places(client, np.concatenate(batches)).split([len(one) for one in batches])
    updates = federation.local_updates(
        theta, clients, round, rows=lambda client, step: places[client][step], counted=False
    )
    steps = history.shape.steps - replayed
    moved = len(places) * federation.layout.size * FLOAT_BYTES if steps else 0
    federation.cost.add(
        client_rounds=len(places) if steps else 0,
        steps=len(places) * steps,
        samples=sum(len(batch) for found in places.values() for batch in found[replayed:]),
        bytes_up=moved,
        bytes_down=moved,
        time_steps=steps,
        replayed=replayed,
    )
    return theta + aggregate(updates, "equal")
