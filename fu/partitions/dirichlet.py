"""Dirichlet: each client draws its class proportions p ~ Dir(beta) (Hsu et al. 2019; FATS 6.1.1).

All clients hold equally many samples: FATS's N is the number of samples of each. The remainder, less than one sample
per client, is unused. All proportions are drawn before the samples, so that a test set dealt with the same generator
has the same proportions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.data.partition import Indices

LEAST = 1e-12  # proportions of classes that count as none


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    beta: float = Field(
        0.5,
        gt=0,
        allow_inf_nan=False,
        description="concentration; the smaller, the fewer classes per client (FATS section 6.1.1)",
    )


def check(clients: int, classes: int, p: Params) -> None:
    """Any number of clients can share any number of classes."""


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the n // clients samples of each client, drawn from p, which is renormalised where a class is used up.

    Drawing all that are wanted at once and drawing those anew that a class lacks has the law of drawing one by one.
    """
    each = len(labels) // clients
    shares = rng.dirichlet(np.full(classes, p.beta), clients)
    rows = [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]
    taken, sizes = np.zeros(classes, np.int64), np.array([len(found) for found in rows])
    pools = []
    for share in shares:
        before = taken.copy()
        while wanted := each - int((taken - before).sum()):
            left = taken < sizes
            if share[left].sum() < LEAST:  # all that the client holds is used up
                share = np.zeros(classes)
                share[left] = rng.dirichlet(np.full(left.sum(), p.beta))
            drawn = rng.multinomial(wanted, share * left / share[left].sum())
            taken = np.minimum(taken + drawn, sizes)
        pools.append(np.concatenate([found[a:b] for found, a, b in zip(rows, before, taken, strict=True)]))
    return pools
