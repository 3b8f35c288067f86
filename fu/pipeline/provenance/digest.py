"""Code digests: SHA-256 over the syntax trees of all that a stage can import from `fu`, and the versions of libraries.

What cannot change a result is ignored: comments, docstrings and formatting; the texts of errors and of pydantic's
fields; constants that only the plan reads; and modules of `fu` that only print messages or name files. Files that a
module declares (`READS`) count, too. Code that a syntax tree does not show (`exec`, `importlib`, code outside `fu`) is
refused. The digested text of a module is the text that this process compiles (`fu.sources`).
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import pkgutil
import re
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from fu import sources
from fu.errors import UserError
from fu.pipeline.provenance import syntax
from fu.pipeline.provenance.syntax import Analysis, analysed, imports_of, parse, root

PACKAGES = Path(__file__).resolve().parents[3]  # the folder of the package `fu`
# The folder of papers, presets, published numbers and rules: a clone; where `fu` is installed, they are in the package.
ROOT = PACKAGES if (PACKAGES / "workflow").is_dir() else PACKAGES / "fu/project"
LOCK = "envs/lock.txt"
UNCOUNTED = {
    *("fu.errors", "fu.contents", "fu.gpus", "fu.sources", "fu.federation.progress"),
    *(f"fu.pipeline.provenance.{name}" for name in ("certificate", "digest", "paths", "syntax")),
    "fu.data.torchvision_import",  # its downloads are verified by the publisher's checksums
}
# These only validate input or print messages.
UNCOUNTED_LIBRARIES = {"pydantic", "pydantic-core", "annotated-types", "typing-extensions", "tqdm", "psutil"}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml", "PIL": "pillow", "dateutil": "python-dateutil"}
BEHIND = {  # what these use to write results, though `fu` never imports it
    "pandas": ("tabulate", "jinja2", "markupsafe"),
    "matplotlib": ("pillow", "fonttools", "kiwisolver"),
}
CACHE = Path("results/.cache/digests.json")  # keyed by content, this file's included, so never stale
OWN = hashlib.sha256(b"".join(Path(str(file)).read_bytes() for file in (__file__, syntax.__file__))).digest()


class Source(NamedTuple):
    """What counts in a module, with its imports from `fu` and from libraries."""

    about: Analysis
    modules: tuple[str, ...]
    libraries: tuple[str, ...]


# ---- files, each as it was when this process first read it -----------------------------------------------------------


def forget() -> None:
    """Forget all files, so that they are read again: a server's jobs may find other files than it did."""
    importlib.invalidate_caches()
    for known in (_spec, source, _pinned, _opened, versions, digest, _check_shadows):
        known.cache_clear()


@cache
def _spec(module: str) -> ModuleSpec | None:
    """Return how Python would import a module; a folder without `__init__.py` comes last."""
    finders = [pkgutil.get_importer(folder) for folder in folders(module.rpartition(".")[0])]
    specs = [finder.find_spec(module) for finder in finders if finder]  # None: there is no such folder
    return min(filter(None, specs), key=lambda spec: not spec.origin, default=None)


def module_file(module: str) -> Path | None:
    """Return the file that Python would import: a package before a module, a compiled file before source."""
    spec = _spec(module)
    return Path(spec.origin) if spec and spec.origin else None


def folders(package: str) -> list[str]:
    """Return the folders in which Python looks for a package's modules; none if it is not a package."""
    if not package:
        return [str(PACKAGES)]
    from fu import plugins  # counted, which this module is not

    spec, (parent, _, name) = _spec(package), package.rpartition(".")
    found = [*((spec and spec.submodule_search_locations) or ())]
    return found + [f"{folder}/{name}" for folder in plugins.FOLDERS if parent == "fu" and found]


def modules_in(package: str) -> list[str]:
    """Return, sorted, the names of the modules in a package."""
    return sorted({one.name for one in pkgutil.iter_modules(folders(package)) if one.name.isidentifier()})


def read(module: str) -> tuple[Path, bytes]:
    """Return the file of a module and its text; `UserError` where it has no readable source."""
    path = module_file(module)
    if path is None:
        raise UserError(f"{module}: there is no such module.")
    if path.suffix != ".py":
        raise UserError(f"{path}: Python would import this compiled file, whose code cannot be digested; remove it.")
    try:
        return path, sources.text(str(path))
    except OSError:
        raise UserError(f"{path}: the file cannot be read.") from None


