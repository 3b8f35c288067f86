"""What the plan remembers of files is remembered apart from the workflow's; a test may have `workflow/` as a copy, or a
folder of plug-ins of its own.
"""

import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from fu import plugins
from fu.pipeline import catalogue, digest
from fu.pipeline.settings import papers
from tests.pipeline.plans import forget_what_was_read


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "CACHE", folder / "plan.json")
        patch.setattr(digest, "CACHE", folder / "digests.json")
        digest._remembered.cache_clear()
        yield


@pytest.fixture
def workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of `workflow/` that the plan reads instead; no path of a module is remembered in or out of it."""
    root = tmp_path / "root"
    shutil.copytree(digest.ROOT / "workflow", root / "workflow")
    (root / "fu").symlink_to(digest.ROOT / "fu")
    monkeypatch.setattr(papers, "ROOT", root)
    monkeypatch.setattr(digest, "ROOT", root)
    forget_what_was_read()
    yield root / "workflow"
    forget_what_was_read()


@pytest.fixture
def with_toy(workflow: Path) -> Path:
    """A copy of `workflow/` with the small papers of `tests/workflow` too."""
    toys = Path(__file__).parents[1] / "workflow"
    for name in ("toy", "helped"):
        shutil.copy(toys / f"{name}.yaml", workflow / "papers")
    (workflow / "published" / "toy").mkdir()
    shutil.copy(toys / "toy_numbers.csv", workflow / "published" / "toy" / "numbers.csv")
    return workflow


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
