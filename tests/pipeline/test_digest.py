"""A digest counts whatever can change a result, and nothing else; a closure holds all that an import can load."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from importlib.metadata import version
from pathlib import Path

import pytest

from fu import plugins
from fu.pipeline.provenance import digest as digests
from fu.pipeline.provenance.catalogue import KINDS, available
from fu.pipeline.provenance.digest import UNCOUNTED, closure, digest, modules_of
from fu.pipeline.provenance.paths import OUTPUTS
from fu.pipeline.provenance.syntax import DECLARED, HIDES, Analysis, analysed
from fu.pipeline.provenance.syntax import UNCOUNTED as UNREAD
from tests.mistakes import sentence
from tests.pipeline.plans import PAPERS, forget_what_was_read, made

ROOT = digests.ROOT


@contextmanager
def looked_at(root: Path, left_out: Callable[[str, list[str]], set[str]]) -> Iterator[Path]:
    """Have the digests look at a copy of the package."""
    shutil.copytree(ROOT / "fu", root / "fu", ignore=left_out)
    shutil.copytree(ROOT / "envs", root / "envs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "ROOT", root)
        patch.setattr(digests, "PACKAGES", root)
        forget_what_was_read()
        yield root / "fu"
    forget_what_was_read()


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package without most of its modules."""
    kept = {ROOT / f"{module.replace('.', '/')}.py" for module in UNCOUNTED}

    def left_out(folder: str, names: list[str]) -> set[str]:
        files = {name for name in names if name.endswith(".py") and name != "__init__.py"}
        files = set() if Path(folder) == ROOT / "fu" else files
        return {"__pycache__", *(name for name in files if Path(folder, name) not in kept)}

    with looked_at(tmp_path, left_out) as folder:
        yield folder


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Path]:
    """A copy of the whole package."""
    unedited()
    with looked_at(tmp_path, shutil.ignore_patterns("__pycache__")) as folder:
        yield folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    forget_what_was_read()


def analysis(text: str | bytes) -> Analysis:
    """Return the counted source of a module."""
    return analysed("fu.methods.new", Path("new.py"), text.encode() if isinstance(text, str) else text)


def counts(text: str, old: str, new: str) -> bool:
    """Whether an edit of a module counts."""
    assert text.count(old) == 1
    return analysis(text).code != analysis(text.replace(old, new)).code


# ---- what counts ---------------------------------------------------------------------------------------------------

