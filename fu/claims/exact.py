"""A quantity that is computed without noise has a given value in every row: one seed decides."""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, statistic, values
from fu.types import Strict

EXACT = True  # every number must lie in the region, not their mean


class Params(Strict):
    """An operand and its value."""

    of: Operand = Field(
        examples=[{"method": "fedosd", "metric": "asr"}], description="what is claimed to have the value"
    )
    value: float = Field(examples=[0.0], description="the value, in the metric's unit")
    tolerance: float = Field(
        0.0, ge=0, description="largest deviation that still counts as equal, to allow for rounding"
    )


def operands(p: Params) -> list[Operand]:
    """Return the one."""
    return [p.of]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return how far the numbers are from the value."""
    return statistic(values(rows, p.of) - p.value)


def region(p: Params) -> tuple[float, float]:
    """Return the distances within the tolerance."""
    return -p.tolerance, p.tolerance
