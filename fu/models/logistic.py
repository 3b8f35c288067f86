"""Multinomial logistic regression (SAFARI section 5): one linear layer, 7,850 parameters for 28 x 28 and ten classes.

The paper states no initial model. We use PyTorch's default initialisation of a linear layer, drawn from the seed, so
that retraining starts from another model than the original training, as for every other architecture. Zero would do as
well, since the loss is convex.
"""

from pydantic import BaseModel
from torch import nn

LABEL = "logistic regression"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 0.5, "parameters": 7_850}


class Params(BaseModel, extra="forbid"):
    """Logistic regression has no hyper-parameters."""


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    return nn.Sequential(nn.Flatten(), nn.Linear(height * width * channels, classes))
