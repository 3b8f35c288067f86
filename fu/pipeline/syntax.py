"""What counts in a source file: its imports, and its syntax tree without what cannot change a result."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fu.errors import UserError

DECLARED = {"METRICS", "ESTIMATE", "LABEL"}  # read by the plan; counted only where their own module reads them
# What can import code that a syntax tree does not show; `fu.plugins` may, for the plug-ins that a spec names.
HIDING_MODULES = {"importlib", "imp", "pkgutil", "runpy", "site", "zipimport"}
HIDING_NAMES = {"sys.path", "sys.meta_path", "sys.path_hooks", "fu.plugins.load", "fu.plugins.params", "fu.plugins.*"}
HIDING_BUILTINS = {"__import__", "exec", "eval"}
METADATA = "importlib.metadata"  # imports nothing
LOADING = ("fu.data.", "fu.pipeline.")  # may load the plug-ins that a spec names


def parse(source: bytes, path: Path) -> ast.Module:
    """Return the syntax tree of a source file; `UserError` where it cannot be parsed."""
    if b"\0" in source:
        raise UserError(f"{path}: line {source[: source.index(0)].count(10) + 1}: contains a null byte.")
    try:
        return ast.parse(source, filename=str(path))
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise UserError(f"{path}: {line}{error.msg}.") from None
    except (RecursionError, MemoryError):
        raise UserError(f"{path}: is nested too deeply to be read.") from None


def analysed(module: str, path: Path, source: bytes) -> list[Any]:
    """Return the hash of what counts in a module, and its imports: modules of `fu`, libraries by name."""
    tree = parse(source, path)
    parts = module.split(".")
    imports = list(imports_of(tree, parts if path.name == "__init__.py" else parts[:-1]))
    try:
        for line, name in _hiding(tree, imports):
            if module != "fu.plugins" and not (name.startswith("fu.plugins.") and module.startswith(LOADING)):
                raise UserError(f"{path}: line {line}: {name} can import code that no digest covers; use `import`.")
        text = hashlib.sha256(_dump(_counted(tree, imports)).encode()).hexdigest()
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply to be read.") from None
    names = {one.name if root(one.name) == "fu" else root(one.name) for one in imports}
    return [text, sorted(names | {".".join(parts[:k]) for k in range(1, len(parts))})]


def root(name: str) -> str:
    """Return the top-level package of a dotted name."""
    return name.partition(".")[0]


class Import(NamedTuple):
    """An import: the full name, and the name that it binds in the module, if any."""

    line: int
    name: str
    alias: str | None


def imports_of(tree: ast.Module, package: list[str]) -> Iterator[Import]:
    """Yield the imports of a module in a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for found in node.names:
                yield Import(node.lineno, found.name, found.asname or root(found.name))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parent = ".".join([*base, *([node.module] if node.module else [])])
            yield Import(node.lineno, parent, None)
            for found in node.names:
                yield Import(node.lineno, f"{parent}.{found.name}", found.asname or found.name)


def _hiding(tree: ast.Module, imports: list[Import]) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that can import code that a syntax tree does not show."""
    known = {one.alias: one.alias if one.alias == root(one.name) else one.name for one in imports if one.alias}

    def full(node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{full(node.value)}.{node.attr}"
        return known.get(node.id, "") if isinstance(node, ast.Name) else ""

    uses = [(one.line, one.name) for one in imports]
    uses += [(node.lineno, full(node)) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for line, name in uses:
        if name in HIDING_NAMES or (root(name) in HIDING_MODULES and not name.startswith(METADATA)):
            yield line, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in HIDING_BUILTINS and node.id not in _bound(tree) | known.keys():
            yield node.lineno, node.id


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a module defines itself, at any depth."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


READS = ("attr", "id", "value")  # of an attribute, a name, a constant


def _counted(tree: ast.Module, imports: list[Import]) -> ast.Module:
    """Remove from a tree what does not count; docstrings count where the module reads `__doc__`."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    tree.body = [node for node in tree.body if _target(node) not in DECLARED - used]
    named = {one.alias for one in imports if one.alias and one.name != "pydantic.Field"} | _bound(tree)
    fields = {one.alias for one in imports if one.name == "pydantic.Field"} - named
    described = any(getattr(node, field, None) in ("__doc__", "getdoc") for node in ast.walk(tree) for field in READS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None and not described:
                node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in fields:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("description", "examples")]
    return tree


def _target(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _dump(node: Any) -> str:
    """Return a syntax tree as text, without positions and empty fields, which differ between Python versions."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in fields)})"
    return f"[{','.join(map(_dump, node))}]" if isinstance(node, list) else repr(node)
