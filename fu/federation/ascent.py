"""Gradient clipping, shared by methods of gradient ascent, as -CE has no lower bound (FedOSD section 2.2)."""

from torch import Tensor

from fu.federation.network import Hook

CLIP = (
    "largest norm of the ascending client's gradient in a step; 0: not clipped. FedOSD's published code can clip and "
    "by default does not; whether the printed runs did is unknown"
)


def clipped(norm: float) -> Hook | None:
    """Return the hook that shortens every step's gradient [d] to at most `norm`; None where `norm` is 0."""
    if not norm:
        return None

    def clip(weights: Tensor, gradient: Tensor) -> None:
        gradient.mul_((norm / gradient.norm()).clamp(max=1))

    return clip
