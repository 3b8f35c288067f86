"""Finished runs, each made once for all processes that test; every test that edits has its own copy."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.workflow.project import Project, from_repository, with_paper, with_toy

Make = Callable[[Path], Project]
SMALL = ("fats/fig7", "fedosd/table2", "safari/fig2")  # the cheapest of each paper that trains models
OF_PAPERS = {
    "audit": ("clients", "controls", "costs", "exposed", "harm", "relearning", "settles", "verdicts"),
    "fats": ("fig3", "fig7", "table1_as_published", "table1_samples", "table2"),
    "fedosd": ("baseline_variants", "fig3", "fig5", "fig7", "matrix", "overall", "mlp_classes", "table12"),
    "safari": ("q", "table1"),
    "tradeoffs": ("bounds", "fig6", "section7_3", "table1"),
}
# Of all artefacts at smoke so many that every stage and every kind of plug-in is behind one: `make test-smoke`.
FEW = tuple(f"{paper}/{name}" for paper, names in OF_PAPERS.items() for name in names)


def targets(names: Iterable[str]) -> list[str]:
    """Return artefacts as they are asked for."""
    return [name.replace("/", "_", 1) for name in names]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Make], Project]:
    """Return what makes a finished run under a name, unless another process has made it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, begin: Make, *targets: str) -> Project:
        root = shared / f"finished-{name}"
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / f"{name}.finished").exists():
                shutil.rmtree(root, ignore_errors=True)
                begin(root).snakemake(*targets)
                (shared / f"{name}.finished").touch()
        return Project(root)

    return make


@pytest.fixture(scope="session")
def toy(once: Callable[[str, Make], Project]) -> Project:
    """A finished run of the toy paper; nobody edits it."""
    return once("toy", with_toy)


@pytest.fixture
def project(toy: Project, tmp_path: Path) -> Iterator[Project]:
    """A copy of the finished toy run."""
    yield toy.copied(tmp_path / "project")
    shutil.rmtree(tmp_path / "project", ignore_errors=True)


@pytest.fixture(scope="session")
def helped(once: Callable[[str, Make], Project]) -> Project:
    """A finished run of a paper that trains in several ways and unlearns nothing; nobody edits it."""
    return once("helped", lambda root: with_paper(root, "helped"))


@pytest.fixture(scope="session")
def some(once: Callable[..., Project]) -> Project:
    """A finished run of one small artefact of each paper; nobody edits it."""
    return once("some", from_repository, *targets(SMALL))


@pytest.fixture(scope="session")
def few(once: Callable[..., Project]) -> Project:
    """A finished run of one artefact of each kind, at `smoke`; nobody edits it."""
    return once("few", from_repository, *targets(FEW))


@pytest.fixture(scope="session")
def smoke(once: Callable[[str, Make], Project]) -> Project:
    """A finished run of all papers at `smoke`; nobody edits it."""
    return once("smoke", from_repository)
