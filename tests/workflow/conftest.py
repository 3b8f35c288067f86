"""A finished run of the toy paper, made once; every edit test has its own copy of that. And one of all of `smoke`."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.project import Project, from_repository, with_toy


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run of the toy paper; nobody edits it."""
    project = with_toy(tmp_path_factory.mktemp("toy") / "project")
    project.snakemake()
    return project


@pytest.fixture
def project(toy: Project, tmp_path: Path) -> Iterator[Project]:
    """A copy of the finished toy run."""
    yield toy.copied(tmp_path / "project")
    shutil.rmtree(tmp_path / "project", ignore_errors=True)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run of all papers at `smoke`, made once; nobody edits it."""
    project = from_repository(tmp_path_factory.mktemp("smoke") / "project")
    project.snakemake()
    return project
