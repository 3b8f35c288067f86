"""Another workflow uses this one as a module from a folder of its own; snakedeploy writes such a workflow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import REPOSITORY, Project, with_toy

pytestmark = pytest.mark.whole

MODULE = """
module fu:
    snakefile: "{root}/workflow/Snakefile"

use rule * from fu

rule mine:
    input: "results/toy/artefacts/toy/numbers.csv"
    output: "mine.csv"
    shell: "cp {{input}} {{output}}"
"""
NUMBERS = "results/toy/artefacts/toy/numbers"


def using(project: Project, folder: Path) -> Project:
    """Return a folder whose workflow uses the project's."""
    folder.mkdir()
    (folder / "Snakefile").write_text(MODULE.format(root=project.root))
    return Project(folder)


def test_a_module_plans_with_the_config_of_the_folder_that_it_runs_in(tmp_path: Path) -> None:
    project = with_toy(tmp_path / "project")
    mine = using(project, tmp_path / "mine")
    (mine.root / "config").mkdir()
    (mine.root / "config/config.yaml").write_text("{preset: toy, papers: [toy], seeds: [0, 1]}")
    expected = project.graph("toy_numbers", seeds=[0, 1])
    assert {job.names.get("run", "").rpartition("/")[2] for job in expected.jobs} >= {"seed0", "seed1"}
    mine.expect_run(expected.due, "mine")


def test_a_module_under_other_names_runs_the_same_and_names_a_missing_profile(tmp_path: Path) -> None:
    project = with_toy(tmp_path / "project")
    mine = using(project, tmp_path / "mine")
    mine.edit("Snakefile", 'Snakefile"\n', 'Snakefile"\n    config: config["fu"]\n')
    mine.edit("Snakefile", "use rule * from fu", "use rule * from fu as fu_*")
    mine.edit("Snakefile", "module fu:", "configfile: 'mine.yaml'\n\nmodule fu:")
    (mine.root / "mine.yaml").write_text("{samples: [a], fu: {preset: toy, papers: [toy]}}")
    profile = ("--workflow-profile", f"{project.root}/profiles/default")
    for words, warned in (((), True), (profile, False), (("--rerun-triggers", "mtime", "--"), False)):
        done = mine.snakemake("-n", *words, "mine")
        assert "rule fu_tabulate:" in done.stdout
        assert done.stderr.count("warning: Snakemake's own records can rerun jobs that are up to date") == warned
        assert "localrules directive" not in done.stdout + done.stderr


def test_a_module_with_a_prefix_is_refused(tmp_path: Path) -> None:
    mine = using(with_toy(tmp_path / "project"), tmp_path / "mine")
    mine.edit("Snakefile", 'Snakefile"\n', 'Snakefile"\n    prefix: "elsewhere"\n')
    done = mine.snakemake("-n", "mine", check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: prefix (in the module statement): results always go to results/ in the working directory; leave it out."
    )


@pytest.mark.whole
def test_a_module_makes_the_same_bytes_in_the_folder_that_it_runs_in(toy: Project, tmp_path: Path) -> None:
    project = with_toy(tmp_path / "project")
    mine = using(project, tmp_path / "mine")
    (mine.root / "random.py").write_text("raise ImportError('a file of the user, which no job imports')")
    profile = ("--workflow-profile", f"{project.root}/profiles/default")
    program = ("-P", "-m", "snakemake", "--cores", "2")  # -P: as the program `snakemake`
    mine.run(*program, *profile, "mine")
    for suffix in ("csv", "md", "rows.csv", "html"):
        assert (mine.root / f"{NUMBERS}.{suffix}").read_bytes() == (toy.root / f"{NUMBERS}.{suffix}").read_bytes()
    assert (mine.root / "mine.csv").read_bytes() == (mine.root / f"{NUMBERS}.csv").read_bytes()
    assert (mine.root / "results/toy/index.html").exists()
    assert not any((project.root / name).exists() for name in ("results", ".snakemake", "data"))
    assert "Nothing to be done" in mine.run(*program, *profile, "mine").stderr


@pytest.mark.whole
def test_snakedeploy_sets_up_a_folder_that_plans_with_its_config(tmp_path: Path) -> None:
    (tmp_path / "github/owner").mkdir(parents=True)
    project = with_toy(tmp_path / "github/owner/fu")
    shutil.copytree(REPOSITORY / "config", project.root / "config", symlinks=True)  # to the toy's config.yaml
    git = ("git", "-c", "user.name=a", "-c", "user.email=b")
    for words in (("init", "-q"), ("add", "--all"), ("commit", "-qm", "c"), ("tag", "v1")):
        subprocess.run([*git, *words], cwd=project.root, check=True)
    mine = Project(tmp_path / "mine")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    programs = tmp_path / "venv/bin"  # its libraries are not those of the lock file
    subprocess.run([programs / "pip", "install", "--quiet", "snakedeploy"], check=True)
    deploy = [str(programs / "snakedeploy"), "deploy-workflow", str(project.root), str(mine.root), "--tag", "v1"]
    subprocess.run(deploy, check=True, env={**os.environ, "PYTHONPATH": ""})
    mine.edit("config/config.yaml", "threads: 1", "threads: 2")
    done = mine.run(
        *("-m", "snakemake", "-n", "-p", "--cores", "2", "toy_numbers"),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{tmp_path}/github/.insteadOf",
        GIT_CONFIG_VALUE_0="https://github.com/",
        PYTHONPATH=str(project.root),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert "--threads 2" in done.stdout
    assert f"--published {project.root}/workflow/published/toy/numbers.csv" in done.stdout
