"""How sure it is that a mean over seeds lies in a region: t-tests of both answers, corrected for several units (Holm).

A claim holds in a unit where the mean lies inside, does not where it lies outside, each at 2.5% on one side, as with
intervals of 95%; else it is undecided. A number with an interval of its own (of 95%, not corrected) is inside where all
of it is, and outside where none is. Under several rivals it must hold against all, and fails with one. One seed
decides only what is exact.
"""

from collections.abc import Iterable
from math import inf, isfinite, nan, sqrt
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from fu.claims.correction import holm

LEVEL = 0.025  # on one side
MOST = 1000  # seeds, beyond which it is not said how many would decide
NO_SEED = -1

Region = tuple[float, float]
Verdict = Literal["holds", "does not hold", "undecided", "not judged"]


class Judged(NamedTuple):
    """The verdict in a unit, and the rival nearest to refute it: mean, 95% interval, number of seeds.

    `needed`: how many seeds would decide, if mean and deviation stay as they are; NaN where it is decided, or where
    that many is not known or more than `MOST`.
    """

    unit: str
    verdict: Verdict
    against: str = ""
    mean: float = nan
    low: float = nan
    high: float = nan
    n: int = 0
    needed: float = nan


class Tested(NamedTuple):
    """One mean against a region: what speaks against inside and against outside (p-values), and how far inside.

    `ends`: of a number that comes with an interval of its own.
    """

    against: str
    mean: float
    std: float
    n: int
    inside: float
    outside: float
    slack: float
    ends: tuple[float, float] | None = None


def judge(found: pd.DataFrame, region: Region, exact: bool = False) -> list[Judged]:
    """Return the verdict in each unit of the columns unit, against, seed and value."""
    units = {str(unit): _tested(part, region, exact) for unit, part in found.groupby("unit", sort=False)}
    inside = holm([max(one.inside for one in tests) for tests in units.values()])
    outside = holm([min(1.0, len(tests) * min(one.outside for one in tests)) for tests in units.values()])
    judged = []
    for (unit, tests), held, failed in zip(units.items(), inside, outside, strict=True):
        verdict: Verdict = "holds" if held <= LEVEL else "does not hold" if failed <= LEVEL else "undecided"
        nearest = min(tests, key=lambda one: one.slack)
        needed = _needed(nearest, LEVEL / len(units) / len(tests)) if verdict == "undecided" else nan
        half, mean = _half(nearest.std, nearest.n, LEVEL), nearest.mean
        ends = nearest.ends or (mean - half, mean + half)
        judged.append(Judged(unit, verdict, nearest.against, mean, *ends, nearest.n, needed))
    return judged


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over all units: it holds where it holds in each that is judged, and fails with one."""
    known = [verdict for verdict in verdicts if verdict != "not judged"]
    if not known:
        return "not judged"
    for verdict in ("does not hold", "undecided"):
        if verdict in known:
            return verdict
    return "holds"


def stands(found: pd.DataFrame, region: Region, exact: bool = False) -> dict[str, bool]:
    """Return, by unit, whether numbers lie in a region, as those that a paper prints: with no test."""
    return {
        str(unit): all(_within(value, region, exact) for value in part["value"])
        for unit, part in found.groupby("unit", sort=False)
    }


def _tested(unit: pd.DataFrame, region: Region, exact: bool) -> list[Tested]:
    tests = []
    for against, part in unit.groupby("against", sort=False):
        values = part["value"].to_numpy(float)
        if not exact and (part["seed"] == NO_SEED).all() and len(values) > 1:
            tests.append(_of_interval(str(against), values, region))
            continue
        if exact or (part["seed"] == NO_SEED).all():
            within = all(_within(value, region, exact) for value in values)
            inside, outside = (0.0, 1.0) if within else (1.0, 0.0)
        else:
            inside, outside = _p_values(values, region)
        mean, std = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else nan
        slack = min(mean - region[0], region[1] - mean)
        tests.append(Tested(str(against), mean, std, len(values), inside, outside, slack))
    return tests


def _of_interval(against: str, values: "np.ndarray[tuple[int], np.dtype[np.float64]]", region: Region) -> Tested:
    """Return the test of one number of no seed, given with the ends of its own interval: all of it or none counts."""
    low, middle, high = sorted(values.tolist())
    inside, outside = region[0] < low and high < region[1], high <= region[0] or low >= region[1]
    slack = min(low - region[0], region[1] - high)
    return Tested(against, middle, nan, 1, float(not inside), float(not outside), slack, (low, high))


def _within(value: float, region: Region, closed: bool) -> bool:
    return region[0] <= value <= region[1] if closed else region[0] < value < region[1]


def _p_values(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", region: Region) -> tuple[float, float]:
    """Return the p-values against a mean inside an open region, and against one outside."""
    if len(values) < 2:
        return 1.0, 1.0
    sides = [(bound, sign) for bound, sign in zip(region, (1, -1), strict=True) if isfinite(bound)]
    inside = [_p(sign * (values - bound)) for bound, sign in sides]
    outside = [_p(sign * (bound - values)) for bound, sign in sides]
    return max(inside), min(1.0, len(sides) * min(outside))


def _p(above: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the p-value of a mean of at most nothing, on one side."""
    mean, error = float(above.mean()), float(above.std(ddof=1)) / sqrt(len(above))
    if error == 0:
        return 0.0 if mean > 0 else 1.0
    return float(stats.t.sf(mean / error, len(above) - 1))


def _half(std: float, n: float, level: float) -> float:
    return float(stats.t.isf(level, n - 1)) * std / sqrt(n) if n > 1 else nan


def _needed(test: Tested, level: float) -> float:
    """Return the least number of seeds whose interval would leave out the nearest bound of the region."""
    if not test.std > 0 or test.slack == 0:
        return nan
    n = np.arange(2, MOST + 1)
    enough = n[stats.t.isf(level, n - 1) * test.std / np.sqrt(n) < abs(test.slack)]
    return float(enough[0]) if len(enough) else inf
