"""Which plug-ins the contract is tested on: all of this repository, or only those of the folder that FU_PLUGINS names.

A rule of the contract is a test that is parametrised by `plugins_of` or `pairs_of`: each of its cases is marked with
the plug-in that it is about. `report.py` says of each plug-in whether it keeps them, `rules.py` writes them down.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from fu import plugins
from fu.data import dataset
from fu.errors import UserError
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.digest import ROOT

FOLDER = Path(os.environ["FU_PLUGINS"]).expanduser().resolve() if os.environ.get("FU_PLUGINS") else None


def path_of(kind: str, name: str) -> Path:
    """Return the file of a plug-in that is tested."""
    path = (FOLDER or ROOT / "fu") / kind / name
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def files_of(kind: str) -> list[str]:
    """Return the names of a kind's files that are tested: of a folder of one's own all, be they plug-ins or not."""
    if FOLDER is None:
        return catalogue.available(kind)
    modules = {path.stem for path in FOLDER.glob(f"{kind}/*.py")}
    return sorted((modules | {path.parent.name for path in FOLDER.glob(f"{kind}/*/__init__.py")}) - {"__init__"})


@cache
def problem(kind: str, name: str) -> str:
    """Return in one sentence why a file cannot be used as a plug-in; "" where it can be."""
    try:
        catalogue.check(kind, name, str(path_of(kind, name)))
        plugins.load(kind, name)
        if kind == "datasets":
            dataset.about(name)
    except UserError as error:
        return str(error)
    return ""


@cache
def is_helper(kind: str, name: str) -> bool:
    """Return whether a file can be read and defines nothing of a plug-in."""
    try:
        return name not in catalogue.available(kind) and not catalogue.begun(kind, name)
    except UserError:
        return False


def names_of(kind: str) -> list[str]:
    """Return the names of the plug-ins of a kind that are tested: those that can be used."""
    return [name for name in files_of(kind) if not is_helper(kind, name) and not problem(kind, name)]


def sound(kind: str) -> list[str]:
    """Return the names of all plug-ins of a kind that can be used, those of this repository included."""
    return [name for name in catalogue.available(kind) if not problem(kind, name)]


def plugins_of(kind: str, only: Callable[[str], object] = bool) -> list[ParameterSet]:
    """Return the one parameter, a name, of each plug-in of a kind that is tested and for which `only` is true."""
    return [case(kind, name, name) for name in names_of(kind) if only(name)]


def pairs_of(*kinds: str, only: Callable[[str, str], object] = lambda kind, name: True) -> list[ParameterSet]:
    """Return the two parameters, kind and name, of each plug-in of several kinds, likewise."""
    return [case(kind, name, kind, name) for kind in kinds for name in names_of(kind) if only(kind, name)]


def runs(kind: str, name: str) -> bool:
    """Return whether a plug-in can be run as it is: one that reads a file of one's own (`FILE`) cannot."""
    return "FILE" not in catalogue.declared(kind, name)


def case(kind: str, name: str, *values: str) -> ParameterSet:
    """Return the parameters of a test that is about a plug-in."""
    return pytest.param(*values, marks=pytest.mark.plugin(kind, name))
