"""LeNet-5 (LeCun et al. 1998) with padding 2 on 28 x 28 images, as in FedOSD's code: 61,706 parameters.

Pooling precedes ReLU: the two commute, and ReLU then processes a quarter of the values.
"""

from pydantic import BaseModel
from torch import nn

LABEL = "LeNet-5"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 14.0, "parameters": 61_706}


class Params(BaseModel, extra="forbid"):
    """LeNet-5 has no hyper-parameters."""


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    padding = 2 if height == 28 else 0
    rows, columns = (((side + 2 * padding - 4) // 2 - 4) // 2 for side in (height, width))
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=padding),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(6, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * rows * columns, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
