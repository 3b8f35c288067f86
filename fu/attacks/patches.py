"""Backdoor with several triggers, all shared by the forgotten clients: random patterns in different corners.

The label y of an image selects trigger y mod T and is flipped as by `patch`. Our choice: a method that removes one
trigger may leave the others.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fu.attacks import patch
from fu.data.partition import Drawn, Indices

if TYPE_CHECKING:
    from torch import Tensor

CORNERS = ((1, 1), (0, 0), (0, 1), (1, 0))  # (bottom, right); the first is that of `patch`


class Params(patch.Params):
    """Hyper-parameters."""

    triggers: int = Field(4, ge=2, le=len(CORNERS), description="number of triggers (our choice: one for each corner)")


def check(shape: tuple[int, int, int], classes: int, p: Params) -> None:
    """Raise `ValueError` if patches do not fit the image (height, width, channels), or if a trigger has no label."""
    patch.check(shape, classes, p)
    if 2 * (p.size + p.margin) > min(shape[:2]):
        raise ValueError(f"two patches of {p.size} with margins of {p.margin} do not fit {min(shape[:2])} pixels")
    if classes < p.triggers:
        raise ValueError(f"triggers: {p.triggers} are more than the {classes} classes that choose them")


def draw(train: list[Indices], classes: int, p: Params, rng: np.random.Generator) -> tuple[Indices, Drawn]:
    """Return which training samples of the forgotten clients are marked, and what `mark` needs.

    `trigger`: bool [T, p, p], true where a pixel is set to `value`; all else as in `patch`.
    """
    marked, drawn = patch.draw(train, classes, p, rng)
    more = [patch.draw(train, classes, p, rng)[1]["trigger"] for _ in range(p.triggers - 1)]
    return marked, {**drawn, "trigger": np.stack([drawn["trigger"], *more])}


def mark(drawn: Drawn, x: "Tensor", y: "Tensor", classes: int) -> "tuple[Tensor, Tensor]":
    """Return a copy of images [n, h, w, c], each with the trigger of its label, and the flipped labels [n]."""
    marked, flipped = x.clone(), y.clone()
    for k, (trigger, (bottom, right)) in enumerate(zip(drawn["trigger"], CORNERS, strict=False)):
        chosen = y % len(drawn["trigger"]) == k
        axes = [axis for axis, far in ((1, bottom), (2, right)) if not far]  # `patch` marks the lower right corner
        images, flipped[chosen] = patch.mark({**drawn, "trigger": trigger}, x[chosen].flip(axes), y[chosen], classes)
        marked[chosen] = images.flip(axes)
    return marked, flipped
