"""Listed: every client holds the classes listed for it; a class is split equally among the clients that hold it.

Figure 6 of Shao et al. 2024 shows the four classes of each of ten clients. In their code, the samples of a class go to
its holders in data order, as evenly as possible; the first holders get one more.
"""

from typing import Annotated, Any

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt

from fu.data.partition import Indices

FIGURE_6 = [
    *([0, 2, 3, 7], [1, 3, 4, 5], [0, 4, 6, 9], [1, 3, 7, 8], [1, 2, 4, 7]),
    *([1, 2, 5, 6], [1, 2, 4, 6], [0, 4, 6, 9], [0, 2, 3, 7], [1, 3, 5, 6]),
]


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    classes: list[Annotated[list[NonNegativeInt], MinLen(1)]] = Field(
        min_length=1,
        examples=[FIGURE_6],
        description="the classes of each client (Shao et al., Figure 6)",
    )


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` unless there is a list for each client, of different classes that exist."""
    if len(p.classes) != clients:
        raise ValueError(f"classes: lists for {len(p.classes)} clients, but there are {clients}")
    for client, held in enumerate(p.classes):
        if unknown := [label for label in held if label >= classes]:
            raise ValueError(f"classes: client {client} holds class {unknown[0]}; there are 0 to {classes - 1}")
        if len({*held}) < len(held):
            raise ValueError(f"classes: client {client} holds a class twice")
    if missing := {*range(classes)}.difference(*p.classes):
        raise ValueError(f"classes: nobody holds class {min(missing)}")


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client; nothing is drawn."""
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    for label in range(classes):
        holders = [client for client, held in enumerate(p.classes) if label in held]
        for client, part in zip(holders, np.array_split(np.flatnonzero(labels == label), len(holders)), strict=True):
            pools[client].append(part)
    return [np.concatenate(parts) for parts in pools]
