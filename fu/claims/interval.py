"""A number reported with its own interval lies above, or below, a limit: the whole interval must.

If the interval contains the limit, the claim is undecided, so that a claim never exceeds what the number of models
supports.
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
        description="what is claimed to lie above or below; its ends are the metrics ..._low and ..._high",
    )
    side: Side = Field(examples=["below"], description="above or below")
    limit: float = Field(examples=[1.0], description="the limit, in the metric's unit")


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
