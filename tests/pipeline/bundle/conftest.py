"""Each test has a folder of its own, the plan of the toy paper there, and an artefact with its bundle."""

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from fu.artefacts import provenance
from fu.pipeline.plan import Plan
from tests.artefacts.factories import make_entry
from tests.pipeline.bundle.zips import bundle
from tests.pipeline.page.folder import ROOT, put


@pytest.fixture(scope="module", autouse=True)
def _code_is_here() -> Iterator[None]:
    """The commit is that of the folder in which a test is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "CODE", Path())
        yield


@pytest.fixture(scope="module")
def plan(_with_toys: Path) -> Plan:
    """The plan of the toy paper."""
    return Plan({"preset": "smoke", "papers": ["toy"]})


@pytest.fixture(scope="module")
def folders(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with results, and one with these and their bundle; nobody edits them."""
    folder = tmp_path_factory.mktemp("bundled")
    with chdir(folder):
        put(make_entry("table", artefact="numbers"))
        shutil.copytree("results", "before/results")
        bundle(plan)
    return folder / "before/results", folder / "results"


@pytest.fixture
def stem(folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, without suffix, of the one artefact that is made: `toy_numbers`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folders[0], "results")
    return ROOT / "artefacts/toy/numbers"


@pytest.fixture
def made(folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundle of the artefact, beside what is in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folders[1], "results")
    [path] = ROOT.glob("*.zip")
    return path
