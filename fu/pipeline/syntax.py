"""What counts in a source file: its imports, the files that it declares, and its syntax tree."""

import ast
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fu.errors import UserError

DECLARED = {"METRICS", "ESTIMATE", "LABEL"}  # read by the plan
TEXTS = DECLARED | {"description", "examples", "__doc__", "getdoc"}  # names by which a module reads what is left out
TELLING = {  # these catch errors to tell people of them
    *("fu.plugins", "fu.pipeline.stages.common", "fu.data.clients", "fu.data.leaf", "fu.data.sources"),
    *("fu.artefacts.style", "fu.pipeline.stages.compute"),
}
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


class Analysis(NamedTuple):
    """What counts in a module.

    `text`, `whole`: hashes of its code without and with what only people read. `reads`: whether it may itself read such
    texts, of whatever module. `imports`: modules of `fu`, libraries by name. `files`: those that it declares (`READS`).
    """

    text: str
    whole: str
    reads: bool
    imports: list[str]
    files: list[str]


def analysed(module: str, path: Path, source: bytes, ours: bool) -> Analysis:
    """Return what counts in a module; `ours`: it is one of `fu`, not of a user's own folder."""
    tree = parse(source, path)
    parts = module.split(".")
    imports = list(imports_of(tree, parts if path.name == "__init__.py" else parts[:-1]))
    try:
        for line, name in _hiding(tree, imports):
            if module != "fu.plugins" and not (name.startswith("fu.plugins.") and module.startswith(LOADING)):
                raise UserError(
                    f"{path}: line {line}: {name} can import code that no digest covers; use a plain `import`."
                )
        reads, files, whole = _reads_texts(tree, module), _declared_files(tree, path), _hash(tree)
        text = _hash(_counted(tree, imports, ours))
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply to be read.") from None
    names = {one.name if root(one.name) == "fu" else root(one.name) for one in imports}
    return Analysis(text, whole, reads, sorted(names | {".".join(parts[:k]) for k in range(1, len(parts))}), files)


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


def _reads_texts(tree: ast.Module, module: str) -> bool:
    """Whether a module names one of `TEXTS` that is not its own, or binds an error that it catches."""
    bound = _bound(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(name=str()):
                if module not in TELLING:
                    return True
            case ast.Attribute(attr=name) | ast.alias(name=name) | ast.Constant(value=str(name)):
                if name in TEXTS:
                    return True
            case ast.Name(id=name, ctx=ast.Load()):
                if name in TEXTS - bound:
                    return True
    return False


def _declared_files(tree: ast.Module, path: Path) -> list[str]:
    """Return the files that a module declares to open: `READS = ["rate.txt"]` (that of an artefact is one word)."""
    files: list[str] = []
    for node in tree.body:
        if "READS" not in _bound(node):
            continue
        value = None
        if isinstance(node, ast.Assign | ast.AnnAssign) and _target(node) and node.value:
            with contextlib.suppress(ValueError, TypeError):
                value = ast.literal_eval(node.value)
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


def _counted(tree: ast.Module, imports: list[Import], ours: bool) -> ast.Module:
    """Remove docstrings from a tree; from one of `fu` also what else only people and the plan read."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body[:1] = [] if len(node.body) > 1 else [ast.Pass()]
    if not ours:
        return tree
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    tree.body = [node for node in tree.body if _target(node) not in DECLARED - used]
    named = {one.alias for one in imports if one.alias and one.name != "pydantic.Field"} | _bound(tree)
    fields = {one.alias for one in imports if one.name == "pydantic.Field"} - named
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
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


def _hash(tree: ast.Module) -> str:
    return hashlib.sha256(_dump(tree).encode()).hexdigest()


def _dump(node: Any) -> str:
    """Return a syntax tree as text, without positions and empty fields, which differ between Python versions."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
        return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in fields)})"
    return f"[{','.join(map(_dump, node))}]" if isinstance(node, list) else repr(node)