@cache
def _opened(module: str, file: str) -> tuple[Path, tuple[str, ...], str]:
    """Return the path of a file that a module declares, its time of change, and its hash."""
    by, _ = read(module)
    path = by.parent / file
    when = _changed(path)
    try:
        return path, when, hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise UserError(f"{by}: READS: the file {path} cannot be read.") from None


@cache
def _pinned() -> dict[str, str]:
    """Return the versions in `envs/lock.txt`, without local labels such as +cpu."""
    try:
        lines = (ROOT / LOCK).read_text(errors="replace")
    except OSError:
        return {}
    return {_normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;+]+)", lines, re.MULTILINE)}


# ---- what a digest covers --------------------------------------------------------------------------------------------


@cache
def source(module: str) -> Source:
    """Return what counts in a module; its parent packages are among its imports."""
    path, text = read(module)
    key = hashlib.sha256(b"\n".join([OWN, f"{module} {path.name}".encode(), text])).hexdigest()
    if key not in _remembered():
        _remembered()[key] = analysed(module, path, text)
    analysis = Analysis(*_remembered()[key])
    modules = [name for name in analysis.imports if root(name) == "fu"]
    for package in [name.removesuffix(".*") for name in modules if name.endswith(".*")]:
        modules += [f"{package}.{name}" for name in modules_in(package)]
    return Source(
        analysis,
        tuple(name for name in modules if name not in UNCOUNTED and module_file(name)),
        tuple(name for name in analysis.imports if name not in modules and name not in sys.stdlib_module_names),
    )


