"""The rows that a claim reads, and their numbers by unit and seed.

Rows: scenario, method, point, stage, seed (-1: none), round (-1: none), metric, value, and a column for each coordinate
of scenarios and each setting of grids, named as in the YAML.
"""

from math import nan
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from fu.types import Name, Strict

KEYS = ["scenario", "seed"]
STATISTIC = ["unit", "against", "seed", "value", "error"]
Side = Literal["above", "below"]
Stage = Literal["original", "unlearned", "recovered"]


class Operand(Strict):
    """Rows of one model and one metric."""

    method: Name = Field(description="a method or training of the table or figure; original: ω⁰")
    metric: str = Field(description="a metric of the table or figure, or a quantity that its kind derives from them")
    stage: Stage | None = Field(None, description="default: unlearned for a method, original for any other model")
    at: dict[str, int | float | str] = Field(
        default_factory=dict, description="only rows with these values of coordinates or grid settings"
    )
    round: Literal["last", "first", "highest", "lowest", "mean"] = Field(
        "last",
        description="for curves: which measured round; or the mean over all rounds from the first measured one to the "
        "last, linear in between",
    )
    samples: int | None = Field(
        None,
        ge=1,
        description="for a rate: the least number of samples per seed behind it, so that an observed 0 is "
        "not taken for exactly 0",
    )

    def pick(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of this operand."""
        chosen = rows[(rows["method"] == self.method) & (rows["metric"] == self.metric)]
        for key, value in self.at.items():
            chosen = chosen[same(chosen[key], value)] if key in chosen else chosen.iloc[:0]
        stage = self.stage or ("unlearned" if (chosen["stage"] == "unlearned").any() else "original")
        return chosen[chosen["stage"] == stage]


class Pair(Strict):
    """Two operands that are compared."""

    of: Operand = Field(examples=[{"method": "fedosd", "metric": "asr"}], description="what is judged")
    than: Operand = Field(examples=[{"method": "federaser", "metric": "asr"}], description="what it is compared with")


def ends(metric: str) -> tuple[str, str]:
    """Return the names of the lower and the upper end of a number's own interval."""
    return f"{metric}_low", f"{metric}_high"


def same(values: "pd.Series[Any]", value: float | str) -> "pd.Series[bool]":
    """Return which values equal one of the YAML: a column that holds text, too, holds numbers as text."""
    return values.eq(value) if isinstance(value, str) else pd.to_numeric(values, errors="coerce").eq(value)


def values(rows: pd.DataFrame, operand: Operand) -> "pd.Series[float]":
    """Return an operand's number by scenario and seed; of curves that of the round which it names.

    Where it names several points of a grid there is none.
    """
    chosen = operand.pick(rows)
    chosen = chosen[chosen.groupby("scenario")["point"].transform("nunique") == 1].dropna(subset="value")
    runs = chosen.sort_values("round", kind="stable").set_index("round").groupby(KEYS, sort=False)["value"]
    if operand.round == "mean":
        return runs.agg(_over_rounds)
    return runs.agg({"highest": "max", "lowest": "min"}.get(operand.round, operand.round))


def _over_rounds(curve: "pd.Series[float]") -> float:
    """Return a curve's mean over all rounds, interpolated between those that were measured (its index)."""
    return float(np.interp(range(curve.index[0], curve.index[-1] + 1), curve.index, curve).mean())


def both(p: Pair) -> list[Operand]:
    """Return the two operands of a pair."""
    return [p.of, p.than]


def between(rows: pd.DataFrame, p: Pair) -> pd.DataFrame:
    """Return the differences between the two operands of a pair."""
    return difference(rows, p.of, p.than)


def difference(rows: pd.DataFrame, of: Operand, than: Operand, against: str = "") -> pd.DataFrame:
    """Return what is more in one operand than in another, paired by scenario and seed; NaN where both diverged."""
    own, theirs = values(rows, of), values(rows, than)
    errors = [measuring(numbers, one.samples) ** 2 for numbers, one in ((own, of), (theirs, than))]
    pairs = own.index.intersection(theirs.index, sort=False)
    return statistic((own - theirs).reindex(pairs), against, errors[0].add(errors[1], fill_value=0) ** 0.5)


def measuring(rates: "pd.Series[float]", samples: int | None) -> "pd.Series[float]":
    """Return each seed's binomial standard error of a rate, pooled over seeds (Agresti and Coull 1998).

    NaN where the number of samples is not known.
    """
    drawn = (samples or nan) * rates.groupby("scenario").transform("count")
    pooled = (drawn * rates.groupby("scenario").transform("mean") + 2) / (drawn + 4)
    return (pooled * (1 - pooled) / (samples or nan)) ** 0.5


def statistic(numbers: "pd.Series[float]", against: str = "", errors: "pd.Series[float] | None" = None) -> pd.DataFrame:
    """Return a frame with the columns `STATISTIC`; `numbers`: by scenario and seed; `errors`: their standard errors."""
    error = nan if errors is None else errors.reindex(numbers.index)  # else they would lengthen an empty frame
    frame = numbers.rename("value").to_frame().assign(error=error, against=against)
    return frame.reset_index().rename(columns={"scenario": "unit"}).reindex(columns=STATISTIC)


def beyond(side: Side, limit: float, margin: float = 0.0) -> tuple[float, float]:
    """Return the open interval of what lies above, or below, a limit by more than a margin."""
    return (limit + margin, float("inf")) if side == "above" else (float("-inf"), limit - margin)
