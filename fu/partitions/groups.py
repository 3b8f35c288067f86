"""Groups: the first clients and the others form two groups, each with its own class proportions p ~ Dir(alpha).

Shao et al. 2024, Table 2, relate the unlearning of one group to its distance from the other, but state no partition:
this one is our construction. Within a group, all clients hold equal shares. Together, the groups hold as many samples
as the smallest class has, whatever alpha and the draw, in the ratio `share` to 1 - `share`; the rest is unused. That
many samples can be dealt in any proportions, so alpha changes the distance between the groups but not the amount of
training data. Proportions are drawn before samples, so that a test set dealt with an equal generator has the same
proportions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.data.partition import Indices


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    alpha: float = Field(
        0.4,
        gt=0,
        allow_inf_nan=False,
        description="concentration; the smaller, the more the groups differ (Shao et al. 2024, Table 2: .1, .4, .7)",
    )
    first: int = Field(
        4, gt=0, description="number of clients in the first group: our choice, four of ten for P_J = .38"
    )
    share: float = Field(
        0.38, gt=0, lt=1, description="the first group's share of the samples (Shao et al. 2024, Table 2: P_J)"
    )


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` unless both groups have clients."""
    if p.first >= clients:
        raise ValueError(f"first: must be below the number of clients, {clients}, got {p.first}")


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client: of a group, each takes the next in turn, class after class."""
    proportions = rng.dirichlet(np.full(classes, p.alpha), 2)
    rows = [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]
    total = min(map(len, rows))
    first = round(p.share * total)
    ends = np.rint(proportions.cumsum(1) * np.array([[first], [total - first]])).astype(int)
    counts = np.diff(ends, prepend=0)
    pools = []
    for group, number in enumerate((p.first, clients - p.first)):
        begins = counts[:group].sum(0)
        own = np.concatenate([found[a : a + n] for found, a, n in zip(rows, begins, counts[group], strict=True)])
        pools += [own[k::number] for k in range(number)]
    return pools
