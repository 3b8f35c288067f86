"""Declarations of plug-ins, read from their files without importing them."""

import ast
import contextlib
import importlib.util
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from fu import plugins
from fu.artefacts.entry import Input, Metric
from fu.errors import UserError, first_problem, nearest
from fu.evaluation.trace import COUNTS as COUNTS
from fu.pipeline.provenance import digest as digests
from fu.pipeline.provenance.digest import PACKAGES, ROOT, digest, folders, module_file
from fu.pipeline.provenance.syntax import assigned, parse, root

# What a plug-in of each kind must define; the first name tells plug-ins from the other files in the folder.
NEEDED = {
    "methods": ("step", "start", "needs", "Params"),
    "training": ("step", "start", "Params"),
    "models": ("build", "Params"),
    "datasets": ("ABOUT",),
    "partitions": ("deal", "check", "Params"),
    "attacks": ("mark", "draw", "check", "Params"),
    "histories": ("record",),
    "projections": ("project", "Params"),
    "evaluation": ("METRICS", "evaluate"),
    "artefacts": ("INPUTS", "make"),
    "audits": ("METRICS", "SCORE", "LEAST", "LABEL", "CAVEAT", "audit"),
    "claims": ("statistics", "region", "operands", "Params"),
}
KINDS = tuple(NEEDED)
BESIDE = ("papers", "published", "presets")  # what else a user's own folder may hold


class Declared(Metric):
    """A metric in `METRICS`. `tells`: which models it tells from the retrained one, by a lower or a higher number."""

    tells: dict[Literal["original", "broken"], Literal["lower", "higher"]] = Field(default_factory=dict)


class Fidelity(BaseModel, extra="forbid"):
    """What a method was implemented from, and what of its source could not be read."""

    source: Literal["paper and code", "paper", "code", "second-hand", "ours"]
    citation: str
    not_read: str = ""


# The types of the constants that the plan reads without importing the file.
CONSTANTS: dict[str, dict[str, Any]] = {
    "methods": {
        "needs": set[str],
        "ESTIMATE": dict[Literal["forgotten", "retained", "mean"], Annotated[float, Field(ge=0, le=1000)]],
        "FIDELITY": Fidelity,
        "CONTROL": bool | Literal["hides"],
        "TESTS": tuple[str, str],
        **dict.fromkeys(("CONTINUES", "LEFT"), str),
        **dict.fromkeys(("RETRAINS", "FROM_SCRATCH", "SAMPLES", "REQUESTS", "IMAGES", "STATISTICS"), bool),
        **dict.fromkeys(("MOMENTUM", "OWN_OPTIMISER"), bool),
    },
    "training": {
        "ESTIMATE": dict[Literal["share", "mean"], Annotated[float, Field(ge=0, le=1)] | str],
        "NEEDS": tuple[str, ...],
        **dict.fromkeys(("KEEPS", "FILE"), str),
        **dict.fromkeys(("SERVER", "STATISTICS", "RECORDS"), bool),
    },
    "models": {
        "ESTIMATE": dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]],
        **dict.fromkeys(("LABEL", "PRETRAINED"), str),
        **dict.fromkeys(("TEXT", "STATISTICS"), bool),
    },
    "datasets": {"LABEL": str},
    "histories": {"ATTACK": bool, "TRAINS": bool},
    "partitions": {"NATURAL": bool, "FILE": str},
    "evaluation": {
        "METRICS": dict[str, dict[str, Any]],
        "TRACE": tuple[str, ...],
        **dict.fromkeys(("SHADOWS", "IMAGES"), bool),
    },
    "artefacts": {
        "INPUTS": tuple[Input, ...],
        **dict.fromkeys(("MARKS", "PUBLISHED"), dict[str, tuple[str, ...]]),
        "REPEATS": int,
        **dict.fromkeys(("ALSO", "TRACED", "SUMMED", "NEEDS", "BY_SEED"), tuple[str, ...]),
        **dict.fromkeys(("TABLE", "OPTIMA", "POINTS", "REQUESTS", "RETRAINS", "CLIENTS"), bool),
        **dict.fromkeys(("FIRSTS", "SCORES", "DIFFERENCES", "FIDELITY"), bool),
    },
    "audits": {
        "METRICS": dict[str, dict[str, Any]],
        "SEES": tuple[str, ...],
        "LEAST": int,
        **dict.fromkeys(("SCORE", "LABEL", "CAVEAT", "P"), str),
    },
    "claims": dict.fromkeys(("EXACT", "INTERVAL", "TIES"), bool),
}


