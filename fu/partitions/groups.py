"""Groups: two groups of clients, alike inside, with different labels (Shao et al. 2024, section G.1 and Table 2).

The paper's code has none of this; ours: the first clients are one group, which is to be forgotten. Each group draws its
class proportions p ~ Dir(alpha), all its clients hold the same share of it, and the groups' sizes are as .38 to .62, as
large as the classes allow. What is left over nobody holds. Proportions are drawn before the samples, so that a test set
dealt by the same generator has them, too.
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
        0.1, gt=0, allow_inf_nan=False, description="concentration; the smaller, the less alike the groups: .1, .4, .7"
    )
    first: int = Field(4, ge=1, strict=True, description="how many clients are in the first group: four of ten")
    share: float = Field(0.38, gt=0, lt=1, description="of the samples that the first group holds, P_J: Table 2")


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` where the second group would be empty."""
    if p.first >= clients:
        raise ValueError(f"first: {p.first} of {clients} clients leave none for the second group")


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client, drawn without replacement."""
    proportions = rng.dirichlet(np.full(classes, p.alpha), 2)
    each = np.array([p.share, 1 - p.share])
    rows = [rng.permutation(np.flatnonzero(labels == label)) for label in range(classes)]
    counts = np.array([len(found) for found in rows])
    wanted = each @ proportions  # of a class, as a share of all that is held
    total = min(counts[wanted > 0] / wanted[wanted > 0])
    sizes = np.array([p.first, clients - p.first])
    numbers = np.floor(total * (each / sizes)[:, None] * proportions + 1e-9).astype(np.int64)  # of a client and a class
    pools: list[list[Indices]] = [[] for _ in range(clients)]
    for label, found in enumerate(rows):
        ends = np.cumsum(np.repeat(numbers[:, label], sizes))
        for client, part in enumerate(np.split(found, ends)[:-1]):
            pools[client].append(part)
    return [np.concatenate(parts) for parts in pools]
