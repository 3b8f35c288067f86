"""The kinds of values that settings have: what they take from YAML or the command line, and what they refuse."""

import math
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"


def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def typed(value: Any) -> Any:
    """Read numbers, true, false and null inside lists and mappings, which `snakemake --config` leaves as text."""
    if isinstance(value, dict):
        return {key: typed(below) for key, below in value.items()}
    if isinstance(value, list):
        return [typed(below) for below in value]
    if isinstance(value, str):
        try:
            found = yaml.safe_load(value)
        except yaml.YAMLError:
            return value
        return found if isinstance(found, int | float) or value == "null" else value
    return value


def _plain(value: Any) -> Any:
    """Refuse what JSON cannot hold: specs are JSON."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys must be text")
        for below in value.values():
            _plain(below)
    elif isinstance(value, list):
        for below in value:
            _plain(below)
    elif not (value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))):
        raise ValueError("values must be finite numbers, text, true, false, null, lists or mappings of these")
    return value


def which_clients(value: Any) -> Any:
    """Refuse what is neither how many clients nor which."""

    def whole(number: Any, least: int) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and number >= least

    if whole(value, 1) or (isinstance(value, list) and value and all(whole(client, 0) for client in value)):
        return value
    raise ValueError("must be how many clients to draw (1 or more), or a list of clients counted from 0")


def _grid_key(key: str) -> str:
    section, _, last = key.partition(".")
    if section not in ("unlearning", "recovery", "params") or not last.isidentifier():
        raise ValueError(f"{key!r} cannot be varied; a key must be unlearning.x, recovery.x or params.x")
    return key


def _different(values: list[int]) -> list[int]:
    if len(set(values)) < len(values):
        raise ValueError("must be different numbers")
    return values


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
Name = Annotated[str, Field(pattern=NAME, max_length=80)]
Names = Annotated[list[Name], BeforeValidator(_listed)]
Seed = Annotated[int, Field(ge=0)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_different)]
Params = Annotated[dict[str, Any], AfterValidator(_plain)]
GridKey = Annotated[str, AfterValidator(_grid_key)]
