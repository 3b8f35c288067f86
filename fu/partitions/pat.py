"""Pathological non-IID (Pat-20 and so on): every client holds a share of the classes (FedOSD section 4.1).

The order of classes and clients determines which ones, as in FedOSD's code; appendix B.1 draws them at random.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.data.partition import Indices
from fu.types import Share


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    class_share: Share = Field(
        gt=0, examples=[0.2], description="share of all classes that a client holds (FedOSD section 4.1: Pat-20 is .2)"
    )


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` where the share is not a whole number of classes, or a client or class is left empty."""
    holders(clients, classes, classes_per_client(classes, p))


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client: of every class the clients that hold it get equal parts, in data order."""
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    for label, chosen in enumerate(holders(clients, classes, classes_per_client(classes, p))):
        for client, part in zip(chosen, np.array_split(np.flatnonzero(labels == label), len(chosen)), strict=True):
            pools[client].append(part)
    return [np.concatenate(parts) for parts in pools]


def classes_per_client(classes: int, p: Params) -> int:
    """Return how many classes a client holds."""
    number = p.class_share * classes
    if abs(number - round(number)) > 1e-6 or round(number) < 1:
        raise ValueError(f"class_share: {p.class_share} of {classes} classes is not a whole number of classes")
    return round(number)


def holders(clients: int, classes: int, each: int) -> list[list[int]]:
    """Return, for each class, the clients that share it (`pat` of FedOSD's code).

    For each class in order, the first int(clients * each / classes) clients that still have room for a class take it.
    """
    sharing = clients * each // classes
    room = [each] * clients
    found: list[list[int]] = []
    for _ in range(classes):
        chosen = [client for client in range(clients) if room[client] > 0][:sharing]
        for client in chosen:
            room[client] -= 1
        found.append(chosen)
    held = {client for chosen in found for client in chosen}
    empty = [client for client in range(clients) if client not in held]
    orphans = [label for label, chosen in enumerate(found) if not chosen]
    if empty or orphans:
        what = f"client {empty[0]} without data" if empty else f"class {orphans[0]} without a client"
        raise ValueError(
            f"{clients} clients with {each} of {classes} classes each leave {what}; "
            "allowed is clients * class_share >= 1 with every client served"
        )
    return found
