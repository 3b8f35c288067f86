"""What counts in a source file: its imports, the files that it declares, and its syntax tree."""

import ast
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fu.errors import UserError

DECLARED = {"METRICS", "ESTIMATE", "FIDELITY", "LABEL", "CAVEAT", "SCORE", "SEES"}  # read by the plan
MESSAGES = {"UserError", "ValueError"}  # errors whose arguments people read
# What can import code that a syntax tree does not show; `fu.plugins` may, for the plug-ins that a spec names.
HIDING_MODULES = {"importlib", "imp", "pkgutil", "runpy", "site", "zipimport"}
LOADERS = {  # functions that import a plug-in by name
    *("fu.plugins.load", "fu.plugins.params", "fu.plugins.*", "fu.data.dataset.about", "fu.data.dataset.*"),
    *("fu.evaluation.values.measured", "fu.evaluation.values.*"),
    *("fu.federation.plugged.training_of", "fu.federation.plugged.*"),
}
HIDING_NAMES = {"sys.path", "sys.meta_path", "sys.path_hooks", *LOADERS}
HIDING_BUILTINS = {"__import__", "exec", "eval"}
METADATA = "importlib.metadata"  # imports nothing
# These may load the plug-ins that a spec names.
LOADING = ("fu.data.", "fu.evaluation.values", "fu.federation.plugged", "fu.pipeline.")
HIDES = "can import code that no digest covers; use a plain `import`"
UNCOUNTED = "is left out of digests, so its edits would go unnoticed; use a constant of another name"


def parse(source: bytes, path: Path) -> ast.Module:
    """Return the syntax tree of a source file; `UserError` where it cannot be parsed."""
    try:
        return ast.parse(source, filename=str(path))
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, before Python 3.12
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise UserError(f"{path}: {line}{getattr(error, 'msg', error)}.") from None


class Analysis(NamedTuple):
    """What counts in a module: the hash of its code, the modules of `fu` and the libraries that it imports, and the
    files that it declares (`READS`).
    """

    code: str
    imports: list[str]
    files: list[str]


def analysed(module: str, path: Path, source: bytes) -> Analysis:
    """Return what counts in a module; `UserError` where it runs or reads what no digest covers."""
    tree = parse(source, path)
    parts = module.split(".")
    imports = list(imports_of(tree, parts if path.name == "__init__.py" else parts[:-1]))
    for line, name, why in _refused(tree, imports):
        if module != "fu.plugins" and not (name in LOADERS and module.startswith(LOADING)):
            raise UserError(f"{path}: line {line}: {name} {why}.")
    files = _declared_files(tree, path)
    names = {one.name if root(one.name) == "fu" else root(one.name) for one in imports}
    names |= {".".join(parts[:k]) for k in range(1, len(parts))}
    return Analysis(hashlib.sha256(_dump(_counted(tree, imports)).encode()).hexdigest(), sorted(names), files)


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
            for alias in node.names:
                yield Import(node.lineno, alias.name, alias.asname or root(alias.name))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parent = ".".join([*base, *([node.module] if node.module else [])])
            yield Import(node.lineno, parent, None)
            for alias in node.names:
                yield Import(node.lineno, f"{parent}.{alias.name}", alias.asname or alias.name)


def _refused(tree: ast.Module, imports: list[Import]) -> Iterator[tuple[int, str, str]]:
    """Yield line and name of all that can import code that a syntax tree does not show, or reads what does not count,
    and the rest of a sentence about it.
    """
    known = {one.alias: one.alias if one.alias == root(one.name) else one.name for one in imports if one.alias}

    def full(node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{full(node.value)}.{node.attr}"
        return known.get(node.id, "") if isinstance(node, ast.Name) else ""

    uses = [(one.line, one.name) for one in imports]
    uses += [(node.lineno, full(node)) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for line, name in uses:
        if name in HIDING_NAMES or (root(name) in HIDING_MODULES and not name.startswith(METADATA)):
            yield line, name, HIDES
        last = name.rpartition(".")[2]
        if last == "__doc__" or name == "inspect.getdoc" or (root(name) == "fu" and last in DECLARED):
            yield line, name.lstrip("."), UNCOUNTED
    bound = _bound(tree) | known.keys()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in bound:
            if node.id in HIDING_BUILTINS:
                yield node.lineno, node.id, HIDES
            if node.id in {"__doc__", *DECLARED}:
                yield node.lineno, node.id, UNCOUNTED


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a module, or a part of it, defines itself, at any depth."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _declared_files(tree: ast.Module, path: Path) -> list[str]:
    """Return the files that a module declares to open: `READS = ["rate.txt"]` (that of an artefact is one word)."""
    files: list[str] = []
    for node in (node for node in tree.body if "READS" in _bound(node)):
        value = None
        if written := assigned(node)[1]:
            with contextlib.suppress(ValueError):
                value = ast.literal_eval(written)
        if isinstance(value, list) and all(isinstance(name, str) and _is_below(name) for name in value):
            files += value
        elif not isinstance(value, str):
            raise UserError(
                f"{path}: line {node.lineno}: READS must list files in this folder or below, as in "
                'READS = ["rate.txt"].'
            )
    return files


def _is_below(name: str) -> bool:
    return bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _counted(tree: ast.Module, imports: list[Import]) -> ast.Module:
    """Remove from a tree what only people and the plan read: docstrings, the texts of errors and of pydantic's fields,
    and constants that are declared for the plan alone.
    """
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    fields = {"Field"} if any(one.name == "pydantic.Field" for one in imports) else set()
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if ast.get_docstring(node, clean=False) is not None:
                    node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name)) as call) if name in MESSAGES:
                call.args, call.keywords = [], []
            case ast.Call(func=ast.Name(id=name)) if name in fields:
                node.keywords = [one for one in node.keywords if one.arg not in ("description", "examples")]
    tree.body = [node for node in tree.body if assigned(node)[0] not in DECLARED - used]
    return tree


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """Return the name and the value of an assignment; "" if the statement does not assign a single name."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return "", None


def _dump(node: Any) -> str:
    """Return a syntax tree as text, without positions and empty fields, which differ between Python versions."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in fields)})"
    return f"[{','.join(map(_dump, node))}]" if isinstance(node, list) else repr(node)
