"""One model is above, or below, each of several others by more than a margin, paired by seed."""

from typing import Annotated, Self

import pandas as pd
from pydantic import Field, model_validator

from fu.claims.rows import Operand, Side, beyond, difference
from fu.types import Different, Name, Strict


class Params(Strict):
    """An operand, its rivals in the same metric and stage, and how far it must be ahead of each."""

    of: Operand = Field(examples=[{"method": "fedosd", "metric": "asr"}], description="what is claimed to be ahead")
    among: Annotated[list[Name], Different] = Field(
        examples=[["federaser", "sfu"]], min_length=1, description="methods or trainings to compare with"
    )
    side: Side = Field(examples=["below"], description="above or below")
    margin: float = Field(0.0, ge=0, description="the difference must exceed this, in the metric's unit")

    @model_validator(mode="after")
    def _rivals(self) -> Self:
        if self.among == [self.of.method]:
            raise ValueError(f"among: must name another method than {self.of.method}")
        return self


def operands(p: Params) -> list[Operand]:
    """Return the one and its rivals, in the same scenarios; at which point of its grid it is says nothing of them."""
    at = {key: value for key, value in p.of.at.items() if "." not in key}
    return [p.of, *(p.of.model_copy(update={"method": name, "at": at}) for name in p.among if name != p.of.method)]


def statistics(rows: pd.DataFrame, p: Params) -> pd.DataFrame:
    """Return the differences to each rival."""
    own, *rivals = operands(p)
    return pd.concat([difference(rows, own, rival, rival.method) for rival in rivals], ignore_index=True)


def region(p: Params) -> tuple[float, float]:
    """Return the differences beyond the margin."""
    return beyond(p.side, 0.0, p.margin)
