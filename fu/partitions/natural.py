"""Natural: every client is one owner of samples, a writer or a speaking role (Caldas et al. 2019; FATS 6.1.1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.data.partition import Indices
from fu.errors import UserError

NATURAL = True  # owners are handed over in the place of labels and classes


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    minimum: int = Field(
        100,
        gt=0,
        strict=True,
        description="minimum number of training samples of a client; owners with fewer are left out. FATS section "
        "6.1.1: 100 in all, i.e. 90 for training if a tenth is held out for testing (FEMNIST), 80 if a fifth is "
        "(Shakespeare)",
    )


def check(clients: int, owners: int, p: Params) -> None:
    """Raise `ValueError` where there are more clients than owners."""
    if clients > owners:
        raise ValueError(f"{clients} clients cannot be drawn from {owners} owners of data")


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client; `labels` are owners here [n], of whom as many as there are clients are drawn.

    Clients are in the order of their owners. Raises `UserError` where too few have enough samples.
    """
    owners, sizes = np.unique(labels, return_counts=True)
    able = owners[sizes >= p.minimum]
    if len(able) < clients:
        raise UserError(
            f"partition: {clients} clients need as many owners of at least {p.minimum} training samples, but of "
            f"{len(owners)} owners {len(able)} have so many; use fewer clients or another minimum."
        )
    order = np.argsort(labels, kind="stable")
    chosen = np.sort(rng.choice(able, clients, replace=False))
    starts, ends = (np.searchsorted(labels[order], chosen, side) for side in ("left", "right"))
    return [order[start:end] for start, end in zip(starts, ends, strict=True)]
