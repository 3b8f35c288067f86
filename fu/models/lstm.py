"""LSTM for next-character prediction (McMahan et al. 2017, Caldas et al. 2019): 819,920 parameters for 80 characters.

An embedding of dimension 8, two LSTM layers of 256 units and a linear layer (in FATS 6.1.2, a dot product with every
character). All weights use PyTorch's default initialisation.
"""

from typing import Self

from pydantic import BaseModel, Field
from torch import Tensor, nn

LABEL = "LSTM"
TEXT = True  # reads windows of characters

# For the plan: milliseconds of a gradient step on 200 samples, on one core of a server CPU (docs/measurements.md).
# One character after another is a few operations in PyTorch's LSTM, not the 2,417 that are counted on the meta device.
ESTIMATE = {"step_ms": 740.0, "operations": 30.0, "parameters": 819_920}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    embedding: int = Field(8, gt=0, description="dimension of the character embedding (FATS section 6.1.2)")
    hidden: int = Field(256, gt=0, description="units of each of the two LSTM layers (FATS section 6.1.2)")


def build(shape: tuple[int], classes: int, p: Params) -> nn.Module:
    """Return the model for windows of characters, of (length,)."""
    return Lstm(classes, p.embedding, p.hidden)


class Lstm(nn.Module):
    """Scores of the next character, from the last output of the second layer."""

    def __init__(self, classes: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=2, batch_first=True)
        self.linear = nn.Linear(hidden, classes)

    def train(self, mode: bool = True) -> Self:
        """Set the mode, which changes no result here; cuDNN has the gradient of an LSTM in training mode alone."""
        super().train(mode)
        self.lstm.train()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return scores [n, classes] for numbers of characters, int64 [n, length]."""
        outputs, _ = self.lstm(self.embedding(x))
        scores: Tensor = self.linear(outputs[:, -1])
        return scores
