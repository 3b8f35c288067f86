"""IID: every client holds an equal share of every class (FedOSD section 4.1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from fu.data.partition import Indices


class Params(BaseModel, extra="forbid"):
    """There are no hyper-parameters."""


def check(clients: int, classes: int, p: Params) -> None:
    """Any number of clients can share any number of classes."""


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client: of every class in random order an equal part."""
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    for label in range(classes):
        found = rng.permutation(np.flatnonzero(labels == label))
        for pool, part in zip(pools, np.array_split(found, clients), strict=True):
            pool.append(part)
    return [np.concatenate(parts) for parts in pools]
