"""Kinds of values that settings and hyper-parameters share."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def fraction(value: Any) -> Any:
    """Read a fraction that is written as text."""
    if isinstance(value, str):
        try:
            above, slash, below = value.partition("/")
            return float(above) / float(below if slash else 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError("must be a number or a fraction like 6/7") from None
    return value


Share = Annotated[float, BeforeValidator(fraction), Field(ge=0, le=1)]
