"""A number that is given with its own interval lies above, or below, a limit: all of the interval does.

Where the limit is within the interval nothing is decided, so that nobody claims more than so many models admit.
"""

import pandas as pd
from pydantic import Field

from fu.claims.rows import Operand, Side, beyond, ends, statistic, values
from fu.types import Strict

INTERVAL = True  # three numbers of each unit: it, and both ends


class Params(Strict):
    """An operand and its limit."""

    of: Operand = Field(
        examples=[{"method": "fedosd", "metric": "ulira_epsilon"}],
        description="what is said to be above or below; its ends are the metrics ..._low and ..._high",
    )
    side: Side = Field(examples=["below"], description="above or below")
    limit: float = Field(examples=[1.0], description="in the metric's unit")


def operands(p: Params) -> list[Operand]:
    """Return the number and both ends."""
    return [p.of.model_copy(update={"metric": name}) for name in (p.of.metric, *ends(p.of.metric))]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the number and its ends where there are all three."""
    parts = [values(rows, one) for one in operands(p)]
    whole = pd.concat(parts, axis=1, join="inner").index
    return pd.concat([statistic(part[whole]) for part in parts], ignore_index=True)


def region(p: Params) -> tuple[float, float]:
    """Return the numbers beyond the limit."""
    return beyond(p.side, p.limit)