def closure(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return, sorted, every counted module of `fu` that importing `modules` can load."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(source(module).modules)
    return tuple(sorted(seen))


def _libraries(modules: tuple[str, ...]) -> dict[str, str]:
    """Return the libraries that `modules` import with their versions: pinned, else installed."""
    names = {name: module for module in modules for name in source(module).libraries}
    found = {}
    for name, module in names.items():
        library = _library(name)
        if library not in UNCOUNTED_LIBRARIES:
            found[library] = _pinned().get(library) or _installed(library) or _elsewhere(name, module)
            found |= {one: _pinned().get(one) or _installed(one) or "absent" for one in BEHIND.get(library, ())}
    return found


def _elsewhere(name: str, module: str) -> str:
    """Return the version of a library whose import name differs from its own, or "absent".

    Raises `UserError` for code outside any library: its edits would go unnoticed.
    """
    from importlib.metadata import packages_distributions

    if libraries := sorted(set(packages_distributions().get(name, ()))):
        return ", ".join(f"{library} {_installed(library)}" for library in libraries)
    if (spec := importlib.util.find_spec(name)) is None:
        return "absent"
    path, text = read(module)
    line = next(one.line for one in imports_of(parse(text, path), []) if root(one.name) == name)
    raise UserError(
        f"{path}: line {line}: imports {name!r} ({spec.origin or 'a folder'}), which is "
        "neither in fu nor in an installed library, so edits would go unnoticed; put it next to the plug-in "
        f"and import {module.rpartition('.')[0]}.{name}."
    )


@cache
def _check_shadows() -> None:
    """Raise `UserError` where a module beside the Snakefile takes the place of one of Python's or of a library."""
    for name in modules_in("") if ROOT == PACKAGES else ():  # else beside libraries
        if name != "fu" and (name in sys.stdlib_module_names or _installed(_library(name))):
            raise UserError(
                f"{module_file(name)}: this file hides {name!r}, a module of Python or of a library; rename it."
            )


@cache
def versions(modules: tuple[str, ...]) -> dict[str, str]:
    """Return, sorted, all that a digest covers: modules with the hashes of their code, libraries with versions.

    The files that a module declares are hashed, too: `fu.methods.mine:rate.txt`.
    """
    _check_shadows()
    covered = closure(modules)
    code = {module: source(module).about.code for module in covered}
    files = {f"{module}:{file}": _opened(module, file)[2] for module in covered for file in source(module).about.files}
    return dict(sorted({**code, **files, **_libraries(covered)}.items()))


@cache
def digest(*modules: str) -> str:
    """Return the code digest of `modules` with all they import: 16 hexadecimal digits."""
    lines = (f"{name} {version}\n" for name, version in versions(modules).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def parts(*modules: str) -> dict[str, str]:
    """Return, sorted, what a digest covers: modules with eight digits of their hashes, libraries with versions."""
    return {name: value[:8] if root(name) == "fu" else value for name, value in versions(modules).items()}


def modules_of(stage: str, spec: BaseModel) -> tuple[str, ...]:
    """Return the modules a stage starts from: itself and the plug-ins that its spec names."""
    from fu import plugins

    return (f"fu.pipeline.stages.{stage}", *plugins.named_by(spec))


# ---- what may have changed since -------------------------------------------------------------------------------------


def replaced(*modules: str) -> str:
    """Return a file or library that may have differed from what the digest of `modules` covers; "" if none did.

    Modules were compiled from the texts that were digested. That leaves a module that was imported from another
    file, and files that modules open and libraries that were replaced meanwhile, even if put back since.
    """
    covered = closure(modules)
    files = {name: str(module_file(name)) for name in covered}
    specs = [getattr(sys.modules.get(name), "__spec__", None) for name in (*files, "__main__")]
    loaded = [(str(spec.origin), files[spec.name]) for spec in specs if spec and spec.name in files]
    changed = [file for file, own in loaded if file != own and os.path.realpath(file) != os.path.realpath(own)]
    opened = [_opened(module, file) for module in covered for file in source(module).about.files]
    changed += [str(path) for path, when, _ in opened if _changed(path) != when]
    if moved := {_normal(file.split("/")[-2].partition("-")[0]) for file, *_ in metadata() ^ METADATA}:
        changed += [name for name in versions(modules) if name in moved]
    return next(iter(changed), "")


def look_up_versions() -> None:
    """Look up the versions of all pinned libraries, once for all jobs of a server."""
    for library in _pinned():
        _installed(library)
    forget()


def check_installed(*modules: str) -> None:
    """Raise `UserError` where the installed version of a library that `modules` import is not the pinned one."""
    for library in (name for name in versions(modules) if root(name) != "fu"):
        pinned, installed = _pinned().get(library), _installed(library)
        if pinned and pinned != installed:
            state = f"{library} {installed} is installed" if installed else f"{library} is not installed"
            raise UserError(
                f"{state}, but {LOCK} pins {pinned}; run `make` to reinstall, or pin the installed version there."
            )


def _changed(path: str | Path) -> tuple[str, ...]:
    """Return a file's path, inode and change time (which no program can set); an empty tuple if it is gone."""
    with contextlib.suppress(OSError):
        stat = os.stat(path)  # noqa: PTH116 (pathlib takes twice as long)
        return str(path), str(stat.st_ino), str(stat.st_ctime_ns)
    return ()


def metadata() -> set[tuple[str, ...]]:
    """Return the metadata file of every installed library, with inode and change time."""
    files: set[tuple[str, ...]] = set()
    for folder in sys.path:
        with contextlib.suppress(OSError):
            names = os.listdir(folder or ".")  # noqa: PTH208
            files |= {_changed(f"{folder}/{name}/METADATA") for name in names if name.endswith(".dist-info")}
    return files - {()}


def _library(name: str) -> str:
    """Return the library behind the name of an import."""
    return DISTRIBUTIONS.get(name, _normal(name))


def _normal(name: str) -> str:
    """Return a library's name as normalised by package indexes."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _installed(library: str) -> str | None:
    """Return the installed version of a library, without a local label such as +cpu."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library).partition("+")[0]
    except PackageNotFoundError:
        return None


def load_cache(path: Path) -> dict[str, Any]:
    """Return the content of a file in `results/.cache`; empty if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text())
        return content if isinstance(content, dict) else {}
    return {}


def save_cache(path: Path, content: dict[str, Any]) -> None:
    """Write a file in `results/.cache`; failing to do so only costs time."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(content))
        part.replace(path)
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)


@cache
def _remembered() -> dict[str, Any]:
    """Return the cached analyses of sources, by content."""
    return load_cache(CACHE)


def remember() -> None:
    """Cache the analyses for later jobs."""
    save_cache(CACHE, _remembered())


METADATA = metadata()  # before the libraries are imported, where this module is first
