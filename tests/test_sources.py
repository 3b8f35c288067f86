"""What a digest covers is what was compiled, whoever edits and whatever bytecode lies there."""

import importlib.util
import os
import py_compile
import shutil
from pathlib import Path

import pytest

from fu.pipeline.provenance.digest import ROOT
from tests.mistakes import python


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A package `fu` of what keeps sources, a helper and a module."""
    (tmp_path / "fu").mkdir()
    for name in ("__init__", "sources"):
        shutil.copy2(ROOT / f"fu/{name}.py", tmp_path / "fu")
    return tmp_path


def write(path: Path, text: str) -> None:
    """Write a file whose modification time says nothing."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def run(root: Path, program: str, **environment: str) -> str:
    return python(root, "-c", program, **{"PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": "", **environment})[1]


def test_a_file_is_read_once_by_the_import_or_by_whoever_asks_first(root: Path) -> None:
    program = """
from pathlib import Path
from fu import sources
one, other = Path("fu/one.py"), Path("fu/other.py")
one.write_text("X = 1"), other.write_text("X = 1")
import fu.one
one.write_text("X = 2")
print(fu.one.X, sources.text("fu/one.py").decode(), sources.edited())
one.write_text("X = 1")
print(sources.edited())
sources.text("fu/other.py")
other.write_text("X = 2")
import fu.other
print(fu.other.X, sources.edited())
other.write_text("X = 1")
one.unlink()
print(sources.edited())
"""
    assert run(root, program).splitlines() == ["1 X = 1 True", "False", "1 True", "True"]


def test_bytecode_is_used_where_its_source_is_the_same_and_never_for_its_time(root: Path) -> None:
    module, program = root / "fu/one.py", "import fu.one; print(fu.one.X)"
    bytecode = Path(importlib.util.cache_from_source(module))
    write(module, "X = 1")
    py_compile.compile(str(module), doraise=True)  # as Python does, by time and size
    write(module, "X = 2")
    assert run(root, program) == "2\n"
    written = bytecode.stat().st_mtime_ns
    assert run(root, program) == "2\n"
    assert bytecode.stat().st_mtime_ns == written  # it was used
    write(module, "X = 3")
    assert run(root, program, PYTHONDONTWRITEBYTECODE="1") == "3\n"
    assert bytecode.stat().st_mtime_ns == written
    assert run(root, program) == "3\n"
    assert bytecode.stat().st_mtime_ns > written


def test_bytecode_is_compared_with_the_source_that_was_read_first(root: Path) -> None:
    (root / "fu/one.py").write_text("X = 1")
    assert run(root, "import fu.one; print(fu.one.X)") == "1\n"  # leaves bytecode
    program = """
from pathlib import Path
from fu import sources
sources.text("fu/one.py")
Path("fu/one.py").write_text("X = 2")
import fu.one
print(fu.one.X, sources.edited())
"""
    assert run(root, program) == "1 True\n"


def test_a_package_that_python_read_otherwise_is_refused(root: Path) -> None:
    package = root / "fu/__init__.py"
    write(package, package.read_text() + "X = 1\n")
    assert run(root, "import fu; print(fu.X)") == "1\n"  # leaves bytecode
    write(package, package.read_text().replace("X = 1", "X = 2"))
    place = f"{package}: was edited while it was imported; start again."
    assert run(root, "import fu; print(fu.X)").endswith(f"ImportError: {place}\n")
    assert run(root, "import fu; print(fu.X)") == "2\n"
