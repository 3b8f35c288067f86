"""Holm's correction (1979): keeps the probability of any false rejection among several tests below the level."""

from collections.abc import Sequence
from math import nan

import numpy as np


def levels(p: Sequence[float], level: float) -> list[float]:
    """Return the level of each test; once one is not rejected, all larger p-values keep its level."""
    found, last = [nan] * len(p), nan
    for rank, k in enumerate(np.argsort(p, kind="stable")):
        found[k] = level / (len(p) - rank) if np.isnan(last) else last
        last = found[k] if p[k] > found[k] else nan
    return found


def adjusted(p: Sequence[float]) -> list[float]:
    """Return the adjusted p-value of each test: below a level where all tests together reject it at this level."""
    order = np.argsort(p, kind="stable")
    found = np.empty(len(p))
    found[order] = np.minimum(np.maximum.accumulate(np.arange(len(p), 0, -1) * np.array(p)[order]), 1)
    return found.tolist()
