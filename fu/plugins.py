"""The one place that imports a plug-in by its name: `fu/<kind>/<name>.py`."""

import importlib
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from fu.errors import UserError


def load(kind: str, name: str) -> ModuleType:
    """Import the plug-in `name` of a kind (`methods`, `training`, `models`, `evaluation`, `publishing`)."""
    return importlib.import_module(f"fu.{kind}.{name}")


def params(kind: str, name: str, values: dict[str, Any], where: str) -> Any:
    """Return the plug-in's typed hyper-parameters; a `UserError` names the first wrong one."""
    from fu.sentences import first_problem

    model = load(kind, name).Params
    try:
        return model(**values)
    except ValidationError as error:
        raise UserError(first_problem(error, model, where)) from None
