"""A number lies above, or below, a limit."""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, Side, beyond, measuring, statistic, values
from fu.types import Strict


class Params(Strict):
    """An operand and its limit."""

    of: Operand = Field(
        examples=[{"method": "fedosd", "metric": "asr"}], description="what is claimed to lie above or below"
    )
    side: Side = Field(examples=["below"], description="above or below")
    limit: float = Field(examples=[0.1], description="the limit, in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return the one."""
    return [p.of]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the numbers themselves."""
    own = values(rows, p.of)
    return statistic(own, errors=measuring(own, p.of.samples))


def region(p: Params) -> tuple[float, float]:
    """Return the numbers beyond the limit."""
    return beyond(p.side, p.limit)