def add_folder(folder: Path) -> None:
    """Also look for plug-ins in a user's own folder; `UserError` where it holds anything else or cannot be read."""
    try:
        _check_folder(folder)
    except OSError as error:
        raise UserError(f"{error.filename}: the folder cannot be read: {error.strerror}.") from None
    plugins.add_folder(folder)
    forget()


def _check_folder(folder: Path) -> None:
    """Raise `UserError` where a user's own folder holds anything else than plug-ins."""
    if not folder.is_dir():
        raise UserError(f"config: plugins: there is no folder {str(folder)!r}.")
    places = (PACKAGES / "fu", ROOT / ".snakemake", Path("results"))
    ours = any(folder.is_relative_to(place.resolve()) for place in places)
    wrong = (
        f"config: plugins: {str(folder)!r} is not a plug-in folder; use your own folder with one or more of "
        f"these subfolders: {', '.join((*KINDS, *BESIDE))}."
    )
    if ours:
        raise UserError(wrong)
    for below in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        written = {name: path for path in sorted(below.iterdir()) if (name := _module_of(path))}
        if not written:
            continue
        if below.name not in KINDS:
            raise UserError(f"{below}: there is no kind of plug-in {below.name!r}{nearest(below.name, KINDS)}.")
        taken = written.keys() & {_module_of(path) for path in (PACKAGES / "fu" / below.name).iterdir()}
        if taken:
            path = written[min(taken)]
            raise UserError(f"{path}: fu/{below.name} already has a plug-in with this name; rename the file.")
    inside = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    if inside and inside.isdisjoint((*KINDS, *BESIDE)):
        raise UserError(wrong)


def forget() -> None:
    """Forget all plug-ins, so that they are read again."""
    digests.forget()
    for known in (_outline, available, declared, metrics, metrics_of):
        known.cache_clear()


def _module_of(path: Path) -> str | None:
    """Return the module name of a file or a folder, or None if Python cannot import it."""
    package = (path / "__init__.py").is_file()
    name = path.name if package else path.stem if path.suffix == ".py" and path.is_file() else "__init__"
    return None if name == "__init__" else name


@cache
def available(kind: str) -> list[str]:
    """Return the names of a kind's plug-ins: the files that define the first name in `NEEDED`."""
    names = []
    for name in digests.modules_in(f"fu.{kind}"):
        with contextlib.suppress(UserError):  # reported where it is used
            if defines(kind, name, NEEDED[kind][0]):
                names.append(name)
    return names


def check(kind: str, name: str, where: str) -> None:
    """Raise `UserError` where a kind has no plug-in of that name, or the plug-in is incomplete."""
    if name not in available(kind) and not begun(kind, name):
        raise UserError(f"{where}: there is no {kind} plug-in {name!r}{nearest(name, available(kind))}.")
    declared(kind, name)
    if kind == "evaluation":
        metrics_of(name)


def begun(kind: str, name: str) -> bool:
    """Return whether a file defines some of the names in `NEEDED`: an unfinished plug-in."""
    if name.isidentifier():
        module = f"fu.{kind}.{name}"
        return module_file(module) is not None and bool(_outline(module).defined & {*NEEDED[kind], "*"})
    for folder in folders(f"fu.{kind}"):
        if (path := Path(folder, f"{name}.py")).is_file():
            raise UserError(
                f"{path}: a plug-in's name must be letters, digits and '_', not starting with a digit; rename the file."
            )
    return False


@cache
def declared(kind: str, name: str) -> dict[str, Any]:
    """Return the module-level constants of a plug-in that are plain literals, without importing it.

    Raises `UserError` where the plug-in is incomplete or imports a missing module.
    """
    path, defined, constants, imports = _outline(f"fu.{kind}.{name}")
    lacking = [item for item in NEEDED[kind] if item not in defined]
    if lacking and "*" not in defined:
        raise UserError(f"{path}: lacks {', '.join(lacking)}; a plug-in of {kind} defines {', '.join(NEEDED[kind])}.")
    for constant, of_type in CONSTANTS.get(kind, {}).items():
        if constant in {*defined, *lacking} and constant not in constants:
            raise UserError(f"{path}: {constant} must be a literal: the plan reads it without importing the file.")
        if constant in defined:
            try:
                TypeAdapter(of_type).validate_python(constants[constant], strict=True)
            except ValidationError as error:
                raise UserError(first_problem(error, BaseModel, f"{path}: {constant}")) from None
    for line, module in imports:
        if not _importable(module):
            raise UserError(f"{path}: line {line}: there is no module {module!r}.")
    digest(f"fu.{kind}.{name}")  # refuses code that no digest covers, before any job runs
    return constants


class Outline(NamedTuple):
    """The file of a module, the names that it binds ("*" if unknown), their literals, and its top-level imports."""

    path: Path
    defined: set[str]
    literals: dict[str, Any]
    imports: list[tuple[int, str]]


