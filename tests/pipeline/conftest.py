"""What the plan remembers of files is remembered apart from the workflow's; a test may have `workflow/` as a copy, the
small papers, or a folder of plug-ins of its own.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from fu import plugins
from fu.pipeline.provenance import cached, catalogue, digest
from fu.pipeline.settings import papers
from tests.pipeline.plans import forget_what_was_read

ROOT = digest.ROOT
TOYS = ROOT / "tests/workflow"


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached, "CACHE", folder / "plan.json")
        patch.setattr(digest, "CACHE", folder / "digests.json")
        digest._remembered.cache_clear()
        yield


def _copied(root: Path) -> Path:
    """Copy `workflow/` of the repository."""
    shutil.copytree(ROOT / "workflow", root / "workflow")
    (root / "fu").symlink_to(ROOT / "fu")
    return root / "workflow"


def _add_toys(workflow: Path) -> Path:
    for name in ("toy", "helped"):
        shutil.copy(TOYS / f"{name}.yaml", workflow / "papers")
    (workflow / "published" / "toy").mkdir()
    shutil.copy(TOYS / "toy_numbers.csv", workflow / "published" / "toy" / "numbers.csv")
    return workflow


@contextmanager
def _planned_from(root: Path) -> Iterator[None]:
    """Have the plan read that `workflow/`; no path of a module is remembered in or out of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(papers, "ROOT", root)
        patch.setattr(digest, "ROOT", root)
        forget_what_was_read()
        yield
    forget_what_was_read()


@pytest.fixture
def workflow(tmp_path: Path) -> Iterator[Path]:
    """A copy of `workflow/` that the plan reads instead, to write in."""
    copy = _copied(tmp_path / "root")
    with _planned_from(copy.parent):
        yield copy


@pytest.fixture
def own_toy(workflow: Path) -> Path:
    """A copy of `workflow/` with the small papers, to write in."""
    return _add_toys(workflow)


@pytest.fixture(scope="session")
def _toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _add_toys(_copied(tmp_path_factory.mktemp("toys") / "root"))


@pytest.fixture(scope="module")
def _with_toys(_toys: Path) -> Iterator[Path]:
    with _planned_from(_toys.parent):
        yield _toys


@pytest.fixture
def with_toy(_with_toys: Path) -> Path:
    """A `workflow/` with the small papers, for the rest of a file of tests; nobody writes in it."""
    return _with_toys


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A folder for plug-ins of one's own, which nothing knows any more afterwards."""
    packages = {kind: import_module(f"fu.{kind}") for kind in catalogue.KINDS}
    paths = {kind: list(package.__path__) for kind, package in packages.items()}
    folders = list(plugins.FOLDERS)
    forget_what_was_read()
    folder = tmp_path / "mine"
    folder.mkdir()
    yield folder
    plugins.FOLDERS[:] = folders
    for kind, package in packages.items():
        package.__path__[:] = paths[kind]
    for name, module in list(sys.modules.items()):
        if name.startswith("fu.") and str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
    forget_what_was_read()
