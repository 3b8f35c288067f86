"""The input of an evaluator: a model in its role, the trace of its run, the original model and the data."""

from dataclasses import dataclass, field

from torch import Tensor

from fu.data.clients import ClientData
from fu.data.membership import Shadows
from fu.federation.network import Network


@dataclass(frozen=True)
class Context:
    """`theta` [d]: the model; `original` [d]: the original model, None while it is being trained.

    `role`: original, unlearned or recovered. `trace`: one row, as text, for each round of its run. `shadows`: what the
    training's shadow models say, for evaluators that declare `SHADOWS = True` (None: for no other).
    """

    network: Network
    data: ClientData
    theta: Tensor
    original: Tensor | None = None
    role: str = ""
    trace: list[dict[str, str]] = field(default_factory=list)
    shadows: Shadows | None = None

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        """Return the model's accuracy on images [n, c, h, w] (or text [n, length]) with labels y [n]."""
        return (self.network.logits(self.theta, x).argmax(1) == y).double().mean().item()
