"""VGG16's feature layers without batch normalisation (Simonyan and Zisserman 2015) and one linear layer.

14,719,818 parameters for 32 x 32 x 3 and ten classes. FATS 6.1.2 names VGG16, which has three linear layers; its code
has one. FATS starts from ImageNet1K weights. We use those of torchvision, whose file is verified by its checksum, and
draw the linear layer from the seed. With random weights all layers are drawn (He et al. 2015), as in torchvision. For
greyscale images, the first filters are summed over their three channels, which amounts to repeating the image. Pooling
keeps the last row and column of maps of odd size, so that 28 x 28 pixels suffice.
"""

from functools import cache
from typing import Annotated, Literal, Self

import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn

from fu.data.torchvision_import import pretrained

CHANNELS, CONVOLUTIONS = (64, 128, 256, 512, 512), (2, 2, 3, 3, 3)  # of each stage, which ends with pooling
LABEL = "VGG16"
PRETRAINED = "vgg16-397923af.pth"  # unless `weights` is random
Width = Annotated[int, Field(gt=0)]

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 3300.0, "parameters": 14_719_818, "pretrained_mb": 553.4}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    weights: Literal["imagenet", "random"] = Field(
        "imagenet",
        description="initial weights of the feature layers (FATS section 6.1.2); imagenet: torchvision's file, "
        "downloaded or from its cache",
    )
    channels: tuple[Width, Width, Width, Width, Width] = Field(
        CHANNELS, description="channels of each stage's convolutions (Simonyan and Zisserman 2015)"
    )

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.weights == "imagenet" and self.channels != CHANNELS:
            raise ValueError(f"channels: weights of ImageNet need {list(CHANNELS)}; choose weights: random")
        return self


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    before, layers = shape[2], list[nn.Module]()
    for channels, number in zip(p.channels, CONVOLUTIONS, strict=True):
        for _ in range(number):
            layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU()]
            before = channels
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    features = nn.Sequential(*layers)
    for layer in features:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    model = nn.Sequential(features, nn.Flatten(), nn.Linear(before, classes))
    if p.weights == "imagenet" and features[0].weight.device.type != "meta":  # the plan only counts
        _load(features)
    return model


@cache
def _features(file: str) -> dict[str, Tensor]:
    """Return the weights of the feature layers, a tenth of the file."""
    part, weights = "features.", pretrained(file)
    return {name.removeprefix(part): value for name, value in weights.items() if name.startswith(part)}


def _load(features: nn.Sequential) -> None:
    """Copy the weights of ImageNet; where images are grey, their first filters see three equal channels."""
    weights = dict(_features(PRETRAINED))
    if features[0].in_channels == 1:
        weights["0.weight"] = weights["0.weight"].sum(1, keepdim=True)
    with torch.no_grad():
        features.load_state_dict(weights)
