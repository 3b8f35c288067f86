"""Clients whose losses are quadratics, and the unlearning of Shao et al. 2024, section 6.1, run on them.

A loss is f(w) = sum_k h_k (w_k - c_k)^2 / 2 + const, so that Assumptions 5.2 and 5.3 hold with mu = min h, L = max h.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """A quadratic of curvature h [d] around c [d], where it is `least`."""

    curvature: Vector
    centre: Vector
    least: float = 0.0

    def __call__(self, w: Vector) -> float:
        """Return f(w) at w [d]."""
        return float(self.curvature @ (w - self.centre) ** 2) / 2 + self.least

    def gradient(self, w: Vector) -> Vector:
        """Return grad f(w) [..., d]."""
        return self.curvature * (w - self.centre)

    @property
    def mu(self) -> float:
        """The constant of strong convexity (Assumption 5.2)."""
        return float(self.curvature.min())

    @property
    def smoothness(self) -> float:
        """L (Assumption 5.3)."""
        return float(self.curvature.max())


def loss(curvature: float | Sequence[float], centre: float | Sequence[float]) -> Loss:
    """Return a loss whose least value is 0; a number stands for one dimension."""
    return Loss(np.atleast_1d(np.asarray(curvature, float)), np.atleast_1d(np.asarray(centre, float)))


def weighted(losses: Sequence[Loss], weights: Sequence[float]) -> Loss:
    """Return the weighted sum of losses, itself a quadratic."""
    pairs = list(zip(weights, losses, strict=True))
    curvature = sum((p * f.curvature for p, f in pairs), np.zeros(1))
    centre = sum((p * f.curvature * f.centre for p, f in pairs), np.zeros(1)) / curvature
    return Loss(curvature, centre, sum(p * f(centre) for p, f in pairs))


@dataclass(frozen=True)
class Groups:
    """F_{-J}, F_J and P_J."""

    retained: Loss
    forgotten: Loss
    share: float

    @property
    def everyone(self) -> Loss:
        """F."""
        return weighted((self.retained, self.forgotten), (1 - self.share, self.share))

    def apart(self, w: Vector) -> float:
        """Return ||grad F_{-J}(w) - grad F_J(w)||^2."""
        return float(square(self.retained.gradient(w) - self.forgotten.gradient(w)))

    def estimate(self, start: Vector, w: Vector) -> Vector:
        """Return g_J [..., d] = grad F_J(w_o) + L (w - w_o), as P3 needs it (the paper prints grad F_{-J}(w_o))."""
        return self.forgotten.gradient(start) + self.forgotten.smoothness * (w - start)


def square(vectors: Vector) -> Vector:
    """Return ||v||^2 [...] of vectors [..., d]."""
    squares: Vector = (vectors * vectors).sum(-1)
    return squares


def across(g_j: Vector, g_s: Vector) -> Vector:
    """Return g_J - proj_{g_S} g_J [..., d] of vectors [..., d]."""
    along = (g_j * g_s).sum(-1) / square(g_s)
    rest: Vector = g_j - along[..., None] * g_s
    return rest


def unlearn(groups: Groups, start: Vector, rates: Sequence[float], penalty: float = 0.0) -> Vector:
    """Return w_o and the model after each round [T + 1, d] of section 6.1 with eta_g = eta_l and lambda = `penalty`."""
    path = [start]
    for rate in rates:
        g_s = groups.retained.gradient(path[-1])
        w = path[-1] - rate * g_s
        path.append(w - rate * penalty * groups.share * across(groups.estimate(start, w), g_s) if penalty else w)
    return np.stack(path)
