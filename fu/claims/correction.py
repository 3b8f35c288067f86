"""P-values of several tests, corrected (Holm 1979)."""

from collections.abc import Sequence
from math import nan

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values so corrected that the chance of one false rejection or more stays below the level (Holm 1979)."""
    corrected, largest = [nan] * len(p), 0.0
    for rank, k in enumerate(np.argsort(p, kind="stable")):
        largest = max(largest, min(1.0, (len(p) - rank) * p[k]))
        corrected[k] = largest
    return corrected
