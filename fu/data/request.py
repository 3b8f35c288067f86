"""The request: what is asked to be forgotten. Drawn once, apart from who holds what."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import load_arrays
from fu.data.partition import Indices, Partition
from fu.errors import UserError
from fu.seeds import derive_integer


@dataclass(frozen=True)
class Request:
    """What is to be forgotten: `clients` as a whole, in order of their numbers."""

    clients: Indices

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays of the file."""
        return {"clients": self.clients}


def draw(part: Partition, seed: int, clients: int | Sequence[int]) -> Request:
    """Draw a request: which of those who take part are forgotten (how many, or which)."""
    if isinstance(clients, int):
        rng = np.random.default_rng(derive_integer(seed, "request"))
        return Request(np.sort(rng.choice(np.asarray(part.present, np.int64), clients, replace=False)))
    return Request(np.sort(np.asarray(clients, np.int64)))


def load(path: Path, part: Partition) -> Request:
    """Load a request file; `UserError` where it is none or does not belong to the partition."""
    arrays = load_arrays(path)
    clients = arrays.get("clients")
    if arrays.keys() != {"clients"} or clients is None or clients.dtype != np.int64 or clients.ndim != 1:
        raise UserError(f"{path}: this is not a request file; delete it and run snakemake again.")
    named, present = clients.tolist(), set(part.present)
    problem = "it must name clients in order, each once, and neither none nor all"
    if strangers := [client for client in named if client not in present]:
        problem = f"client {strangers[0]} does not take part"
    if strangers or sorted(set(named)) != named or not 0 < len(named) < len(present):
        raise UserError(f"{path}: the request contradicts the partition: {problem}; delete it and run snakemake again.")
    return Request(np.asarray(clients, np.int64))
