"""VGG16's feature layers with batch normalisation (Simonyan and Zisserman 2015) and one linear layer, random weights.

14,728,266 parameters for 32 x 32 x 3 and ten classes. FATS's authors' code uses this model in place of the pretrained
VGG16 that the paper names (`vgg16.py`). All weights use PyTorch's default initialisation. theta holds the running means
and variances after the parameters; they are averaged like weights.
"""

from pydantic import BaseModel, Field
from torch import nn

from fu.models.vgg16 import CHANNELS, CONVOLUTIONS, Width

STATISTICS = True  # it has running statistics
LABEL = "VGG16-BN"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 3600.0, "parameters": 14_728_266}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    channels: tuple[Width, Width, Width, Width, Width] = Field(
        CHANNELS, description="channels of each stage's convolutions (Simonyan and Zisserman 2015)"
    )


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    before, layers = shape[2], list[nn.Module]()
    for channels, number in zip(p.channels, CONVOLUTIONS, strict=True):
        for _ in range(number):
            layers += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
            before = channels
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, classes))
