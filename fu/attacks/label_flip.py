"""Label flipping: a share of the forgotten clients' samples has wrong labels; images stay as they are (Tolpegin et al.
2020, who flip one class to another; here every class is flipped, as by FedOSD's backdoor).

The attack success rate is then the accuracy on the flipped labels.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, Field

from fu.data.partition import Drawn, Indices
from fu.types import Share

if TYPE_CHECKING:
    from torch import Tensor


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    share: Share = Field(
        0.8,
        description="share of the forgotten clients' training samples with wrong labels (our choice: as in `patch`)",
    )
    label_shift: Share = Field(
        0.5, description="label y becomes (y + label_shift * classes) mod classes (our choice: as in `patch`)"
    )


def check(shape: tuple[int, int, int], classes: int, p: Params) -> None:
    """Raise `ValueError` where no label is flipped."""
    if not 0 < int(classes * p.label_shift) < classes:
        raise ValueError(f"label_shift: {p.label_shift} of {classes} classes flips nothing")


def draw(train: list[Indices], classes: int, p: Params, rng: np.random.Generator) -> tuple[Indices, Drawn]:
    """Return the training samples with wrong labels, of those of the forgotten clients, and the shift of the labels."""
    chosen = [rng.permutation(rows)[: round(len(rows) * p.share)] for rows in train]
    return np.sort(np.concatenate(chosen)), {"label_shift": np.array(int(classes * p.label_shift))}


def mark(drawn: Drawn, x: "Tensor", y: "Tensor", classes: int) -> "tuple[Tensor, Tensor]":
    """Return a copy of images [n, h, w, c], and the flipped labels [n]."""
    return x.clone(), (y + int(drawn["label_shift"])) % classes
