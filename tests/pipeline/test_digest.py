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
from fu.pipeline.provenance.syntax import DECLARED
from tests.mistakes import sentence
from tests.pipeline.damages import DAMAGES, damage
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
def outside(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a user's own methods, beside the copy of the package."""
    monkeypatch.setattr(plugins, "FOLDERS", [copy.parent / "mine"])
    return copy.parent / "mine/methods"


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


def counts(folder: Path, text: str, old: str, new: str) -> bool:
    """Whether the digest of a new module counts an edit."""
    assert text.count(old) == 1
    write(folder / "new.py", text)
    before = digest("fu.methods.new")
    write(folder / "new.py", text.replace(old, new))
    return digest("fu.methods.new") != before


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
UNCOUNTED_EDITS = [  # comments, docstrings and layout, and what only people and the plan read
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
]


@pytest.mark.parametrize(("old", "new"), UNCOUNTED_EDITS)
def test_what_no_result_depends_on_does_not_count(copy: Path, old: str, new: str) -> None:
    assert not counts(copy / "methods", SOURCE, old, new)


def test_nor_does_it_in_a_plugin_of_one_s_own(outside: Path) -> None:
    assert not counts(outside, SOURCE, *UNCOUNTED_EDITS[-1])


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
def test_whatever_can_change_a_result_counts(copy: Path, old: str, new: str) -> None:
    assert counts(copy / "methods", SOURCE, old, new)


def test_a_constant_for_the_plan_counts_where_its_own_module_reads_it(copy: Path) -> None:
    read = "METRICS = {'a': 1}\n\n\ndef evaluate(x):\n    return METRICS[x]\n"
    assert counts(copy / "methods", read, "'a': 1", "'a': 2")


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


def read_anew(module: str) -> str:
    """Return a digest, of what the cache knows and otherwise of the files."""
    digests._remembered.cache_clear()
    forget_what_was_read()
    return digest(module)


@pytest.fixture
def cache_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of analyses of its own."""
    monkeypatch.setattr(digests, "CACHE", tmp_path / "cache/digests.json")
    digests._remembered.cache_clear()
    yield digests.CACHE
    digests._remembered.cache_clear()


def test_what_was_read_before_is_read_again_when_a_file_or_the_rules_change(
    whole: Path, cache_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = digest("fu.methods.fedosd")
    digests.remember()
    entries = json.loads(cache_file.read_text())
    assert len(entries) == len(closure(("fu.methods.fedosd",)))
    assert read_anew("fu.methods.fedosd") == fresh
    cache_file.write_text(json.dumps({key: ["0" * 64, [], []] for key in entries}))
    assert read_anew("fu.methods.fedosd") != fresh  # what was read before is believed
    monkeypatch.setattr(digests, "OWN", b"other rules")
    assert read_anew("fu.methods.fedosd") == fresh  # but not what other rules made of it


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_cache_is_made_again(copy: Path, cache_file: Path, kind: str) -> None:
    fresh = digest("fu.seeds")
    digests.remember()
    whole = json.loads(cache_file.read_text())
    damage(cache_file, kind, next(iter(whole)))
    assert read_anew("fu.seeds") == fresh
    digests.remember()
    assert cache_file.is_dir() or json.loads(cache_file.read_text()) == whole
    assert [path.name for path in cache_file.parent.iterdir()] == [cache_file.name]


# ---- files that a plug-in opens ----------------------------------------------------------------------------------


def test_a_file_counts_where_the_module_that_opens_it_declares_it(outside: Path) -> None:
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
def test_a_declaration_that_cannot_be_read_off_the_file_is_refused(outside: Path, text: str) -> None:
    write(outside / "mine.py", f"{text}\n")
    line = 2 if text.startswith("READS = []") else 1
    told = 'READS must list files in this folder or below, as in READS = ["rate.txt"].'
    assert sentence(lambda: digest("fu.methods.mine")) == f"{outside}/mine.py: line {line}: {told}"


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


@pytest.mark.parametrize(
    ("library", "changed"),
    [("scikit-learn", {"data"}), ("pandas", {"publish"}), ("torchvision", set()), ("PyYAML", set())],
)
def test_another_version_of_a_library_touches_exactly_the_stages_that_import_it(
    whole: Path, library: str, changed: set[str]
) -> None:
    lock = whole.parent / "envs/lock.txt"
    write(lock, lock.read_text().replace(f"\n{library}==", f"\n{library}==99."))
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


def test_parts_are_the_modules_and_libraries_of_a_digest(copy: Path) -> None:
    write(copy / "methods/new.py", "import numpy, fu.seeds, fu.errors\n")
    found = digests.parts("fu.methods.new")
    assert list(found) == ["fu", "fu.methods", "fu.methods.new", "fu.seeds", "numpy"]
    assert all(len(value) == 8 and int(value, 16) >= 0 for name, value in found.items() if name != "numpy")
    write(copy / "seeds.py", f"{(copy / 'seeds.py').read_text()}\nADDED = 1\n")
    changed = digests.parts("fu.methods.new")
    assert {name for name in found if found[name] != changed[name]} == {"fu.seeds"}


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
    ("statement", "named"),
    [
        ("import importlib.util as u", "importlib.util"),
        ("def f():\n    import runpy", "runpy"),
        ("from pkgutil import iter_modules", "pkgutil"),
        ("x = __import__('os')", "__import__"),
        ("def f(text):\n    return eval(text)", "eval"),
        ("import sys as s\ns.path += ['x']", "sys.path"),
        ("from sys import path", "sys.path"),
        ("import importlib.metadata\nimportlib.import_module('os')", "importlib.import_module"),
        ("from fu import plugins\nplugins.load('models', 'mlp')", "fu.plugins.load"),
        ("from fu.plugins import *", "fu.plugins.*"),
        ("from ..plugins import params", "fu.plugins.params"),
    ],
)
def test_what_hides_an_import_is_refused_with_file_and_line(copy: Path, statement: str, named: str) -> None:
    path = copy / "methods/new.py"
    write(path, f'"""New."""\n{statement}\n')
    where, line, text = sentence(lambda: digest("fu.methods.new")).split(": ")
    assert where == str(path)
    assert line in {"line 2", "line 3"}
    assert text == f"{named} can import code that no digest covers; use a plain `import`."


@pytest.mark.parametrize(
    ("reading", "named"),
    [
        ("RATE = helper.METRICS['rate']", "fu.methods.helper.METRICS"),
        ("from fu.methods.helper import LABEL as m", "fu.methods.helper.LABEL"),
        ("from fu.methods.helper import *\nRATE = METRICS['rate']", "METRICS"),
        ("RATE = float(helper.f.__doc__)", "fu.methods.helper.f.__doc__"),
        ("RATE = float(__doc__)", "__doc__"),
        ("import inspect\nRATE = float(inspect.getdoc(helper.f))", "inspect.getdoc"),
    ],
)
def test_reading_what_does_not_count_is_refused_with_file_and_line(outside: Path, reading: str, named: str) -> None:
    write(outside / "helper.py", "METRICS = {'rate': 0.1}\nLABEL = '0.1'\n")
    write(outside / "mine.py", f"from fu.methods import helper\n\n{reading}\n")
    *_, text = sentence(lambda: digest("fu.methods.mine")).split(": ")
    assert text == f"{named} is left out of digests, so its edits would go unnoticed; use a constant of another name."


@pytest.mark.parametrize(
    "statement",
    [
        "model.eval()",
        "from fu.evaluation import eval\neval(1)",
        "def eval(model):\n    return 1\n\n\neval(2)",
        "import importlib.metadata\nimportlib.metadata.version('numpy')",
        "from fu.plugins import Kind",
        "site = 1\nprint(site)",
        "METRICS = {}\nself.METRICS",
    ],
)
def test_what_only_looks_like_it_is_not(copy: Path, statement: str) -> None:
    write(copy / "methods/new.py", f"{statement}\n")
    assert digest("fu.methods.new")


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
def test_a_source_that_cannot_be_read_is_told_in_one_sentence(copy: Path, source: bytes, text: str) -> None:
    path = copy / "methods/new.py"
    path.write_bytes(source)
    forget_what_was_read()
    assert sentence(lambda: digest("fu.methods.new")) == f"{path}: {text}"


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
