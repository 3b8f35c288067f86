"""VGG16's features without batch normalisation (Simonyan and Zisserman 2015) and one linear layer (FATS 6.1.2).

14,719,818 parameters for 32 x 32 x 3 and ten classes. FATS starts from weights of ImageNet1K: torchvision's, whose file
is verified by its checksum; the linear layer is drawn by the seed. With random weights all are (He et al. 2015), as in
torchvision. Grey images get the sum of the filters' three channels, as if they were repeated. Pooling keeps the last
row and column of odd maps, so that 28 x 28 suffices.
"""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from fu.data.torchvision_import import pretrained

CHANNELS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # of a stage's convolutions, and how many; then pooling
WEIGHTS = "vgg16-397923af.pth"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 6000.0, "parameters": 14_719_818}


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    weights: Literal["imagenet", "random"] = Field(
        "imagenet", description="what the features start from; imagenet: torchvision's file, downloaded or in its cache"
    )


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    before, layers = shape[2], list[nn.Module]()
    for channels, number in CHANNELS:
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


def _load(features: nn.Sequential) -> None:
    """Copy the weights of ImageNet; where images are grey, their first filters see three equal channels."""
    found = pretrained(WEIGHTS)
    weights = {name: found[f"features.{name}"] for name in features.state_dict()}
    if features[0].in_channels == 1:
        weights["0.weight"] = weights["0.weight"].sum(1, keepdim=True)
    with torch.no_grad():
        features.load_state_dict(weights)