@cache
def _outline(module: str) -> Outline:
    path, text = digests.read(module)
    tree, outline = parse(text, path), Outline(path, set(), {}, [])
    for node in tree.body:
        name, value = assigned(node)
        if value:
            empty_set = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "set" and not value.args
            with contextlib.suppress(ValueError, TypeError, RecursionError, MemoryError):
                outline.literals[name] = set() if empty_set else ast.literal_eval(value)
        elif isinstance(node, ast.Import):
            outline.imports.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            outline.imports.append((node.lineno, node.module))
    waiting: list[ast.AST] = list(tree.body)
    for part in waiting:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            outline.defined.add(part.name)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            outline.defined.update(alias.asname or alias.name for alias in part.names)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            outline.defined.add(part.id)
        elif not isinstance(part, ast.expr) or isinstance(part, ast.Tuple | ast.List | ast.Starred):
            waiting += ast.iter_child_nodes(part)
    return outline


def _importable(module: str) -> bool:
    if root(module) == "fu":
        return bool(module_file(module) or folders(module))
    return _is_library(root(module))


@cache
def _is_library(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def needs(method: str) -> set[str]:
    """Return the kinds of history that a method needs."""
    found: set[str] = declared("methods", method)["needs"]
    return found


@cache
def metrics() -> dict[str, Metric]:
    """Return all metrics by name, as evaluators and audits declare them; `UserError` where two declare the same."""
    several: list[tuple[str, str, Metric]] = []
    for kind in ("evaluation", "audits"):
        for name in available(kind):
            with contextlib.suppress(UserError):  # reported where it is used
                several += [(kind, name, metric) for metric in metrics_of(name, kind)]
    by_name: dict[str, Metric] = {}
    for kind, name, metric in several:
        if metric.name in by_name:
            raise UserError(f"{name}.py ({kind}): METRICS: another plug-in already defines {metric.name!r}; rename it.")
        by_name[metric.name] = metric
    return by_name


@cache
def metrics_of(plugin: str, kind: str = "evaluation") -> list[Metric]:
    """Return the metrics that an evaluator or an audit declares.

    Which models an evaluator's tell apart is for the contract alone.
    """
    try:
        written = declared(kind, plugin)["METRICS"]
        metrics = [Declared(**{**fields, "name": name}) for name, fields in written.items()]
    except ValidationError as error:
        raise UserError(first_problem(error, Declared, f"{plugin}.py ({kind}): METRICS")) from None
    return [Metric(**metric.model_dump(exclude={"tells"})) for metric in metrics]


def audits_with(metrics: Iterable[str]) -> list[str]:
    """Return the audits that have the metrics, in their order."""
    home = {metric.name: audit for audit in available("audits") for metric in metrics_of(audit, "audits")}
    return [*dict.fromkeys(home[name] for name in metrics if name in home)]


def traces(evaluator: str) -> bool:
    """Return whether an evaluator can be traced: it declares the columns, `TRACE`."""
    return "TRACE" in declared("evaluation", evaluator)


def defines(kind: str, name: str, what: str) -> bool:
    """Return whether a plug-in defines a function."""
    return what in _outline(f"fu.{kind}.{name}").defined


def traced(evaluators: Sequence[str] | None = None) -> list[str]:
    """Return the metrics that these evaluators (None: all) measure per round."""
    several = [name for name in available("evaluation") if traces(name)] if evaluators is None else evaluators
    return [column for name in several for column in declared("evaluation", name)["TRACE"] if column in metrics()]


def reads(kind: str) -> tuple[str, ...]:
    """Return the kinds of rows that an artefact kind is made from; none for formulas."""
    return tuple(declared("artefacts", kind)["INPUTS"])


def measured(kind: str) -> bool:
    """Return whether an artefact kind shows measurements of trained models."""
    return bool({"evaluations", "traces", "audits", "exposed", "relearning"}.intersection(reads(kind)))


def audited(kind: str) -> bool:
    """Return whether an artefact kind shows audits, or samples that an audit ranks."""
    return bool({"audits", "exposed"}.intersection(reads(kind)))


def drawn(kind: str, marks: str | None = None) -> bool:
    """Return whether an artefact kind draws a figure, as its `marks` say, rather than a table alone."""
    return bool(marks) or not declared("artefacts", kind).get("TABLE", False)


def also(kind: str) -> tuple[str, ...]:
    """Return the metrics that an artefact kind reads in addition to those that it shows."""
    return tuple(declared("artefacts", kind).get("ALSO", ()))


def chooses(kind: str, points: str = "chosen") -> bool:
    """Return whether an artefact shows the chosen trial of each method, as its `points` say."""
    return measured(kind) and points == "chosen"
