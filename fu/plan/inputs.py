"""What the plan learns from files without importing torch: plug-ins, what they need, checksums of archives.

What costs time (importing torch to check hyper-parameters, hashing archives) is remembered in `results/.cache`.
"""

import ast
import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fu.data.archives import checksum
from fu.errors import UserError, nearest
from fu.plan.digest import digest, module_file

# Folders that hold more than plug-ins: the constant that makes a file one.
MARKS = {"publishing": "READS", "evaluation": "METRICS"}
CACHE = Path("results/.cache/plan.json")


class Planned(NamedTuple):
    """A plug-in with the hyper-parameters (canonical JSON) that the plan gives it, and the recorded histories."""

    kind: str
    name: str
    params: str
    where: str
    history: tuple[str, ...] = ()


@cache
def available(kind: str) -> list[str]:
    """Return the names of the plug-ins of a kind."""
    package = module_file(f"fu.{kind}")
    assert package is not None
    names = sorted(path.stem for path in package.parent.glob("*.py") if path.stem != "__init__")
    return [name for name in names if kind not in MARKS or MARKS[kind] in _constants(kind, name)]


def check(kind: str, name: str, where: str) -> None:
    """Raise `UserError` where a kind has no plug-in of that name."""
    if name not in available(kind):
        raise UserError(f"{where}: there is no {kind} plug-in {name!r}{nearest(name, available(kind))}.")


@cache
def _constants(kind: str, name: str) -> dict[str, Any]:
    """Return the module-level constants of a plug-in that are plain literals, without importing it."""
    path = module_file(f"fu.{kind}.{name}")
    assert path is not None
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_bytes()).body:
        target, value = None, None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        if isinstance(target, ast.Name) and value is not None:
            empty_set = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "set" and not value.args
            with contextlib.suppress(ValueError):
                found[target.id] = set() if empty_set else ast.literal_eval(value)
    return found


def needs(method: str) -> set[str]:
    """Return the kinds of history that a method needs."""
    declared = _constants("methods", method).get("needs")
    if not isinstance(declared, set):
        raise UserError(f"fu/methods/{method}.py: needs a line `needs = {{...}}`, a set of history kinds, or `set()`.")
    return declared


def reads(kind: str) -> str:
    """Return what an artefact kind is made from: evaluations, traces, data or nothing."""
    return str(_constants("publishing", kind)["READS"])


def selects(kind: str) -> bool:
    """Return whether an artefact kind shows a method's best point; one with `POINTS = "all"` shows all of them."""
    return reads(kind) in ("evaluations", "traces") and _constants("publishing", kind).get("POINTS") != "all"


def check_params(planned: Iterable[Planned]) -> None:
    """Check every planned plug-in's hyper-parameters against its `Params`, and that its histories are recorded.

    Imports a plug-in only where the same file was not found right with the same values before.
    """
    remembered = _remembered("params")
    fresh = {}
    for item in sorted(set(planned)):
        if item.kind == "methods":
            lacking = sorted(needs(item.name) - set(item.history))
            if lacking:
                raise UserError(
                    f"{item.where}: needs the history {lacking[0]!r}; add it to settings.training.history "
                    f"(recorded: {', '.join(item.history) or 'none'})."
                )
        key = hashlib.sha256(
            f"{digest(f'fu.{item.kind}.{item.name}')}{item.kind}{item.name}{item.params}".encode()
        ).hexdigest()
        if key not in remembered:
            from fu import plugins

            plugins.params(item.kind, item.name, json.loads(item.params), f"{item.where}: params")
            fresh[key] = True
    _remember("params", fresh)


def archive_of(path: Path, made: Path) -> str | None:
    """Return the SHA-256 of an archive; hashed again only when size or modification time changed.

    Where the archive is absent now, but the file `made` was made from one, that one's, as the job noted it: a forgotten
    data_dir undoes nothing. None where there was none.
    """
    if not path.is_file():
        with contextlib.suppress(OSError, json.JSONDecodeError):
            noted = json.loads(made.with_suffix(".source.json").read_text())["archive"]
            return noted if made.is_file() else None
        return None
    about = path.stat()
    key = f"{path.resolve()}:{about.st_size}:{about.st_mtime_ns}"
    found = str(_remembered("archives").get(key) or checksum(path))
    _remember("archives", {key: found})
    return found


def _read_cache() -> dict[str, dict[str, Any]]:
    with contextlib.suppress(OSError, json.JSONDecodeError):
        content = json.loads(CACHE.read_text())
        if isinstance(content, dict):
            return content
    return {}


def _remembered(topic: str) -> dict[str, Any]:
    return _read_cache().get(topic, {})


def _remember(topic: str, entries: dict[str, Any]) -> None:
    content = _read_cache()
    if entries.items() <= content.get(topic, {}).items():
        return
    content.setdefault(topic, {}).update(entries)
    with contextlib.suppress(OSError):  # a read-only folder costs time, nothing else
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        part = CACHE.with_name(f".{CACHE.name}.{os.getpid()}")
        part.write_text(json.dumps(content))
        part.replace(CACHE)
