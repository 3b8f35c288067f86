"""What a person sees of a run: why jobs failed, last and once; which target was meant; what is lacking."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mistakes import contents
from tests.workflow.project import Project, from_repository

STEP = "def step(task: Task, p: Params, state: {0}, round: int) -> {0}:\n"
NOISE = ("Cannot restore", "CalledProcessError", "Look above", "Traceback", "MissingRule", "jobid", "Finished job")


def make(project: Project, *words: str) -> tuple[int, list[str]]:
    """Run `make reproduce`; return its status and what stands on the screen."""
    done = project.make("reproduce", "CORES=2", *words)
    lines = done.stdout.splitlines()
    assert [line for line in lines if any(word in line for word in NOISE)] == []
    return done.returncode, lines


def test_why_jobs_failed_stands_last_and_once(project: Project) -> None:
    raised = 'from fu.errors import UserError\n    raise UserError("the moon is full.")\n'
    project.edit("fu/methods/fupga.py", STEP.format("Bounded"), STEP.format("Bounded") + f"    {raised}")
    project.edit("fu/methods/retrain.py", STEP.format("State"), STEP.format("State") + '    raise KeyError("a bug")\n')
    status, lines = make(project)
    assert status == 2
    *before, one, two, three, by_make = lines
    assert by_make.startswith("make: *** ")
    log = "results/toy/logs/toy/{}/seed0/retraining.unlearned.log"
    file = project.root / "fu/methods/retrain.py"
    number = 1 + file.read_text().splitlines().index('    raise KeyError("a bug")')
    traceback = f"error: {file}: line {number}: KeyError: 'a bug' (the whole traceback: {{}})."
    assert {one, two, three} == {
        "error: the moon is full.",
        *(traceback.format(log.format(scenario)) for scenario in ("iid", "pat")),
    }
    assert "Traceback (most recent call last):" in (project.root / log.format("pat")).read_text()
    assert not any("the moon is full" in line or "a bug" in line for line in before)
    assert sum(line.endswith("fupga+lr0.02.unlearned: failed") for line in before) == 2
    assert not any("Tables and figures" in line for line in lines)
    assert len(lines) < 30
    done = project.snakemake("--quiet", "rules", check=False)  # called by itself
    assert done.returncode == 1
    assert set(done.stderr.splitlines()[-3:]) == {one, two, three}


def test_a_full_disk_below_snakemake_is_one_sentence_and_nothing_is_lost(project: Project) -> None:
    (project.root / "results/toy/artefacts/toy/bars.md").unlink()
    before = contents(project.root / "results/toy")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2"],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
        # Enough for a Snakefile, which Snakemake copies first, and too little for its list of locked files.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)),
    )
    assert done.returncode == 1
    last = "error: .snakemake: File too large; start again: nothing that was made is lost."
    assert done.stderr.splitlines()[-1] == last
    assert [word for word in ("Traceback", "Logging error", "Errno") if word in done.stdout + done.stderr] == []
    assert contents(project.root / "results/toy") == before
    assert make(project)[0] == 0


def test_the_estimate_is_of_what_is_to_be_made_for_the_targets(project: Project) -> None:
    for name in ("bars", "losses"):
        (project.root / f"results/toy/artefacts/toy/{name}.md").unlink()
    status, lines = make(project, "TARGETS=toy_bars")
    assert status == 0
    (told,) = [line for line in lines if line.startswith("To be made")]
    assert told.startswith("To be made at preset 'toy': 1 artefact in 1 job, about 1 s on 2 cores (0.0 core hours)")
    (made,) = [line for line in lines if "results/toy/artefacts/toy/bars.{" in line and line.endswith(" s)")]
    assert any("1 of 1 job done in" in line for line in lines)
    assert lines.index(told) < lines.index(made)


def test_a_run_is_known_while_it_lives(project: Project) -> None:
    raised = (
        "from fu.errors import UserError\n    from fu.pipeline.engine.runs import alive\n"
        "    raise UserError(str(alive()))\n"
    )
    project.edit("fu/methods/fupga.py", STEP.format("Bounded"), STEP.format("Bounded") + f"    {raised}")
    status, lines = make(project)
    assert status == 2
    assert re.fullmatch(r"error: \['process \d+ on \S+'\]", lines[-2])


@pytest.mark.parametrize("option", [(), ("-n",)], ids=["a run", "a dry run"])
def test_a_misspelt_target_gets_the_nearest(toy: Project, option: tuple[str, ...]) -> None:
    done = toy.snakemake(*option, "toy_bars", "toy_number", check=False)
    assert done.returncode == 1
    last = (done.stdout if option else done.stderr).splitlines()[-1]
    assert last.startswith("error: there is no target 'toy_number'; did you mean 'toy_numbers'? allowed: all, toy, ")
    assert "MissingRule" not in done.stdout + done.stderr


def test_a_file_of_a_run_that_is_not_planned_gets_the_nearest(toy: Project) -> None:
    done = toy.snakemake("-n", "results/toy/toy/idd/seed0/partition.npz", check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "error: there is no target 'results/toy/toy/idd/seed0/partition.npz'; did you mean "
        "'results/toy/toy/iid/seed0/partition.npz'? (`snakemake -n` lists all files)."
    )
    assert "KeyError" not in done.stdout + done.stderr


def test_absent_archives_are_told_before_the_first_job(tmp_path: Path) -> None:
    project = from_repository(tmp_path / "project")
    data = project.root / "fu/datasets"
    for name in ("mnist", "fashion_mnist"):  # which no server has
        text = (data / f"{name}.py").read_text()
        (data / f"{name}.py").write_text(text.replace('torchvision="', 'embedded=False and "'))
    status, lines = make(project, "PRESET=reduced", "TARGETS=fedosd_table6 fedosd_table8", "DATA_DIR=/of/mine")
    assert status == 2
    assert lines[-2] == (
        "error: these archives are needed and cannot be downloaded from here: /of/mine/fashion_mnist.npz, "
        "/of/mine/mnist.npz; put them in place (docs/data.md), or name their folder (DATA_DIR=..., data_dir in "
        "config.yaml)."
    )
    assert not (project.root / "results/reduced").exists()
