"""NFResNet-18 (Brock et al. 2021): a residual network without normalisation layers, used by FedOSD on CIFAR-100.

Pre-activation blocks h + alpha f(h / beta), with scaled weight standardisation and a gain per channel in the
convolutions; only the last layer has biases. beta^2 is the expected variance of the block's input. The stem for small
images (3 x 3, stride 1, no pooling) and stride 2 wherever the width changes are our choice, because images have 32 x 32
pixels. Four stages of two blocks have 11,215,332 parameters at C = 100. FedOSD's code keeps two stages, `widths` [128,
256] after a stem of 64: 2,650,852 parameters, as in that code.
"""

from typing import Annotated

import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor, nn

GAIN = 1.7139588594436646  # sqrt(2 / (1 - 1 / pi)): makes up for the variance that ReLU removes (Brock et al. 2021)
EPS = 1e-4  # least variance of a filter (Brock et al. 2021, reference code)

LABEL = "NFResNet-18"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 9000.0, "parameters": 11_215_332}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    stem: int = Field(64, gt=0, description="channels of the stem (ResNet-18, He et al. 2016)")
    widths: list[Annotated[int, Field(gt=0)]] = Field(
        [64, 128, 256, 512],
        min_length=1,
        description="channels of each stage of two blocks (ResNet-18; FedOSD's code: 128, 256)",
    )
    alpha: float = Field(0.2, gt=0, description="weight of the residual branch (Brock et al. 2021)")


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    blocks: list[nn.Module] = []
    before, variance = p.stem, 1.0
    for width in p.widths:
        for first in (True, False):
            stride = 2 if first and width != before else 1
            blocks.append(Block(before, width, stride, p.alpha, variance**-0.5))
            variance = (1.0 if width != before else variance) + p.alpha**2
            before = width
    return nn.Sequential(Convolution(shape[2], p.stem, 3), *blocks, Head(), nn.Linear(before, classes))


class Convolution(nn.Conv2d):
    """A convolution whose filters are standardised: W' = g (W - mean) / (std sqrt(fan-in))."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.gain = nn.Parameter(torch.ones(outputs))
        nn.init.kaiming_normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution of images [n, c, h, w]."""
        fan_in = self.weight[0].numel()
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True, correction=0)
        scale = torch.rsqrt((variance * fan_in).clamp(min=EPS)) * self.gain.view(-1, 1, 1, 1)
        return F.conv2d(x, (self.weight - mean) * scale, None, self.stride, self.padding)


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, a 1 x 1 convolution where the width changes."""

    def __init__(self, inputs: int, outputs: int, stride: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta
        self.first = Convolution(inputs, outputs, 3, stride)
        self.second = Convolution(outputs, outputs, 3)
        self.shortcut = Convolution(inputs, outputs, 1, stride) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        """Return h + alpha f(h beta); `beta` is one over the expected standard deviation."""
        active = F.relu(x) * (GAIN * self.beta)
        kept = x if self.shortcut is None else self.shortcut(active)
        inner: Tensor = self.second(F.relu(self.first(active)) * GAIN)
        return kept + self.alpha * inner


class Head(nn.Module):
    """The last ReLU and the mean over the image (pooling layers have no deterministic gradient on CUDA)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return features [n, c] of maps [n, c, h, w]."""
        return (F.relu(x) * GAIN).mean((2, 3))
