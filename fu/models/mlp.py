"""Multilayer perceptron with two hidden layers of 400 units (478,410 parameters for 28 x 28 and ten classes).

This follows FedOSD's code; appendix B.1 prints three layers of 400 neurons each.
"""

from pydantic import BaseModel, Field
from torch import nn

LABEL = "MLP"

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
ESTIMATE = {"step_ms": 4.0, "parameters": 478_410}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    hidden: int = Field(400, gt=0, description="units of each hidden layer (FedOSD's code, and appendix B.1)")


def build(shape: tuple[int, int, int], classes: int, p: Params) -> nn.Module:
    """Return the model for images of (height, width, channels)."""
    height, width, channels = shape
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(height * width * channels, p.hidden),
        nn.ReLU(),
        nn.Linear(p.hidden, p.hidden),
        nn.ReLU(),
        nn.Linear(p.hidden, classes),
    )
