"""Plug-ins: one file each, imported by kind (a folder of `fu`) and name, from here or from a folder of one's own."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fu.errors import UserError, first_problem

FOLDERS: list[Path] = []  # those with plug-ins from outside


@dataclass(frozen=True)
class Kind:
    """Marks a field of a record whose value names a plug-in of this kind: `Annotated[str, Kind("datasets")]`."""

    name: str


class Choice(BaseModel):
    """A plug-in by name, with its hyper-parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(description="file name of the plug-in, without .py")
    params: dict[str, Any] = Field(default_factory=dict, description="its hyper-parameters (`Params` in the file)")


def load(kind: str, name: str) -> ModuleType:
    """Import the plug-in `name` of a kind (`methods`, `models`, ...)."""
    return importlib.import_module(f"fu.{kind}.{name}")


def params(kind: str, choice: Choice, where: str) -> Any:
    """Return the plug-in's typed hyper-parameters; a `UserError` names the first wrong one."""
    model = load(kind, choice.name).Params
    try:
        return model(**choice.params)
    except ValidationError as error:
        raise UserError(first_problem(error, model, where)) from None


def named_by(record: BaseModel) -> list[str]:
    """Return, sorted, the modules of the plug-ins that the fields of a record name, as their `Kind` says."""
    found = set()
    for field, about in type(record).model_fields.items():
        for kind in (mark.name for mark in about.metadata if isinstance(mark, Kind)):
            value = getattr(record, field)
            for one in value if isinstance(value, tuple) else (value,):
                if one is not None:
                    found.add(f"fu.{kind}.{one.name if isinstance(one, Choice) else one}")
    return sorted(found)


def add_folder(folder: Path) -> None:
    """Look for plug-ins in `folder` too: `folder/methods/mine.py` is then `fu.methods.mine`."""
    if folder not in FOLDERS:
        FOLDERS.append(folder)
        for below in folder.iterdir():
            if any(below.glob("*.py")):
                importlib.import_module(f"fu.{below.name}").__path__.append(str(below))
