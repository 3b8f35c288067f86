"""A number rises, or falls, along a coordinate: the change from end to end of a line fitted to its values on each seed.

Values count as equally spaced, so that .1, 1 and 10 have equal weight. Scenarios that differ only in the coordinate are
one unit; a setting of a grid varies within a scenario. A seed has no trend (NaN) where infinite values cancel or
lie in the middle, where their weight is 0.
"""

import re
from collections.abc import Iterator
from math import nan
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from fu.claims.rows import STATISTIC, Operand, beyond
from fu.claims.testing import Numbers
from fu.types import Strict


class Params(Strict):
    """An operand, the coordinate that it follows, and how much it must change in all."""

    of: Operand = Field(examples=[{"method": "fedosd", "metric": "asr"}], description="what is claimed to rise or fall")
    along: str = Field(examples=["p"], description="a coordinate of scenarios, or a grid setting (params.lambda)")
    way: Literal["rising", "falling"] = Field(examples=["falling"], description="rising or falling")
    margin: float = Field(0.0, ge=0, description="the change from end to end must exceed this, in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return the one."""
    return [p.of]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the fitted change from the first value of the coordinate to the last; of two values, their difference."""
    lines = []
    for unit, wide in _tables(rows, p):
        steps = np.arange(wide.shape[1])
        weights = steps[-1] * (steps - steps.mean()) / ((steps - steps.mean()) ** 2).sum()
        change = [_sum(weights, numbers) for numbers in wide.to_numpy()]
        lines += [(unit, "", seed, value, nan) for seed, value in zip(wide.index, change, strict=True)]
    return pd.DataFrame(lines, columns=STATISTIC)


def reach(rows: pd.DataFrame, p: Params) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest value of the coordinate in each unit."""
    return {unit: (float(wide.columns[0]), float(wide.columns[-1])) for unit, wide in _tables(rows, p)}


def _tables(rows: pd.DataFrame, p: Params) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each unit with two values of the coordinate or more, and its numbers by seed and coordinate."""
    found = p.of.pick(rows)
    if p.along not in found:
        return
    last = found.groupby(["scenario", "point", "seed"])["round"].transform("max")
    found = found[found["round"] == last].assign(at=lambda part: pd.to_numeric(part[p.along], errors="coerce"))
    found = found[found["at"].notna()]
    beside = [key for key in [*rows.columns][[*rows.columns].index("value") + 1 :] if "." not in key and key != p.along]
    groups = ["scenario"] if "." in p.along else beside
    parts = found.groupby(groups, dropna=False, sort=False) if groups else [((), found)]
    for _, part in parts:
        wide = part.pivot_table("value", "seed", "at").dropna()
        if wide.shape[1] > 1 and len(wide):
            yield _named(list(part["scenario"].unique()), p.along), wide


def _sum(weights: Numbers, numbers: Numbers) -> float:
    """Return the weighted sum; NaN if infinite values cancel or have a weight of 0."""
    with np.errstate(invalid="ignore"):
        return float((weights * numbers).sum())


def _named(scenarios: list[str], along: str) -> str:
    """Return the name of scenarios without the coordinate, or all their names where they do not tell it."""
    rest = {re.sub(rf"-{re.escape(along)}[\d.]+", "", name) for name in scenarios}
    return rest.pop() if len(rest) == 1 else ", ".join(scenarios)


def region(p: Params) -> tuple[float, float]:
    """Return the changes beyond the margin."""
    return beyond("above" if p.way == "rising" else "below", 0.0, p.margin)
