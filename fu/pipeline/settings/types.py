"""The types of settings, from YAML or the command line."""

import contextlib
import re
from typing import Annotated, Any

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from fu.types import WORD, Different, Held, Name

NUMBERS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool"))
RESOLVER = yaml.resolver.Resolver()


def _listed(value: Any) -> Any:
    """Read names in one text, as on the command line: with commas or spaces between them."""
    return re.split(r"\s*,\s*|\s+", value.strip()) if isinstance(value, str) else value


def _varied(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a value that a scenario varies; a list of clients becomes a tuple, which can be compared."""
    try:
        return read(tuple(value) if isinstance(value, list) else value)
    except ValidationError:
        raise ValueError("must be a number, text, or a list of clients (counted from 0)") from None


def typed(value: Any) -> Any:
    """Read numbers, true, false and null inside lists and mappings, which `snakemake --config` leaves as text."""
    if isinstance(value, dict):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise ValueError(f"keys must be text, got {wrong[0]!r}")
        return {key: typed(below) for key, below in value.items()}
    if isinstance(value, list):
        return [typed(below) for below in value]
    if isinstance(value, str):
        if value == "null":
            return None
        tag = RESOLVER.resolve(yaml.ScalarNode, value, (True, False))
        if tag in NUMBERS:
            with contextlib.suppress(ValueError):  # 0b_
                return yaml.constructor.SafeConstructor().construct_object(yaml.ScalarNode(tag, value))
    return value


def _grid_key(key: str) -> str:
    section, _, last = key.partition(".")
    if section not in ("training", "unlearning", "recovery", "params") or not last.isidentifier():
        raise ValueError(f"{key!r} cannot be varied; allowed: training.x, unlearning.x, recovery.x, params.x")
    return key


Word = Annotated[str, Field(pattern=rf"^{WORD}$", max_length=80)]
Pattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9*][A-Za-z0-9._*-]*$", max_length=80)]
Distinct = Annotated[list[Name], Different]
Names = Annotated[Distinct, BeforeValidator(_listed)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Seeds = Annotated[list[Seed], Field(min_length=1), Different]
Value = float | int | str
Varied = Annotated[Value | Annotated[tuple[Held, ...], Field(min_length=1)], WrapValidator(_varied)]
GridKey = Annotated[str, AfterValidator(_grid_key)]
