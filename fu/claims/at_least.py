"""One model is no worse than another by more than a margin, paired by seed; being better never fails it."""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, Side, beyond, difference
from fu.types import Strict

TIES = True  # worse by no more than the margin


class Params(Strict):
    """Two operands, which side is better, and how much worse still counts as as good."""

    of: Operand = Field(examples=[{"method": "fedosd", "metric": "r_acc"}], description="what is said to be no worse")
    than: Operand = Field(examples=[{"method": "federaser", "metric": "r_acc"}], description="what it is compared with")
    side: Side = Field(examples=["above"], description="which side is better: above or below")
    margin: float = Field(gt=0, examples=[0.02], description="how much worse counts as nothing, in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return both."""
    return [p.of, p.than]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the differences."""
    return difference(rows, p.of, p.than)


def region(p: Params) -> tuple[float, float]:
    """Return the differences that are better, or worse by at most the margin."""
    return beyond(p.side, 0.0, -p.margin)
