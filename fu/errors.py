"""The exception for errors that the user can fix: its message is a full sentence. No result depends on it."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_TEXTS = {"string_pattern_mismatch": "a name must be letters and digits, with '-', '_' or '.' inside and no '/'"}


COMMAND = re.compile(r"\bmake (reproduce|show|why|plan|decide|verify|bundle|compare|oracles|audit|unlock|version)\b")


class UserError(Exception):
    """An error in a setting, an input file or an argument; the message says where, what, and what is allowed."""


def worded(text: str) -> str:
    """Return a text whose commands work in this folder: `make` in a clone, else `python -m fu`."""
    return text if Path.cwd() == Path(__file__).resolve().parents[1] else COMMAND.sub(r"python -m fu \1", text)


MOST, NEAREST = 40, 5  # of a list longer than MOST, a sentence names the NEAREST


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'x'? allowed: a, b" for a name that is not in `allowed`; of many only the nearest."""
    options = sorted(allowed)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    shown = options if len(options) <= MOST else difflib.get_close_matches(name, options, n=NEAREST, cutoff=0)
    more = f" and {len(options) - NEAREST} more" if len(options) > MOST else ""
    return f"{hint} allowed: {', '.join(shown) or 'none'}{more}"


def first_problem(error: "ValidationError", model: "type[BaseModel]", where: str, within: str = "") -> str:
    """Return the first of pydantic's problems as one sentence.

    `where`: the file, or the part of it that is wrong; `within`: the key that holds the whole record.
    """
    problem = error.errors(include_url=False)[0]
    location = problem["loc"]
    if location and location[-1] == "[key]":  # the key itself is wrong: the text shows it
        location = location[:-2]
    path = ".".join(str(part) for part in (within, *location) if part != "")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if problem["type"] == "extra_forbidden":
        text = f"unknown key{nearest(str(location[-1]), _allowed_keys(model, location))}"
    elif problem["type"] == "missing":
        text = "is missing"
    else:
        value = problem["input"]
        shown = "" if isinstance(value, dict) else f", got {value!r}"
        text = _TEXTS.get(problem["type"], problem["msg"].removeprefix("Value error, ")) + shown
        if problem["type"] == "float_type" and isinstance(value, str):
            text += ", which YAML reads as text (scientific notation needs a decimal point: 1.0e-3)"
    sentence = f"{where}: {path + ': ' if path else ''}{text}{more}."
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in sentence)


def _allowed_keys(model: "type[BaseModel]", location: tuple[Any, ...]) -> set[str]:
    """Return the keys of the model that holds the last part of `location`."""
    here = [model]
    for part in location[:-1]:
        fields = [m.model_fields[part].annotation for m in here if part in m.model_fields]
        below = [found for annotation in fields for found in _models(annotation)]
        here = below or here
    return {key for m in here for key in m.model_fields}


def _models(annotation: Any) -> "list[type[BaseModel]]":
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for arg in get_args(annotation) for model in _models(arg)]
