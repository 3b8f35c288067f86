"""Plug-ins: one file each, imported by kind (a subfolder of `fu`) and name, from `fu` or the user's own folder."""

import importlib.util
import inspect
import os
import sys
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import BaseModel, Field, ValidationError

from fu.errors import UserError, first_problem
from fu.sources import FOLDERS as FOLDERS
from fu.types import Name, Parameters, Strict

# The functions of each kind with their arguments; those after the star are given by name.
CALLED = {
    "methods": {
        **{"start": "task, p", "step": "task, p, state, round"},
        **{"again": "task, p, state, round", "done": "state", "check": "model, p"},
    },
    "training": {
        **{"start": "task, p", "step": "task, p, state, round"},
        **{"trained_on": "task, p", "check": "model, p"},
    },
    "models": {"build": "shape, classes, p"},
    "datasets": {},
    "partitions": {
        **{"check": "clients, classes, p", "check_samples": "samples, clients, p"},
        **{"deal": "labels, *, classes, clients, p, rng"},
    },
    "attacks": {"check": "shape, classes, p", "draw": "train, *, classes, p, rng", "mark": "drawn, x, y, *, classes"},
    "histories": {"record": "task, so_far, theta, round"},
    "projections": {"project": "task, p, theta, delta"},
    "evaluation": {"evaluate": "context", "trace": "context", "count": "task, before, after, round"},
    "artefacts": {"make": "frame, entry", "by_seed": "frame, entry"},
    "audits": {"audit": "models", "runs": "models", "indices": "models"},
    "claims": {"operands": "p", "statistics": "rows, p", "region": "p", "reach": "rows, p"},
}


@dataclass(frozen=True)
class Kind:
    """Marks a field of a record whose value names a plug-in of this kind: `Annotated[str, Kind("datasets")]`."""

    name: str


class Choice(Strict):
    """A plug-in and its hyper-parameters."""

    name: Name = Field(description="file name of the plug-in, without .py")
    params: Parameters = Field(default_factory=dict, description="its hyper-parameters (class `Params` in that file)")


def exists(kind: str, name: str) -> bool:
    """Return whether a kind has a module of that name."""
    module = f"fu.{kind}.{name}"
    return name.isidentifier() and (module in sys.modules or importlib.util.find_spec(module) is not None)


def load(kind: str, name: str) -> ModuleType:
    """Import the plug-in `name` of a kind (`methods`, `models`, ...); a `UserError` says where this fails."""
    if not exists(kind, name):
        raise UserError(f"there is no {kind} plug-in {name!r}.")
    try:
        module = importlib.import_module(f"fu.{kind}.{name}")
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        where = _place(error) or f"fu.{kind}.{name}"
        raise UserError(f"{where}: the {kind} plug-in {name!r} failed to import: {_told(error)}.") from error
    _check(module, kind)
    return module


@cache
def _check(module: ModuleType, kind: str) -> None:
    """Raise `UserError` where a function of a plug-in cannot be called as it will be."""
    for function, given in CALLED[kind].items():
        if hasattr(module, function):
            _check_call(module, function, given)


def _check_call(module: ModuleType, name: str, given: str) -> None:
    """Raise `UserError` where a plug-in's function cannot be called as it will be."""
    function = getattr(module, name)
    if not callable(function):
        raise UserError(f"{module.__file__}: {name} must be a function of ({given}), got {type(function).__name__}.")
    first, _, named = given.partition(", *, ")
    try:
        inspect.signature(function).bind(*first.split(", "), **{key: None for key in named.split(", ") if key})
    except TypeError as error:
        raise UserError(f"{place_of(module, name)}: {name} is called with ({given}): {error}.") from None
    except ValueError:  # written in C, some functions do not say what they take
        pass


def place_of(module: ModuleType, name: str) -> str:
    """Return the file and line at which a plug-in's function is defined."""
    code = getattr(inspect.unwrap(getattr(module, name)), "__code__", None)
    return f"{code.co_filename}: line {code.co_firstlineno}" if code else str(module.__file__)


def told(error: BaseException) -> str:
    """Return in one sentence what happened in a plug-in, with file and line; "" where no line of one is behind it."""
    place = _place(error)
    return place and f"{place}: {_told(error)}."


def _place(error: BaseException) -> str:
    """Return the last file and line of a plug-in behind an error, of a user's own rather than of `fu`, or ""."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}: line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    for folders in (FOLDERS, [Path(__file__).parent / kind for kind in CALLED]):
        within = tuple(f"{os.path.abspath(folder)}{os.sep}" for folder in folders)  # noqa: PTH100 (links stay)
        if found := [frame for frame in frames if frame.filename.startswith(within)]:
            return f"{found[-1].filename}: line {found[-1].lineno}"
    return ""


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if isinstance(error, ImportError | SyntaxError) else f"{type(error).__name__}{text and f': {text}'}"


def params(kind: str, choice: Choice, where: str) -> Any:
    """Return the plug-in's typed hyper-parameters; a `UserError` names the first wrong one."""
    model = getattr(load(kind, choice.name), "Params", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise UserError(f"{choice.name}.py ({kind}): Params must be a subclass of pydantic's BaseModel.")
    for name, field in model.model_fields.items():
        kinds = {field.annotation, *get_args(field.annotation)}
        number = bool(kinds & {int, float}) and bool not in kinds
        if number and isinstance(choice.params.get(name), bool):  # which pydantic takes for 0 or 1
            raise UserError(f"{where}: params.{name}: must not be true or false.")
    try:
        return model(**choice.params)
    except ValidationError as error:
        raise UserError(first_problem(error, model, where, "params")) from None
    except Exception as error:
        file = f"{kind}/{choice.name}.py"
        raise UserError(f"{_place(error) or file}: {_told(error)}, in Params of {file} ({where}).") from None


def mismatch(values: Any, *kinds: type) -> str:
    """Describe the first value that is not of these types, or `values` if it is no dictionary; "" if all fit."""
    if not isinstance(values, dict):
        return type(values).__name__
    wrong = [(name, type(value).__name__) for name, value in values.items() if not isinstance(value, kinds)]
    return "{!r} of type {}".format(*wrong[0]) if wrong else ""


def named_by(record: BaseModel) -> list[str]:
    """Return, sorted, the modules of the plug-ins that a record names in its `Kind` fields."""
    found: set[str] = set()
    for field, about in type(record).model_fields.items():
        if isinstance(inside := getattr(record, field), dict):
            found.update(*(named_by(one) for one in inside.values() if isinstance(one, BaseModel)))
        for kind in (mark.name for mark in about.metadata if isinstance(mark, Kind)):
            value = getattr(record, field)
            for one in value if isinstance(value, tuple) else (value,):
                if one is not None:
                    found.add(f"fu.{kind}.{one.name if isinstance(one, Choice) else one}")
    return sorted(found)


def add_folder(folder: Path | str) -> None:
    """Also look for plug-ins in `folder`: `folder/methods/mine.py` becomes `fu.methods.mine`.

    `UserError` where there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder.")
    if folder not in FOLDERS:
        FOLDERS.append(folder)
