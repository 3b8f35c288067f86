"""Kinds of values that settings and hyper-parameters share."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def fraction(value: Any) -> Any:
    """Read a fraction that is written as text."""
    if isinstance(value, str):
        try:
            return float(Fraction(value))
        except (ValueError, ZeroDivisionError):
            raise ValueError("must be a number or a fraction like 6/7") from None
    return value


Share = Annotated[float, BeforeValidator(fraction), Field(ge=0, le=1)]
