"""CNN of McMahan et al. 2017, without padding: 582,026 parameters for 28 x 28 and ten classes.

Two 5 x 5 convolutions with 32 and 64 channels, each followed by 2 x 2 pooling, and a hidden layer of 512 units: the CNN
most commonly used with FedAvg. Pooling precedes ReLU, with which it commutes.
"""

from pydantic import BaseModel
from torch import nn

LABEL = "CNN of McMahan et al."

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 52.0, "parameters": 582_026}


class Params(BaseModel, extra="forbid"):
    """The CNN has no hyper-parameters."""


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * rows * columns, 512),
        nn.ReLU(),
        nn.Linear(512, classes),
    )
