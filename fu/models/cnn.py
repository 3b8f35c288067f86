"""CNN with two convolutions of 64 channels (Halimi et al. 2022; FedOSD's code): 797,962 parameters for 32 x 32 x 3.

By default without dropout, as in the paper. The published code applies dropout of .2 after the first hidden layer and
.5 after the second, and none after the convolutions.
"""

from typing import Annotated

from pydantic import BaseModel, Field
from torch import nn

Share = Annotated[float, Field(ge=0, lt=1)]

LABEL = "CNN"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 170.0, "parameters": 797_962}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    channels: int = Field(64, gt=0, description="channels of each convolution (FedOSD appendix B.1: 64)")
    dropout: tuple[Share, Share] = Field(
        (0.0, 0.0),
        description="dropout after the first and the second hidden layer (the paper: none; FedOSD's code: .2, .5)",
    )


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))

    def dropped(share: float) -> list[nn.Module]:
        return [nn.Dropout(share)] if share else []

    first, second = p.dropout
    return nn.Sequential(
        nn.Conv2d(channels, p.channels, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(p.channels, p.channels, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(p.channels * rows * columns, 384),
        nn.ReLU(),
        *dropped(first),
        nn.Linear(384, 192),
        nn.ReLU(),
        *dropped(second),
        nn.Linear(192, classes),
    )
