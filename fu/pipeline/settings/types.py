"""The types of settings, from YAML or the command line."""

import contextlib
import math
import re
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from fu.errors import UserError
from fu.types import WORD, Different, Name

DEEPEST, LARGEST, LONGEST = 40, 100_000, 10_000  # levels of a tree, its values with aliases expanded, characters
TOO_LARGE = (
    f"is nested more than {DEEPEST} levels deep (does an alias refer to itself?) or has more than {LARGEST} values"
)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
NUMBERS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool"))
RESOLVER = yaml.resolver.Resolver()


def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def typed(value: Any) -> Any:
    """Read numbers, true, false and null inside lists and mappings, which `snakemake --config` leaves as text."""
    if isinstance(value, dict):
        return {key: typed(below) for key, below in value.items()}
    if isinstance(value, list):
        return [typed(below) for below in value]
    if isinstance(value, str):
        if value == "null":
            return None
        tag = RESOLVER.resolve(yaml.ScalarNode, value, (True, False))
        if tag in NUMBERS:
            with contextlib.suppress(ValueError, OverflowError):  # 0b_, too many digits
                return yaml.constructor.SafeConstructor().construct_object(yaml.ScalarNode(tag, value))
    return value


def check_plain(tree: Any, where: str) -> None:
    """Raise `UserError` where a tree holds what JSON cannot (specs are JSON), or is unreasonably large."""
    left = LARGEST

    def walk(value: Any, path: tuple[str, ...]) -> None:
        nonlocal left
        left -= 1
        if len(path) > DEEPEST or left < 0:
            raise UserError(f"{where}: {TOO_LARGE}.")
        here = ": ".join([where, *filter(None, [".".join(path)])])
        if isinstance(value, dict):
            for key, below in value.items():
                if not (isinstance(key, str) and key.isprintable()):
                    shown = repr(key) if isinstance(key, str) else type(key).__name__
                    raise UserError(f"{here}: keys must be single-line text, got {shown}.")
                walk(below, (*path, key))
        elif isinstance(value, list):
            for number, below in enumerate(value):
                walk(below, (*path, str(number)))
        elif isinstance(value, str):
            if len(value) > LONGEST or CONTROL.search(value):
                raise UserError(f"{here}: text must have at most {LONGEST} characters and no control codes.")
        elif isinstance(value, int):
            if value.bit_length() > 63:
                raise UserError(f"{here}: an integer must fit in 64 bits.")
        elif value is not None and not (isinstance(value, float) and math.isfinite(value)):
            if isinstance(value, float):
                raise UserError(f"{here}: must be a finite number, got {value}.")
            raise UserError(
                f"{here}: must be a number, text, true, false, null, a list or a mapping, got {type(value).__name__}."
            )

    walk(tree, ())


def _grid_key(key: str) -> str:
    section, _, last = key.partition(".")
    if section not in ("training", "unlearning", "recovery", "params") or not last.isidentifier():
        raise ValueError(f"{key!r} cannot be varied; allowed: training.x, unlearning.x, recovery.x, params.x")
    return key


Word = Annotated[str, Field(pattern=rf"^{WORD}$", max_length=80)]
Pattern = Annotated[str, Field(pattern=r"^[A-Za-z0-9*][A-Za-z0-9._*-]*$", max_length=80)]
Names = Annotated[list[Name], BeforeValidator(_listed), Different]
Seed = Annotated[int, Field(ge=0)]
Seeds = Annotated[list[Seed], Field(min_length=1), Different]
Value = float | int | str
GridKey = Annotated[str, AfterValidator(_grid_key)]
