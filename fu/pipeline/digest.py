"""Code digests: SHA-256 over the syntax trees of everything that a stage can import from `fu`.

What cannot change a result does not count: comments, docstrings and layout; the text of errors (all arguments of a
`raise`) and of fields; constants that only the plan reads; modules that only speak to people or name files.
"""

import ast
import contextlib
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fu import plugins
from fu.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
UNCOUNTED = {
    "fu.errors",
    "fu.federation.progress",
    "fu.pipeline.digest",
    "fu.pipeline.paths",
    "fu.pipeline.certificate",
}
DECLARED = {"METRICS", "ESTIMATE"}  # for the plan; counted where their own module reads them
CACHE = Path("results/.cache/digests.json")  # by content, also of this file, so that nothing in it is ever stale
OWN = hashlib.sha256(Path(__file__).read_bytes()).digest()


@cache
def module_file(module: str) -> Path | None:
    """Return the source file of a module of `fu`, or None where there is no such module."""
    parts = module.split(".")
    for folder in (ROOT / "fu", *plugins.FOLDERS):
        base = folder.joinpath(*parts[1:])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def parse(source: bytes, path: Path) -> ast.Module:
    """Return the syntax tree of a source file; `UserError` where it has none."""
    try:
        return ast.parse(source, filename=str(path))
    except SyntaxError as error:
        raise UserError(f"{path}: line {error.lineno}: {error.msg}.") from None


def _parse(source: bytes, path: Path) -> ast.Module:
    tree = parse(source, path)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    tree.body = [node for node in tree.body if _target(node) not in DECLARED - used]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("description", "examples")]
    return tree


def _target(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _text(node: Any) -> str:
    """Return a syntax tree as text, without places and empty fields, which differ between versions of Python."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{name}={_text(value)}' for name, value in fields)})"
    return f"[{','.join(map(_text, node))}]" if isinstance(node, list) else repr(node)


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
    """Return the hash of a module's normalised text and the modules of `fu` that it imports, its packages included."""
    path = module_file(module)
    assert path is not None
    source = path.read_bytes()
    key = hashlib.sha256(b"\n".join([OWN, f"{module} {path.name}".encode(), source])).hexdigest()
    if key not in _remembered():
        parts = module.split(".")
        tree = _parse(source, path)
        package = parts if path.name == "__init__.py" else parts[:-1]
        parents = {".".join(parts[:k]) for k in range(1, len(parts))}
        text = hashlib.sha256(_text(tree).encode()).hexdigest()
        _remembered()[key] = [text, sorted(_imports(tree, package) | parents)]
    text, imports = _remembered()[key]
    return text, frozenset(name for name in imports if name not in UNCOUNTED and module_file(name))


@cache
def _remembered() -> dict[str, Any]:
    """Return what was read before, by content."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(CACHE.read_text())
        if isinstance(content, dict) and all(isinstance(value, list) and len(value) == 2 for value in content.values()):
            return content
    return {}


def remember() -> None:
    """Keep what was read for the jobs to come; a read-only folder costs time, nothing else."""
    with contextlib.suppress(OSError):
        replace_text(CACHE, json.dumps(_remembered()))


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)


@cache
def closure(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return, sorted, every module of `fu` that importing `modules` can load and that counts."""
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


def modules_of(stage: str, spec: BaseModel) -> tuple[str, ...]:
    """Return the modules a stage starts from: itself and the plug-ins that its spec names."""
    return (f"fu.pipeline.stages.{stage}", *plugins.named_by(spec))


def parts(*modules: str) -> dict[str, str]:
    return {module: _read(module)[0][:8] for module in closure(modules)}


def check_installed(*modules: str) -> None:
    pass


def reread(*modules: str) -> str:
    return digest(*modules)
