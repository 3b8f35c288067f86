"""Backdoor: a random pattern near the lower right corner, and flipped labels (FedOSD section 4.1, appendix B.1)."""

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
        0.8, description="share of the forgotten clients' training samples that carry the trigger (FedOSD's code)"
    )
    size: int = Field(3, gt=0, description="side length of the square patch in pixels (FedOSD's code; Figure 7)")
    margin: int = Field(
        1, ge=0, description="pixels between the patch and the lower and right edges of the image (FedOSD's code)"
    )
    value: float = Field(
        0.8333, allow_inf_nan=False, description="value of the set pixels in model-input space (FedOSD's code)"
    )
    label_shift: Share = Field(
        0.5, description="label y becomes (y + label_shift * classes) mod classes (FedOSD's code)"
    )


def check(shape: tuple[int, int, int], classes: int, p: Params) -> None:
    """Raise `ValueError` where the patch does not fit the image (height, width, channels) or no label is flipped."""
    if not 0 < int(classes * p.label_shift) < classes:
        raise ValueError(f"label_shift: {p.label_shift} of {classes} classes flips nothing")
    if p.size + p.margin > min(shape[:2]):
        raise ValueError(f"a patch of {p.size} does not fit {shape[0]} pixels")


def draw(train: list[Indices], classes: int, p: Params, rng: np.random.Generator) -> tuple[Indices, Drawn]:
    """Return the training samples that are marked, of those of the forgotten clients, and pattern and labels.

    `trigger`: bool [p, p], true where the pixel is set to `value`. `label_shift`: y becomes (y + label_shift) mod C.
    """
    chosen = [rng.permutation(rows)[: round(len(rows) * p.share)] for rows in train]
    trigger = rng.random((p.size, p.size)) < 0.5
    if not trigger.any():  # a pattern of zeros would leave every image as it is
        trigger[0, 0] = True
    drawn = {
        "trigger": trigger,
        "margin": np.array(p.margin),
        "value": np.array(p.value, np.float64),
        "label_shift": np.array(int(classes * p.label_shift)),
    }
    return np.sort(np.concatenate(chosen)), drawn


def mark(drawn: Drawn, x: "Tensor", y: "Tensor", classes: int) -> "tuple[Tensor, Tensor]":
    """Return a copy of images [n, h, w, c] with the pattern, and the flipped labels [n]."""
    import torch

    pattern = torch.from_numpy(drawn["trigger"]).to(x.device)
    height, width = pattern.shape
    margin = int(drawn["margin"])
    bottom, right = x.shape[1] - margin, x.shape[2] - margin
    x = x.clone()
    x[:, bottom - height : bottom, right - width : right][:, pattern] = float(drawn["value"])
    return x, (y + int(drawn["label_shift"])) % classes