SOURCE = '''"""About."""

from pydantic import Field
from fu.errors import UserError, nearest

LIMIT = 3  # why
METRICS = {"asr": {"label": "ASR"}}
ESTIMATE: dict[str, float] = {"step_ms": 14.0}
OTHER = {"r_acc": {"label": "R-Acc"}}


class Params:
    """A thing."""

    METRICS = "of a class"
    share: float = Field(0.5, gt=0, description="a share", examples=[0.25])

    def check(self, x: int) -> int:
        """How large."""
        if x > 3:
            raise UserError(f"{x} is more than {limit}" + nearest("a", ["b"])) from None
        raise Diverged(x, 5)


async def wait() -> None:
    """Nothing."""
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [  # comments, docstrings and layout, and what only people and the plan read
        ("  # why", "  # another reason"),
        ('"""About."""\n', ""),
        ('"""A thing."""', "'''Another text.'''"),
        ('    """Nothing."""', "    pass"),
        ("LIMIT = 3", "LIMIT = (\n    0x3\n)"),
        ('is more than {limit}" + nearest("a", ["b"])', 'exceeds {limit}"'),
        ('description="a share", examples=[0.25]', 'description="another text"'),
        ('"label": "ASR"', '"label": "attack success"'),
        ('METRICS = {"asr": {"label": "ASR"}}\n', ""),
        ("14.0", "15.0"),
    ],
)
def test_what_no_result_depends_on_does_not_count(old: str, new: str) -> None:
    assert not counts(SOURCE, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ('"""How large."""', '_ = """How large."""'),
        ('"""About."""\n', '"""About."""\n"""no docstring"""\n'),
        ("-> int", "-> float"),
        ("x > 3", "x > 4"),
        ("raise UserError(", "raise ValueError("),
        ("x, 5", "x, 6"),
        ("Field(0.5", "Field(0.25"),
        ("gt=0", "ge=0"),
        ("from pydantic import Field\n", "from fu.types import Field\n"),
        ("share: float = Field(0.5, gt=0, ", "share: float = Other(0.5, gt=0, "),
        ('"label": "R-Acc"', '"label": "accuracy"'),
        ('METRICS = "of a class"', 'METRICS = "of another class"'),
        ('METRICS = {"asr"', 'METRICS = OTHER = {"asr"'),
    ],
)
def test_whatever_can_change_a_result_counts(old: str, new: str) -> None:
    assert counts(SOURCE, old, new)


def test_what_the_plan_says_of_an_audit_counts_for_no_job_but_where_its_module_reads_it() -> None:
    text = "SCORE = 'share'\nSEES = ('untouched',)\nCAVEAT = 'It is an attack.'\nLEAST = 8\n"
    for old in ("'share'", "'untouched'", "'It is an attack.'"):
        assert not counts(text, old, "'other'")
        name = next(line for line in text.splitlines() if old in line).partition(" ")[0]
        assert counts(f"{text}\n\ndef audit(models):\n    return {name}\n", old, "'other'")


def test_no_stage_reads_constants_that_are_left_out() -> None:
    found = {module for modules in planned().values() for module in closure(modules)}
    found |= set(closure(tuple(f"fu.{kind}.{name}" for kind in KINDS for name in available(kind))))
    for module in found:
        nodes = ast.walk(ast.parse(digests.read(module)[1]))
        assert [node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in DECLARED] == []


def test_a_module_that_only_speaks_to_people_does_not_count(copy: Path) -> None:
    modules = sorted(UNCOUNTED)
    write(copy / "errors.py", "import fu.types\n")
    write(copy / "methods/new.py", "".join(f"import {module}\n" for module in (*modules, "fu.seeds")))
    before = digest("fu.methods.new")
    assert closure(("fu.methods.new",)) == ("fu", "fu.methods", "fu.methods.new", "fu.seeds")
    for module in modules:
        edit(copy.joinpath(*module.split(".")[1:]).with_suffix(".py"))
    assert digest("fu.methods.new") == before
    edit(copy / "seeds.py")
    assert digest("fu.methods.new") != before


def test_what_was_read_before_is_read_again_when_a_file_or_the_rules_change(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache/digests.json"
    monkeypatch.setattr(digests, "CACHE", cache)

    def read_anew() -> str:
        digests._remembered.cache_clear()
        forget_what_was_read()
        return digest("fu.methods.fedosd")

    fresh = read_anew()
    digests.remember()
    entries = json.loads(cache.read_text())
    assert len(entries) == len(closure(("fu.methods.fedosd",)))
    assert read_anew() == fresh
    cache.write_text(json.dumps({key: ["0" * 64, [], []] for key in entries}))
    assert read_anew() != fresh  # what was read before is believed
    monkeypatch.setattr(digests, "OWN", b"other rules")
    assert read_anew() == fresh  # but not what other rules made of it
    digests._remembered.cache_clear()


@pytest.mark.parametrize("content", [b"", b'{"a": ["0', b"[]", b"\xff\xfe\x00", None])
def test_a_damaged_cache_is_empty_and_made_again(tmp_path: Path, content: bytes | None) -> None:
    cache = tmp_path / "digests.json"
    cache.mkdir() if content is None else cache.write_bytes(content)
    assert digests.load_cache(cache) == {}
    digests.save_cache(cache, {"a": 1})
    assert cache.is_dir() or digests.load_cache(cache) == {"a": 1}
    assert [*tmp_path.iterdir()] == [cache]


# ---- files that a plug-in opens ----------------------------------------------------------------------------------


def test_a_file_counts_where_the_module_that_opens_it_declares_it(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "mine/methods"  # a user's own, beside the copy of the package
    monkeypatch.setattr(plugins, "FOLDERS", [outside.parent])
    write(outside / "mine.py", "from fu.methods import helper\n")
    write(outside / "helper.py", 'READS = ["rate.txt", "more/rates.txt"]\n')
    write(outside / "rate.txt", "0.1")
    write(outside / "more/rates.txt", "0.1")
    write(outside / "other.txt", "0.1")
    planned, before = digest("fu.methods.mine"), digests.parts("fu.methods.mine")
    write(outside / "other.txt", "0.2")
    assert digest("fu.methods.mine") == planned
    write(outside / "more/rates.txt", "0.2")
    after = digests.parts("fu.methods.mine")
    assert {name for name in before if before[name] != after[name]} == {"fu.methods.helper:more/rates.txt"}
    assert list(before) == sorted(before)
    assert all(len(value) == 8 for value in before.values())
    (outside / "rate.txt").unlink()
    forget_what_was_read()
    told = f"{outside}/helper.py: READS: the file {outside}/rate.txt cannot be read."
    assert sentence(lambda: digest("fu.methods.mine")) == told


@pytest.mark.parametrize(
    "text",
    [
        "READS = ['../rate.txt']",
        "READS = ['/rate.txt']",
        "READS = list('a')",
        "READS = []\nREADS += ['rate.txt']",
        "if True:\n    READS = ['rate.txt']",
    ],
)
def test_a_declaration_that_cannot_be_read_off_the_file_is_refused(text: str) -> None:
    line = 2 if text.startswith("READS = []") else 1
    told = 'READS must list files in this folder or below, as in READS = ["rate.txt"].'
    assert sentence(lambda: analysis(text)) == f"new.py: line {line}: {told}"


# ---- which stages an edit touches ----------------------------------------------------------------------------------


@cache
def planned() -> dict[str, tuple[str, ...]]:
    """Return the modules that a job of each stage starts from: the first in all papers."""
    plan = made("smoke", *PAPERS)
    jobs = {
        job.stage: job for job in reversed([*plan.jobs(), plan.job("oracles", {"scenario": "audit/mnist-backdoor"})])
    }
    return {stage: modules_of(stage, job.spec) for stage, job in jobs.items()}


@cache
def unedited() -> dict[str, str]:
    """Return the digest of each stage as the package is; a copy of it has the same."""
    return {stage: digest(*modules) for stage, modules in planned().items()}


def changed_stages() -> set[str]:
    """Return the stages whose digests are others in a copy."""
    return {stage for stage, modules in planned().items() if digest(*modules) != unedited()[stage]}


def edit(path: Path) -> None:
    """Add a constant to a file."""
    write(path, f"{path.read_text()}\nADDED = 1\n")


COMPUTING = {"train", "unlearn", "recover", "evaluate", "shadow", "predict", "relearn"}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("data/request.py", {"request", *COMPUTING, "agree", "assess", "examples", "expose", "oracles"}),
        ("data/sources.py", {"data"}),
        ("data/membership.py", {*COMPUTING} - {"predict"}),
        ("federation/driver.py", COMPUTING),
        ("federation/recovery.py", {"recover"}),
        ("federation/unlearning.py", {"unlearn"}),
        ("federation/plugged.py", {"train", "unlearn", "shadow"}),
        ("evaluation/values.py", {"train", "unlearn", "recover", "relearn", "evaluate"}),
        ("federation/relearning.py", {"relearn"}),
        ("evaluation/selection.py", {"select"}),
        ("pipeline/stages/shadow.py", {"shadow"}),
        ("plugins.py", {*OUTPUTS}),
        *(
            (f"pipeline/{module}.py", set())
            for module in ("provenance/digest", "provenance/catalogue", "plan/grid", "settings/records")
        ),
        *((f"{plugin}.py", set()) for plugin in ("datasets/mnist", "methods/mode")),
    ],
)
def test_a_changed_constant_touches_exactly_the_stages_that_can_read_it(
    whole: Path, file: str, changed: set[str]
) -> None:
    edit(whole / file)
    assert changed_stages() == changed


# ---- closures ------------------------------------------------------------------------------------------------------


def test_a_closure_follows_every_way_to_import(copy: Path) -> None:
    write(
        copy / "methods/new.py",
        "import fu.new.plain\n"
        "import fu.new.renamed as other, json\n"
        "from fu.new import named, CONSTANT\n"
        "from fu.new.within import function\n"
        "from . import beside\n"
        "from .beside_too import function\n"
        "from ..new import above\n"
        "from fu.new.starred import *\n"
        "from fu.stars import *\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from fu.new import typed\n"
        "def late():\n    from fu.new.inside import function\n    import fu.new.deep.er\n"
        "class C:\n    def f(self):\n        import fu.new.method\n",
    )
    names = ["plain", "renamed", "named", "within", "above", "starred", "typed", "inside", "method", "deep.in_package"]
    found = [*(f"new.{name}" for name in (*names, "deep.er", "initial")), "methods.beside", "methods.beside_too"]
    found.append("stars.inner")  # a star counts all modules of a package
    for name in (*found, "new.unused"):
        write(copy / f"{name.replace('.', '/')}.py", "")
    write(copy / "new/__init__.py", "from fu.new.initial import x\n")
    write(copy / "new/deep/__init__.py", "from . import in_package\nimport fu.methods.new\n")
    write(copy / "stars/__init__.py", "__all__ = ['inner']\n")
    write(copy / "__init__.py", "")
    packages = ["fu", "fu.methods", "fu.methods.new", "fu.new", "fu.new.deep", "fu.stars"]
    assert closure(("fu.methods.new",)) == tuple(sorted([*packages, *(f"fu.{name}" for name in found)]))


# ---- libraries -----------------------------------------------------------------------------------------------------


def libraries(*modules: str) -> dict[str, str]:
    return {name: version for name, version in digests.parts(*modules).items() if name.split(".")[0] != "fu"}


@pytest.mark.parametrize(
    ("statement", "library", "found"),
    [
        ("import numpy.linalg as la", "numpy", "1.2.3"),
        ("def late():\n    from sklearn.datasets import load_digits", "scikit-learn", "4.5"),
        ("import Zope_Event.x", "zope-event", "7"),
        ("import torch", "torch", "8.0"),
        ("import pytest", "pytest", version("pytest")),  # not pinned, installed
        ("import _pytest", "-pytest", f"pytest {version('pytest')}"),  # of a library of another name
        ("import tensorflwo", "tensorflwo", "absent"),
        ("import pandas", "tabulate", version("tabulate")),
    ],
)
def test_a_library_counts_with_its_pinned_version_else_the_installed(
    copy: Path, statement: str, library: str, found: str
) -> None:
    write(copy.parent / "envs/lock.txt", "# pins\nnumpy==1.2.3\nscikit_learn==4.5 ; x\nZope.Event==7\ntorch==8.0+cpu\n")
    write(copy / "methods/new.py", f"import json, pydantic, tqdm\n{statement}\n")
    assert libraries("fu.methods.new")[library] == found
    assert not {"json", "pydantic", "tqdm"} & {*libraries("fu.methods.new")}


def test_another_installed_version_than_the_pinned_one_is_told(copy: Path) -> None:
    write(copy / "methods/new.py", "import pytest, torch, tensorflwo\n")
    lock = copy.parent / "envs/lock.txt"
    pytest_, torch = version("pytest"), version("torch").partition("+")[0]
    for right in (f"pytest=={pytest_}\ntorch=={torch}\n", f"torch=={torch}+cu999\n", ""):
        write(lock, right)
        digests.check_installed("fu.methods.new")
    write(lock, f"pytest=={pytest_}\ntorch==99.0\n")
    assert sentence(lambda: digests.check_installed("fu.methods.new")) == (
        f"torch {torch} is installed, but envs/lock.txt pins 99.0; run `make` to reinstall, or pin the installed "
        "version there."
    )
    write(lock, "tensorflwo==1.0\n")
    told = sentence(lambda: digests.check_installed("fu.methods.new"))
    assert told.startswith("tensorflwo is not installed, but envs/lock.txt pins 1.0; run `make`")


# ---- what runs is what was read ------------------------------------------------------------------------------------

RUNNING = """
import os, sys
from pathlib import Path
from fu import sources
from fu.pipeline.provenance import digest

def again(path):
    text = Path(path).read_text()
    Path(path).write_text("X = 2")
    Path(path).write_text(text)

before = digest.digest("fu.methods.mine")
{while_it_runs}
print(digest.replaced("fu.methods.mine"))
digest.forget()
print(digest.digest("fu.methods.mine") == before)
"""


@pytest.mark.parametrize(
    ("while_it_runs", "stray"),
    [
        ("again('fu/methods/mine.py'); import fu.methods.mine; assert fu.methods.mine.X == 1", ""),
        ("import fu.methods.mine; again('fu/methods/mine.py')", ""),
        ("Path('fu/methods/mine.py').write_text('X = 2'); import fu.methods.mine; assert fu.methods.mine.X == 1", ""),
        ("again('fu/methods/rate.txt')", "fu/methods/rate.txt"),
        ("again('fu/methods/other.txt')", ""),
        ("again('libraries/unused-1.0.dist-info/METADATA')", ""),
        ("os.rename('libraries/used-1.0.dist-info', 'libraries/used-2.0.dist-info')", "used"),
        (
            "Path('fu/methods/mine').mkdir(); Path('fu/methods/mine/__init__.py').write_text('X = 2');"
            "import fu.methods.mine; os.rename('fu/methods/mine', 'fu/methods/gone')",
            "fu/methods/mine/__init__.py",
        ),
    ],
)
def test_what_ran_is_what_the_digest_covers_or_is_named(tmp_path: Path, while_it_runs: str, stray: str) -> None:
    shutil.copytree(ROOT / "fu", tmp_path / "fu", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    (tmp_path / "fu/methods/mine.py").write_text('READS = ["rate.txt"]\nX = 1\nif not X:\n    import used\n')
    for name in ("rate", "other"):
        (tmp_path / f"fu/methods/{name}.txt").write_text("1")
    for name in ("used", "unused"):
        (tmp_path / f"libraries/{name}-1.0.dist-info").mkdir(parents=True)
        (tmp_path / f"libraries/{name}-1.0.dist-info/METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    program = RUNNING.format(while_it_runs=while_it_runs)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path}/libraries"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    found, same = done.stdout.split("\n")[:2]
    assert found.removeprefix(f"{tmp_path}/") == stray
    assert (same == "True") == (not stray or "again" in while_it_runs or "rename" in while_it_runs)


# ---- what Python imports is what is read ---------------------------------------------------------------------------

SO = EXTENSION_SUFFIXES[0]
LAYOUTS = [
    ["new.py", "new/__init__.py"],
    ["new.py", "new/inner.py"],  # a folder alone comes last
    ["new/__init__.py", "new/inner.py"],
    ["new/inner.py"],
    ["new.pyc"],
    ["new.py", f"new{SO}"],
    ["new/__init__.py", f"new/__init__{SO}"],
    ["new.py~", ".new.py", "new.txt"],
]


@pytest.mark.parametrize("files", LAYOUTS, ids=" ".join)
def test_the_file_that_is_read_is_the_one_that_python_would_import(copy: Path, files: list[str]) -> None:
    package, folder = "fu.methods", copy / "methods"
    import_module(package)  # which `PathFinder` expects of a parent
    for file in files:
        write(folder / file, "")
    spec = PathFinder.find_spec(f"{package}.new", [str(folder)])
    expected = Path(spec.origin) if spec and spec.origin else None
    assert digests.module_file(f"{package}.new") == expected
    assert ("new" in digests.modules_in(package)) == (expected is not None)
    inside = (spec and spec.submodule_search_locations) or []
    inner = PathFinder.find_spec(f"{package}.new.inner", inside) if inside else None
    assert digests.module_file(f"{package}.new.inner") == (inner and Path(str(inner.origin)))
    if expected and expected.suffix != ".py":
        told = f"{expected}: Python would import this compiled file, whose code cannot be digested; remove it."
        assert sentence(lambda: digest(f"{package}.new")) == told


# ---- what a syntax tree does not show ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "named", "why"),
    [
        ("import importlib.util as u", 1, "importlib.util", HIDES),
        ("def f():\n    import runpy", 2, "runpy", HIDES),
        ("from pkgutil import iter_modules", 1, "pkgutil", HIDES),
        ("x = __import__('os')", 1, "__import__", HIDES),
        ("def f(text):\n    return eval(text)", 2, "eval", HIDES),
        ("import sys as s\ns.path += ['x']", 2, "sys.path", HIDES),
        ("from sys import path", 1, "sys.path", HIDES),
        ("import importlib.metadata\nimportlib.import_module('os')", 2, "importlib.import_module", HIDES),
        ("from fu import plugins\nplugins.load('models', 'mlp')", 2, "fu.plugins.load", HIDES),
        ("from fu.plugins import *", 1, "fu.plugins.*", HIDES),
        ("from ..plugins import params", 1, "fu.plugins.params", HIDES),
        ("from fu.federation import plugged\nplugged.training_of(x)", 2, "fu.federation.plugged.training_of", HIDES),
        ("from fu.evaluation.values import measured", 1, "fu.evaluation.values.measured", HIDES),
        ("from fu.data.dataset import about", 1, "fu.data.dataset.about", HIDES),
        ("from fu.methods import a\nRATE = a.METRICS['rate']", 2, "fu.methods.a.METRICS", UNREAD),
        ("from fu.methods.a import LABEL as m", 1, "fu.methods.a.LABEL", UNREAD),
        ("from fu.methods.a import *\nRATE = METRICS['rate']", 2, "METRICS", UNREAD),
        ("from fu.methods import a\nRATE = float(a.f.__doc__)", 2, "fu.methods.a.f.__doc__", UNREAD),
        ("RATE = float(__doc__)", 1, "__doc__", UNREAD),
        ("import inspect\nRATE = float(inspect.getdoc(f))", 2, "inspect.getdoc", UNREAD),
    ],
)
def test_what_hides_an_import_or_reads_what_does_not_count_is_refused(
    text: str, line: int, named: str, why: str
) -> None:
    assert sentence(lambda: analysis(text)) == f"new.py: line {line}: {named} {why}."


@pytest.mark.parametrize(
    "statement",
    [
        "model.eval()",
        "from fu.evaluation import eval\neval(1)",
        "def eval(model):\n    return 1\n\n\neval(2)",
        "import importlib.metadata\nimportlib.metadata.version('numpy')",
        "from fu.plugins import Kind",
        "from fu.data.dataset import Dataset",
        "site = 1\nprint(site)",
        "METRICS = {}\nself.METRICS",
    ],
)
def test_what_only_looks_like_it_is_not(statement: str) -> None:
    assert analysis(statement)


def test_code_that_belongs_to_no_library_is_refused_with_file_and_line(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    path = copy / "methods/new.py"
    write(tmp_path / "elsewhere/my_helper_of_tests.py", "X = 1\n")
    write(path, '"""New."""\n\n\ndef step():\n    from my_helper_of_tests import X\n')
    assert sentence(lambda: digest("fu.methods.new")) == (
        f"{path}: line 5: imports 'my_helper_of_tests' ({tmp_path}/elsewhere/my_helper_of_tests.py), which is neither "
        "in fu nor in an installed library, so edits would go unnoticed; put it next to the plug-in and import "
        "fu.methods.my_helper_of_tests."
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (b"x = 1\ndef f(:\n", "line 2: invalid syntax."),
        (b"# coding: nothing\n", "unknown encoding: nothing."),
        (b"x = 1\ny = '\0'\n", "source code string cannot contain null bytes."),
    ],
)
def test_a_source_that_cannot_be_read_is_told_in_one_sentence(source: bytes, text: str) -> None:
    assert sentence(lambda: analysis(source)) == f"new.py: {text}"


@pytest.mark.parametrize("file", ["colorsys.py", "yaml/__init__.py", f"sklearn{SO}"])
def test_a_module_beside_the_snakefile_that_python_would_import_in_place_of_another_is_refused(
    copy: Path, file: str
) -> None:
    write(copy / "methods/new.py", "X = 1\n")
    write(copy.parent / file, "")
    name = file.partition(".")[0].partition("/")[0]
    assert sentence(lambda: digest("fu.methods.new")) == (
        f"{copy.parent}/{file}: this file hides {name!r}, a module of Python or of a library; rename it."
    )
