"""What the plan learns from files without importing torch: plug-ins and what they declare, checksums of archives.

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

from pydantic import ValidationError

from fu import plugins
from fu.artefacts.entry import Metric
from fu.data.archives import checksum
from fu.errors import UserError, first_problem, nearest
from fu.pipeline.digest import ROOT, digest, module_file, parse
from fu.plugins import Choice

KINDS = (
    *("methods", "training", "models", "datasets", "partitions", "attacks", "histories", "projections"),
    *("evaluation", "artefacts"),
)
# Folders that hold more than plug-ins: the constant that makes a file one.
MARKS = {"artefacts": "READS", "evaluation": "METRICS"}
CACHE = Path("results/.cache/plan.json")


class Planned(NamedTuple):
    """A plug-in with the hyper-parameters (canonical JSON) that the plan gives it, and the recorded histories."""

    kind: str
    name: str
    params: str
    where: str
    history: tuple[str, ...] = ()


def add_folder(folder: Path) -> None:
    """Look for plug-ins in a folder of the user's too; `UserError` where it holds something else."""
    if not folder.is_dir():
        raise UserError(f"config: plugins: there is no folder {str(folder)!r}.")
    for below in sorted(path for path in folder.iterdir() if any(path.glob("*.py"))):
        if below.name not in KINDS:
            raise UserError(f"{below}: there is no kind of plug-in {below.name!r}{nearest(below.name, KINDS)}.")
        taken = [path for path in sorted(below.glob("*.py")) if (ROOT / "fu" / below.name / path.name).exists()]
        if taken:
            raise UserError(f"{taken[0]}: fu has {below.name} of this name itself; give the file another one.")
    plugins.add_folder(folder)
    for known in (module_file, available, metrics):
        known.cache_clear()


@cache
def available(kind: str) -> list[str]:
    """Return the names of the plug-ins of a kind."""
    folders = [folder / kind for folder in (ROOT / "fu", *plugins.FOLDERS)]
    names = {path.stem for folder in folders for path in folder.glob("*.py") if path.stem.isidentifier()}
    marked = [name for name in sorted(names - {"__init__"}) if kind not in MARKS or MARKS[kind] in declared(kind, name)]
    return marked


def check(kind: str, name: str, where: str) -> None:
    """Raise `UserError` where a kind has no plug-in of that name."""
    if name not in available(kind):
        raise UserError(f"{where}: there is no {kind} plug-in {name!r}{nearest(name, available(kind))}.")


@cache
def declared(kind: str, name: str) -> dict[str, Any]:
    """Return the module-level constants of a plug-in that are plain literals, without importing it."""
    path = module_file(f"fu.{kind}.{name}")
    assert path is not None
    found: dict[str, Any] = {}
    for node in parse(path.read_bytes(), path).body:
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
    found = declared("methods", method).get("needs")
    if not isinstance(found, set):
        raise UserError(f"{method}.py (methods): needs a line `needs = {{...}}`, a set of history kinds, or `set()`.")
    return found


@cache
def metrics() -> dict[str, Metric]:
    """Return all metrics by name, as the evaluators declare them; `UserError` where two declare the same."""
    found: dict[str, Metric] = {}
    for name in available("evaluation"):
        for metric in metrics_of(name):
            if metric.name in found:
                raise UserError(f"{name}.py (evaluation): METRICS: another evaluator has {metric.name!r}; rename it.")
            found[metric.name] = metric
    return found


@cache
def metrics_of(evaluator: str) -> list[Metric]:
    """Return the metrics that an evaluator declares."""
    where = f"{evaluator}.py (evaluation): METRICS"
    found = declared("evaluation", evaluator)["METRICS"]
    if not isinstance(found, dict) or not all(isinstance(about, dict) for about in found.values()):
        raise UserError(f"{where}: must be a dictionary of metrics: name -> label, unit, better, formula, source.")
    try:
        return [Metric(name=name, **about) for name, about in found.items()]
    except ValidationError as error:
        raise UserError(first_problem(error, Metric, where)) from None


def reads(kind: str) -> str:
    """Return what an artefact kind is made from: evaluations, traces, data or nothing."""
    return str(declared("artefacts", kind)["READS"])


def also(kind: str) -> tuple[str, ...]:
    """Return the metrics that an artefact kind reads besides those that it is told to show."""
    return tuple(declared("artefacts", kind).get("ALSO", ()))


def chooses(kind: str) -> bool:
    """Return whether an artefact kind shows a method's best trial; one with `TRIALS = "all"` shows all of them."""
    return reads(kind) in ("evaluations", "traces") and declared("artefacts", kind).get("TRIALS") != "all"


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
            choice = Choice(name=item.name, params=json.loads(item.params))
            plugins.params(item.kind, choice, f"{item.where}: params")
            fresh[key] = True
    _remember("params", fresh)


def archive_of(path: Path) -> str | None:
    """Return the SHA-256 of an archive, hashed again only when the file changed; None where there is none."""
    if not path.is_file():
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
