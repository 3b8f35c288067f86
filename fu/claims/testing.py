"""P-values and intervals for the mean over seeds, or for the median where some values are infinite.

P-values are one-sided. The standard error includes the measurement error where that is known. Where the values form two
separate groups, the share of the upper one is tested exactly as well, and the larger p-value counts.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
from scipy import special, stats

LEAST = 5  # seeds for a mean: with four, more than half of all seeds could be exceptions that did not occur
GROUPS = "two groups of seeds"
FAR = 3  # times the wider group's range: how far apart two groups are
MOST = 1000  # seeds, beyond which it is not said how many would decide

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def unseen(n: int, notes: Iterable[str]) -> str:
    """Return the share of all seeds that may be exceptions, with 95% confidence, where none of n is one, or a dash."""
    several = n > 1 and not any(note.startswith(GROUPS) for note in notes)
    return f"{1 - 0.05 ** (1 / n):.0%}" if several else "–"


class Mean(NamedTuple):
    """Values of several seeds; `error`: the measurement error of each."""

    values: Numbers
    error: float = 0.0

    @property
    def middle(self) -> float:
        """The mean."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """The standard deviation over seeds, measurement error added in quadrature; NaN for one seed."""
        return sqrt(self.values.var(ddof=1) + self.error**2) if len(self.values) > 1 else nan

    @property
    def note(self) -> str:
        """What a reader should know about the values."""
        if self.std == 0:
            return "all seeds are equal: no spread to judge by"
        _, _, k = self._groups()
        return f"{GROUPS}, {k} in the upper one" if k else ""

    def p(self, bound: float, sign: int, closed: bool = False) -> float:
        """Return the p-value for a mean above (1) or below (-1) a bound."""
        n = len(self.values)
        if n < LEAST or self.std == 0:
            return 1.0
        by_t = float(stats.t.sf(sign * (self.middle - bound) / (self.std / sqrt(n)), n - 1))
        low, high, k = self._groups()
        if not k:
            return by_t
        share = min(1.0, max(0.0, (bound - low) / (high - low)))
        return max(by_t, float(stats.binom.sf(k - 1, n, share) if sign > 0 else stats.binom.cdf(k, n, share)))

    def ends(self, level: float) -> tuple[float, float]:
        """Return the interval of the mean with the level in each tail."""
        n = len(self.values)
        if n < 2 or self.std == 0:
            return nan, nan
        half = float(stats.t.isf(level, n - 1)) * self.std / sqrt(n)
        by_t = (self.middle - half, self.middle + half)
        low, high, k = self._groups() if n >= LEAST else (0.0, 0.0, 0)
        if not k:
            return by_t
        shares = stats.beta.ppf(level, k, n - k + 1), stats.beta.isf(level, k + 1, n - k)
        below, above = (low + (high - low) * float(share) for share in shares)
        return min(by_t[0], below), max(by_t[1], above)

    def needed(self, bounds: list[tuple[float, int]], level: float, chance: float) -> float:
        """Return how many seeds, more than there are now, would decide with this power; NaN where unknown.

        Mean and deviation stay as they are seen.
        """
        away = [sign * (self.middle - bound) / self.std for bound, sign in bounds] if self.std > 0 else []
        if not away or min(away) <= 0:
            return nan
        least = max(LEAST, len(self.values) + 1)
        n = np.arange(least, max(MOST, least) + 1)
        limit = special.stdtrit(n - 1, 1 - level)
        # NaN: so far away that nothing is left of it
        missed = sum(np.nan_to_num(special.nctdtr(n - 1, one * np.sqrt(n), limit)) for one in away)
        able = missed <= 1 - chance
        low, high, k = self._groups()
        for bound, sign in bounds if k else []:
            share, seen = min(1.0, max(0.0, (bound - low) / (high - low))), k / len(self.values)
            if sign > 0:
                power = stats.binom.sf(stats.binom.isf(level, n, share), n, seen)
            else:
                power = stats.binom.cdf(stats.binom.ppf(level, n, share) - 1, n, seen)
            able &= power >= chance
        return float(n[able][0]) if able.any() else np.inf

    def _groups(self) -> tuple[float, float, int]:
        """Return the means of two separate groups and the size of the upper one; 0 where there is one group."""
        ordered = np.sort(self.values)
        if len(ordered) < 3:
            return nan, nan, 0
        gaps = [after - before for before, after in pairwise(ordered)]
        below, above = np.split(ordered, [int(np.argmax(gaps)) + 1])
        if max(gaps) <= FAR * max(np.ptp(below), np.ptp(above)) or max(gaps) == 0:
            return nan, nan, 0
        return float(below.mean()), float(above.mean()), len(above)


class Median(NamedTuple):
    """Values of several seeds, some infinite or NaN: a sign test of the median, in which NaN favours neither side."""

    values: Numbers

    @property
    def middle(self) -> float:
        """The median; the lower of the two middle values where one of them is infinite."""
        ordered = np.sort(self.values)
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return float(low if np.isinf([low, high]).any() else (low + high) / 2)

    @property
    def note(self) -> str:
        """How many values are not finite."""
        far = (~np.isfinite(self.values)).sum()
        return f"infinite on {far} of {len(self.values)} seeds, so a sign test of the median"

    def p(self, bound: float, sign: int, closed: bool = False) -> float:
        """Return the p-value for a median beyond a bound; ties count in favour only if the bound is closed."""
        beyond = sign * (self.values - bound)
        k = int((beyond >= 0).sum() if closed else (beyond > 0).sum())
        return float(stats.binom.sf(k - 1, len(self.values), 0.5))

    def ends(self, level: float) -> tuple[float, float]:
        """Return the interval of the median with at most the level in each tail; NaN where there is none."""
        n = len(self.values)
        lower, upper = (np.sort(np.where(np.isnan(self.values), end, self.values)) for end in (-np.inf, np.inf))
        k = int(stats.binom.ppf(level, n, 0.5))  # how many are left out on each side
        k -= int(stats.binom.cdf(k, n, 0.5) > level)
        return (nan, nan) if k < 0 else (float(lower[k]), float(upper[n - 1 - k]))

    def needed(self, bounds: list[tuple[float, int]], level: float, chance: float) -> float:
        """Return NaN: the power of the sign test depends on an unknown distribution."""
        return nan


def of(values: Numbers, error: float = 0.0) -> Mean | Median:
    """Return the mean of the values, or their median where one is infinite or NaN."""
    return Median(values) if not np.isfinite(values).all() else Mean(values, 0.0 if isnan(error) else error)
