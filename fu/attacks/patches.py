"""Backdoor of several triggers that the forgotten clients share, each a random pattern in a corner of its own.

An image of label y carries trigger y mod T, and its label is flipped as by `patch`. Our choice: a method that removes
one trigger has not removed the others.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fu.attacks import patch
from fu.data.partition import Drawn, Indices

if TYPE_CHECKING:
    from torch import Tensor

CORNERS = ((1, 1), (0, 0), (0, 1), (1, 0))  # lower right first, as `patch`: whether at the bottom, at the right


class Params(patch.Params):
    """Hyper-parameters."""

    triggers: int = Field(4, ge=2, le=len(CORNERS), description="number of triggers (our choice: one for each corner)")


def check(shape: tuple[int, int, int], classes: int, p: Params) -> None:
    """Raise `ValueError` where triggers do not fit the image (height, width, channels) side by side or flip nothing."""
    patch.check(shape, classes, p)
    if 2 * (p.size + p.margin) > min(shape[:2]):
        raise ValueError(f"two patches of {p.size} with margins of {p.margin} do not fit {min(shape[:2])} pixels")
    if classes < p.triggers:
        raise ValueError(f"triggers: {p.triggers} are more than the {classes} classes that choose them")


def draw(train: list[Indices], classes: int, p: Params, rng: np.random.Generator) -> tuple[Indices, Drawn]:
    """Return the training samples that are marked, of those of the forgotten clients, and patterns and labels.

    `trigger`: bool [T, p, p], true where the pixel is set to `value`; the rest as in `patch`.
    """
    marked, drawn = patch.draw(train, classes, p, rng)
    more = [patch.draw(train, classes, p, rng)[1]["trigger"] for _ in range(p.triggers - 1)]
    return marked, {**drawn, "trigger": np.stack([drawn["trigger"], *more])}


def mark(drawn: Drawn, x: "Tensor", y: "Tensor", classes: int) -> "tuple[Tensor, Tensor]":
    """Return a copy of images [n, h, w, c], each with its pattern, and the flipped labels [n]."""
    marked, flipped = x.clone(), y
    for k, (trigger, (bottom, right)) in enumerate(zip(drawn["trigger"], CORNERS, strict=False)):
        own = y % len(drawn["trigger"]) == k
        turned = [axis for axis, far in ((1, bottom), (2, right)) if not far]
        one, flipped = patch.mark({**drawn, "trigger": trigger}, x.flip(turned), y, classes)
        marked[own] = one.flip(turned)[own]
    return marked, flipped
