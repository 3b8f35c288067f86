"""CNN of LEAF (Caldas et al. 2019): 6,603,710 parameters for 28 x 28 and 62 classes, 6,497,162 for ten classes.

Two 5 x 5 convolutions with 32 and 64 channels and same padding, each followed by 2 x 2 pooling, and a hidden layer of
2,048 units. FATS (section 6.1.2) only says CNN; its authors' code uses this one. Pooling precedes ReLU, with which it
commutes.
"""

from pydantic import BaseModel, Field
from torch import Tensor, nn

LABEL = "CNN of LEAF"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 150.0, "parameters": 6_603_710}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    mean: float = Field(
        0.0,
        allow_inf_nan=False,
        description="mean subtracted from inputs in [0, 1] (FATS's code: .1307 for MNIST and FMNIST)",
    )
    std: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="standard deviation by which the inputs are then divided (FATS's code: .3081 for MNIST and FMNIST)",
    )


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    return nn.Sequential(
        Normalised(p.mean, p.std),
        nn.Conv2d(channels, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 2048),
        nn.ReLU(),
        nn.Linear(2048, classes),
    )


class Normalised(nn.Module):
    """Inputs less their mean, over their standard deviation."""

    def __init__(self, mean: float, std: float) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, x: Tensor) -> Tensor:
        """Return images [n, c, h, w] normalised."""
        return (x - self.mean) / self.std
