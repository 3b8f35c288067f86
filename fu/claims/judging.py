"""Verdicts: whether a mean over seeds lies inside or outside a region, tested with Holm's correction over units.

A claim holds in a unit if the mean lies inside the region, and does not hold if it lies outside, each tested one-sided
at 2.5%, as with 95% intervals; otherwise it is undecided. A mean needs five seeds, and is tested in
`fu.claims.testing`. A number with its own interval (95%, not corrected) is inside if the whole interval is, and outside
if none of it is. A claim against several rivals must hold against all, and fails if it fails against one. One seed
decides only what is exact.
"""

from collections.abc import Iterable
from math import isfinite, nan
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from fu.claims.correction import levels
from fu.claims.testing import LEAST, Mean, Median, Numbers, of

LEVEL = 0.025  # on one side
DIGITS = 12  # what differs less is rounding
NO_SEED = -1
FEW = f"a mean needs at least {LEAST} seeds"

Region = tuple[float, float]
Verdict = Literal["holds", "does not hold", "undecided", "not judged"]
DECISIVE: tuple[Verdict, ...] = ("does not hold", "undecided", "holds")  # in order of precedence


class Judged(NamedTuple):
    """The verdict in a unit, with mean, interval and number of seeds of the rival that decides it or comes closest.

    `needed`, `needed_90`: how many seeds would decide with a chance of .5 and of .9, if mean and deviation stay as they
    are; NaN where it is decided, or where that is not known. `note`: what else to know, in words. `fails`: the mean
    contradicts the claim.
    """

    unit: str
    verdict: Verdict
    against: str = ""
    mean: float = nan
    low: float = nan
    high: float = nan
    n: int = 0
    needed: float = nan
    needed_90: float = nan
    note: str = ""
    fails: bool = False


class Tested(NamedTuple):
    """One rival's numbers: p-values for inside and outside the region, and their distance to its bounds.

    `seeds`: what was tested where numbers are of seeds; `ends`: of a number with an interval of its own.
    """

    against: str
    middle: float
    n: int
    inside: float
    outside: float
    slack: float
    seeds: Mean | Median | None = None
    ends: tuple[float, float] = (nan, nan)


def judge(found: pd.DataFrame, region: Region, exact: bool = False, ties: bool = False) -> list[Judged]:
    """Return the verdict in each unit of the columns unit, against, seed, value and error.

    `ties`: the bounds of the region lie in it.
    """
    units = {str(unit): _tested(part, region, exact, ties) for unit, part in found.groupby("unit", sort=False)}
    inside = [max(one.inside for one in tests) for tests in units.values()]
    outside = [min(1.0, len(tests) * min(one.outside for one in tests)) for tests in units.values()]
    at = zip(levels(inside, LEVEL), levels(outside, LEVEL), strict=True)
    judged = []
    for (unit, tests), p, q, (sure, against) in zip(units.items(), inside, outside, at, strict=True):
        verdict: Verdict = "holds" if p <= sure else "does not hold" if q <= against else "undecided"
        bounds = _sides(region)
        fails = against / len(tests) / len(bounds)  # the level of one rival and one side
        one, level = max(tests, key=lambda one: (one.inside, -one.slack)), sure
        if verdict == "does not hold" or (verdict == "undecided" and one.slack < 0):
            one, level = min(tests, key=lambda one: (one.outside, one.slack)), fails
        needed, most = (
            _needed(one, bounds, sure, fails, chance) if verdict == "undecided" else nan for chance in (0.5, 0.9)
        )
        ends = one.seeds.ends(level) if one.seeds else one.ends
        few = isinstance(one.seeds, Mean) and one.n < LEAST
        note = FEW if few else one.seeds.note if one.seeds else ""
        judged.append(Judged(unit, verdict, one.against, one.middle, *ends, one.n, needed, most, note, one.slack < 0))
    return judged


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over all units: it holds where it holds in each that is judged, and fails with one."""
    found = {*verdicts}
    return next((verdict for verdict in DECISIVE if verdict in found), "not judged")


def stands(found: pd.DataFrame, region: Region, exact: bool = False, ties: bool = False) -> dict[str, bool]:
    """Return, by unit, whether numbers lie in a region, as those that a paper prints: with no test."""
    return {
        str(unit): all(_within(value, region, exact or ties) for value in part["value"])
        for unit, part in found.groupby("unit", sort=False)
    }


def _tested(unit: pd.DataFrame, region: Region, exact: bool, ties: bool) -> list[Tested]:
    """Return the test against each rival."""
    tests = []
    for against, part in unit.groupby("against", sort=False):
        values, seedless = part["value"].to_numpy(float).round(DIGITS), bool((part["seed"] == NO_SEED).all())
        if seedless and not exact and len(values) > 1:
            tests.append(_of_interval(str(against), values, region))
        elif seedless or exact:
            within = all(_within(value, region, exact or ties) for value in values)
            mean = float(values.mean())
            slack = _slack(mean, region)
            tests.append(Tested(str(against), mean, len(values), float(not within), float(within), slack))
        else:
            seeds = of(values, float(np.sqrt((part["error"] ** 2).mean())))
            tests.append(_of_seeds(str(against), seeds, region, ties))
    return tests


def _of_seeds(against: str, seeds: Mean | Median, region: Region, ties: bool) -> Tested:
    """Return the test of several seeds: inside means beyond every bound, outside beyond any of them."""
    bounds = _sides(region)
    inside = max(seeds.p(bound, sign, ties) for bound, sign in bounds)
    outside = len(bounds) * min(seeds.p(bound, -sign, not ties) for bound, sign in bounds)
    slack = _slack(seeds.middle, region)
    return Tested(against, seeds.middle, len(seeds.values), inside, min(1.0, outside), slack, seeds)


def _of_interval(against: str, values: Numbers, region: Region) -> Tested:
    """Return the test of one number of no seed, given with the ends of its own interval: all of it or none counts."""
    low, middle, high = sorted(values.tolist())
    inside, outside = region[0] < low and high < region[1], high <= region[0] or low >= region[1]
    slack = min(low - region[0], region[1] - high)
    return Tested(against, middle, 1, float(not inside), float(not outside), slack, ends=(low, high))


def _sides(region: Region) -> list[tuple[float, int]]:
    """Return the finite bounds, each with the sign of the inside."""
    return [(round(bound, DIGITS), sign) for bound, sign in zip(region, (1, -1), strict=True) if isfinite(bound)]


def _slack(middle: float, region: Region) -> float:
    """Return the distance to the nearest bound; negative outside."""
    return min(sign * (middle - bound) for bound, sign in _sides(region))


def _within(value: float, region: Region, closed: bool) -> bool:
    away = [round(sign * (value - bound), DIGITS) for bound, sign in _sides(region)]
    return all(one > 0 or (closed and one == 0) for one in away)


def _needed(test: Tested, bounds: list[tuple[float, int]], sure: float, fails: float, chance: float) -> float:
    """Return how many seeds would decide, for the answer that the mean favours."""
    if test.seeds is None:
        return nan
    if test.slack > 0:
        return test.seeds.needed(bounds, sure, chance)
    beyond = max((-sign * (test.middle - bound), bound, -sign) for bound, sign in bounds)
    return test.seeds.needed([beyond[1:]], fails, chance)
