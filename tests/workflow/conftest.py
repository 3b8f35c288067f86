"""A finished smoke run in a copy of the repository, made once; every test edits its own copy of that."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TRACKED = ("fu", "workflow", "profiles", "envs", "Snakefile", "config.yaml", "Makefile")


class Project:
    """A copy of the repository in which to edit and run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def snakemake(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run Snakemake as a user would."""
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": ""},
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    def scheduled(self, *arguments: str) -> Counter[str]:
        """Return what a dry run schedules: `rule paper/scenario/seedN method` or `publish artefact` -> how often."""
        done = self.snakemake("-n", *arguments)
        text = done.stdout + done.stderr
        jobs: Counter[str] = Counter()
        for name, body in re.findall(r"^(?:local)?rule (\w+):\n(.*?)(?=^\[|^\S*rule |\Z)", text, re.M | re.S):
            found = re.search(r"^    wildcards: (.*)$", body, re.M)
            if found:
                jobs[" ".join([name, *re.findall(r"=([^,]+)", found[1])])] += 1
        return jobs

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))


def copy(source: Path, target: Path) -> Project:
    """Copy a project with modification times, so that nothing looks newer than it is."""
    shutil.copytree(source, target, symlinks=True)
    return Project(target)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Run the whole DAG at `smoke`, once."""
    root = tmp_path_factory.mktemp("finished") / "project"
    root.mkdir()
    for name in TRACKED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, root / name)
    project = Project(root)
    project.snakemake()
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Iterator[Project]:
    """A copy of the finished run."""
    yield copy(finished.root, tmp_path / "project")
    shutil.rmtree(tmp_path / "project", ignore_errors=True)
