"""Training rounds that follow a sampling history (FATS, Tao et al. 2024), shared by training and unlearning."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from fu.data.partition import Indices
from fu.errors import UserError
from fu.federation.local import FLOAT_BYTES, aggregate
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
        raise UserError("FATS replays its random draws, which do not include dropout; use a model without dropout.")
    return Shape(task.clients_per_round, rounds, local.local_steps, local.batch_size)


def drawn(task: Task, rounds: int, clients: list[int], rows: list[Indices], stream: str) -> History:
    """Return the sampling history of a training of `rounds` on these clients, with all `rows` of each client."""

    def random(*name: int | str) -> Any:
        return np.random.default_rng(derive_integer(task.seed, stream, "sampling", *name))

    return begin({client: rows[client] for client in clients}, shape_of(task, rounds), random)


def places_of(task: Task, history: History, clients: Sequence[int], round: int) -> dict[int, tuple[Tensor, ...]]:
    """Return where each step's batch [E][b] of a round stands among a client's training samples, by client."""
    places: dict[int, tuple[Tensor, ...]] = {}
    for client in dict.fromkeys(clients):
        batches = history.batches(round, client)
        found = task.federation.data.places(client, np.concatenate(batches))
        places[client] = found.split([len(one) for one in batches])
    return places


def trained(
    task: Task, history: History, theta: Tensor, round: int, replayed: int = 0, *, distinct: bool = False
) -> Tensor:
    """Return theta [d] after a round: the mean over the K clients that the history names, each on its batches.

    The first `replayed` of E steps only rebuild what was there: they are counted apart. `distinct`: a client that was
    drawn several times counts once, and clients by their numbers of batches (FATS's authors' code).
    """
    federation, clients = task.federation, history.clients(round)
    places = places_of(task, history, clients, round)

    def rows(client: int, step: int) -> Tensor:
        return places[client][step]

    if distinct:
        updates = federation.local_updates(theta, [*places], round, rows=rows, counted=False)
        batches = (updates.sizes / history.shape.batch_size).ceil()
        mean = aggregate(replace(updates, sizes=batches), "samples")
    else:
        mean = federation.mean_update(theta, clients, round, "equal", rows=rows, counted=False)
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
