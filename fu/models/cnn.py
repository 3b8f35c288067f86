"""CNN with two convolutions of 64 (Halimi et al. 2022, as in FedOSD's code): 797,962 parameters on 32 x 32 x 3.

Without dropout, as the paper has it.
"""

from pydantic import BaseModel, ConfigDict
from torch import nn


class Params(BaseModel):
    """The CNN has no hyper-parameters."""

    model_config = ConfigDict(extra="forbid")


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 64, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * rows * columns, 384),
        nn.ReLU(),
        nn.Linear(384, 192),
        nn.ReLU(),
        nn.Linear(192, classes),
    )
