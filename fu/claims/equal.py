"""Two models are equal within a margin, paired by seed; tested as equivalence: no difference found is not enough."""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, difference
from fu.types import Strict

TIES = True  # at the margin they are still equal


class Params(Strict):
    """Two operands and how far they may be apart."""

    of: Operand = Field(examples=[{"method": "fedosd", "metric": "asr"}], description="what is said to equal the other")
    than: Operand = Field(examples=[{"method": "federaser", "metric": "asr"}], description="what it is compared with")
    margin: float = Field(gt=0, examples=[0.02], description="differences below it count as none, in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return both."""
    return [p.of, p.than]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the differences."""
    return difference(rows, p.of, p.than)


def region(p: Params) -> tuple[float, float]:
    """Return the differences within the margin."""
    return -p.margin, p.margin
