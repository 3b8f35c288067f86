"""Kinds of values and records that settings, specs and entries share."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def fraction(value: Any) -> Any:
    """Read a fraction that is written as text."""
    if isinstance(value, str):
        try:
            above, slash, below = value.partition("/")
            return float(above) / float(below if slash else 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError("must be a number or a fraction like 6/7") from None
    return value


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, BeforeValidator(fraction), Field(ge=0, le=1)]


class Frozen(BaseModel):
    """A frozen record with no unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)
