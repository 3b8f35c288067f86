"""ResNet-18 (He et al. 2016) with batch normalisation, for small images: 11,173,962 parameters at C = 10.

The stem for 32 x 32 images (3 x 3, stride 1, no pooling) follows He et al. 2016, section 4.2; four stages of two blocks
follow it. theta holds the running means and variances after the parameters; they are averaged like weights.
"""

from typing import Annotated

import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor, nn

STATISTICS = True  # it has running statistics
LABEL = "ResNet-18"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 8000.0, "parameters": 11_173_962}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    widths: list[Annotated[int, Field(gt=0, multiple_of=8)]] = Field(
        [64, 128, 256, 512],
        min_length=1,
        description="channels of each stage of two blocks (He et al. 2016: 64, 128, 256, 512); the stem has those of "
        "the first stage. Must be multiples of 8: with fewer channels, oneDNN writes out of bounds on some CPUs "
        "(torch 2.13.0)",
    )


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    blocks: list[nn.Module] = []
    before = p.widths[0]
    for stage, width in enumerate(p.widths):
        blocks += [Block(before, width, 2 if stage else 1), Block(width, width, 1)]
        before = width
    stem = [nn.Conv2d(shape[2], p.widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(p.widths[0]), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, Mean(), nn.Linear(before, classes))


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, a 1 x 1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both paths, rectified."""
        inner = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(inner + self.shortcut(x))


class Mean(nn.Module):
    """The mean over the image (pooling layers have no deterministic gradient on CUDA)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return features [n, c] of maps [n, c, h, w]."""
        return x.mean((2, 3))
