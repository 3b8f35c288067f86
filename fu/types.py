"""Kinds of values and records that settings, specs and entries share."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

WORD = r"[A-Za-z0-9][A-Za-z0-9_-]*"
NAME = rf"^{WORD}(\.[A-Za-z0-9_-]+)*$"
Listed = TypeVar("Listed", bound=Sequence[Any])


def fraction(value: Any) -> Any:
    """Read a fraction that is written as text."""
    if isinstance(value, str):
        try:
            above, slash, below = value.partition("/")
            return float(above) / float(below if slash else 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError("must be a number or a fraction like 6/7") from None
    return value


def _different(values: Listed) -> Listed:
    if len(set(values)) < len(values):
        raise ValueError("must differ from each other")
    return values


def _finite(values: Any) -> Any:
    """Refuse numbers that are not finite: in a job's settings they would be null, which may mean a default."""
    if isinstance(values, float) and not math.isfinite(values):
        raise ValueError(f"numbers must be finite, got {values}")
    for below in values.values() if isinstance(values, dict) else values if isinstance(values, list | tuple) else ():
        _finite(below)
    return values


Name = Annotated[str, Field(pattern=NAME, max_length=80)]
Different = AfterValidator(_different)
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Held = Annotated[int, Field(ge=0)]
Share = Annotated[float, BeforeValidator(fraction), Field(ge=0, le=1)]
Parameters = Annotated[dict[str, Any], AfterValidator(_finite)]


class Frozen(BaseModel):
    """A frozen record with no unknown key."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Strict(Frozen):
    """A record of settings: text is not converted to numbers, and all numbers are finite."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
