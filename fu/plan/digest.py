"""Code digests: SHA-256 over the syntax trees of everything that a stage can import from `fu`.

Comments, docstrings, layout and field descriptions do not count, so that only an edit that can change a result makes
one anew.
"""

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SELECTED = {
    "models": "model",
    "training": "training",
    "methods": "method",
    "projections": "projection",
}  # kind of plug-in -> key of the spec


def module_file(module: str) -> Path | None:
    """Return the source file of a module of this package, or None where there is no such module."""
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _parse(path: Path) -> ast.Module:
    tree = ast.parse(path.read_bytes(), filename=str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return tree


def _text(node: Any) -> str:
    """Return a syntax tree as text: without places, empty fields (which differ between versions of Python) and the
    `description=` of a field (which only people read).
    """
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{name}={_text(value)}' for name, value in fields)})"
    if isinstance(node, list):
        kept = [x for x in node if not (isinstance(x, ast.keyword) and x.arg == "description")]
        return f"[{','.join(map(_text, kept))}]"
    return repr(node)


def _imports(tree: ast.Module, package: list[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parent = ".".join([*base, *([node.module] if node.module else [])])
            found.add(parent)
            found.update(f"{parent}.{alias.name}" for alias in node.names)
    return {name for name in found if name == "fu" or name.startswith("fu.")}


@cache
def _read(module: str) -> tuple[str, frozenset[str]]:
    """Return a module's normalised text and the modules of `fu` that it imports, its own packages included."""
    path = module_file(module)
    assert path is not None
    parts = module.split(".")
    tree = _parse(path)
    package = parts if path.name == "__init__.py" else parts[:-1]
    parents = {".".join(parts[:k]) for k in range(1, len(parts))}
    imports = {name for name in _imports(tree, package) | parents if module_file(name)}
    return _text(tree), frozenset(imports)


@cache
def closure(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return, sorted, every module of `fu` that importing `modules` can load."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(_read(module)[1])
    return tuple(sorted(seen))


@cache
def digest(*modules: str) -> str:
    """Return the code digest of `modules` with all they import: 16 hexadecimal digits."""
    text = hashlib.sha256()
    for module in closure(modules):
        text.update(f"{module}\n{_read(module)[0]}\n".encode())
    return text.hexdigest()[:16]


def modules_of(stage: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modules a stage starts from: itself and the plug-ins that its spec selects."""
    chosen = [("datasets", spec.get("dataset"))]
    chosen += [("datasets", about["dataset"]) for about in dict(spec.get("scenarios", [])).values()]
    chosen += [(kind, (spec.get(key) or {}).get("name")) for kind, key in SELECTED.items()]
    chosen += [("evaluation", name) for name in spec.get("evaluators", [])]
    chosen += [("histories", name) for name in spec.get("history", [])]
    chosen += [("publishing", spec.get("kind"))]
    plugins = sorted({f"fu.{kind}.{name}" for kind, name in chosen if name})
    return (f"fu.stages.{stage}", *plugins)
