"""Rounds of training on what a sampling history says (FATS, Tao et al. 2024): shared by its training and unlearning."""

from typing import Any

import numpy as np
from torch import Tensor

from fu.data.partition import Indices
from fu.errors import UserError
from fu.federation.local import FLOAT_BYTES
from fu.federation.sampling import History, Shape, begin
from fu.federation.task import Task
from fu.seeds import derive_integer


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


def trained(task: Task, history: History, theta: Tensor, round: int, replayed: int = 0) -> Tensor:
    """Return theta [d] after a round: the mean over the K clients that the history names, each on its batches.

    The first `replayed` of E steps only rebuild what was there: they are counted apart.
    """
    federation, clients = task.federation, history.clients(round)
    places: dict[int, tuple[Tensor, ...]] = {}
    for client in dict.fromkeys(clients):
        batches = history.batches(round, client)
        places[client] = federation.data.places(client, np.concatenate(batches)).split([len(one) for one in batches])
    mean = federation.mean_update(
        theta, clients, round, "equal", rows=lambda client, step: places[client][step], counted=False
    )
    steps = history.shape.steps - replayed
    moved = len(places) * federation.layout.size * FLOAT_BYTES if steps else 0
    federation.cost.add(
        client_rounds=len(places) if steps else 0,
        forgotten_rounds=sum(client in federation.data.forgotten for client in places) if steps else 0,
        steps=len(places) * steps,
        samples=sum(len(batch) for found in places.values() for batch in found[replayed:]),
        bytes_up=moved,
        bytes_down=moved,
        time_steps=steps,
        replayed=replayed,
    )
    return theta + mean
