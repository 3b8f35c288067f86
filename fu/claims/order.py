"""One model lies above, or below, another by more than a margin, paired by seed."""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, Side, beyond, difference
from fu.types import Strict


class Params(Strict):
    """Two operands and how far they must be apart."""

    of: Operand = Field(
        examples=[{"method": "fedosd", "metric": "asr"}], description="what is said to be above or below"
    )
    than: Operand = Field(examples=[{"method": "federaser", "metric": "asr"}], description="what it is compared with")
    side: Side = Field(examples=["below"], description="above or below")
    margin: float = Field(0.0, ge=0, description="by how much more than nothing, in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return both."""
    return [p.of, p.than]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the differences."""
    return difference(rows, p.of, p.than)


def region(p: Params) -> tuple[float, float]:
    """Return the differences beyond the margin."""
    return beyond(p.side, 0.0, p.margin)
