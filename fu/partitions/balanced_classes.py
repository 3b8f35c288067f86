"""Balanced classes: every client holds p classes and equally many samples; equally many clients hold each class.

In SAFARI B.1 each client draws its p classes independently. At p = 1 an average of 3.5 of ten classes are then held by
none of ten clients, so that no training could reach the accuracy printed for full participation. In our partition some
client holds each class.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.data.partition import Indices

SWITCHES = 20  # tried for every pair of a client and a class that it holds


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    classes: int = Field(
        ge=1, strict=True, examples=[2], description="number of classes per client, p (SAFARI section 5)"
    )


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` where classes cannot be shared out evenly."""
    if p.classes > classes:
        raise ValueError(f"classes: a client cannot hold {p.classes} of {classes} classes")
    if clients * p.classes % classes:
        raise ValueError(
            f"classes: {clients} clients with {p.classes} classes each cannot hold {classes} classes equally often; "
            "clients * classes must be a multiple of that"
        )


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client: of each class that it holds the same number, drawn without replacement."""
    held = assign(clients, classes, p.classes, rng)
    holders = held.sum(0)
    found = [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]
    each = min(len(rows) // number for rows, number in zip(found, holders, strict=True))
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    for label, rows in enumerate(found):
        for k, client in enumerate(np.flatnonzero(held[:, label])):
            pools[client].append(rows[k * each : (k + 1) * each])
    return [np.concatenate(parts) for parts in pools]


def assign(clients: int, classes: int, each: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return who holds which classes [clients, classes]: uniformly drawn among all balanced assignments.

    From an orderly one, random switches (two clients each give the other a class that it lacks) lead to every other.
    """
    held = np.zeros((clients, classes), bool)
    for client in range(clients):
        held[client, np.arange(client * each, (client + 1) * each) % classes] = True
    for _ in range(SWITCHES * clients * each):
        switch(held, rng)
    return held


def switch(held: NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Let two clients switch a class; as likely as the switch back, so that all assignments get equally likely."""
    one, other = rng.integers(len(held), size=2)
    gives, takes = np.flatnonzero(held[one] & ~held[other]), np.flatnonzero(held[other] & ~held[one])
    if len(gives):
        given, taken = rng.choice(gives), rng.choice(takes)
        held[one, [given, taken]], held[other, [given, taken]] = [False, True], [True, False]
