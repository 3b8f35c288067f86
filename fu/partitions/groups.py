"""Groups: the first clients and the others each have class proportions p ~ Dir(alpha), and share equally.

Shao et al. 2024, Table 2, measure unlearning of one group by how far it lies from the other, but print no partition:
this one is our construction. The two groups hold as many samples as the smallest class has, whatever alpha and the
draw, in the proportion `share` to 1 - `share`; nobody holds the rest. That many can be dealt in any proportions, and
alpha then changes how far apart the groups are and not how much they train on. Proportions are drawn before samples, so
that a test set that is dealt by an equal generator has them, too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from fu.data.partition import Indices


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    alpha: float = Field(
        0.4,
        gt=0,
        allow_inf_nan=False,
        description="concentration; the smaller, the further apart (Shao et al. 2024, Table 2: .1, .4, .7)",
    )
    first: int = Field(
        4, gt=0, description="how many clients are the first group: our choice, four of ten for P_J = .38"
    )
    share: float = Field(
        0.38, gt=0, lt=1, description="of all samples, those of the first group (Shao et al. 2024, Table 2: P_J)"
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
