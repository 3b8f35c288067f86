"""What a person sees of a run: why jobs failed, last and once; which target was meant; what is lacking."""

import os
import re
import resource
import subprocess
import sys

import pytest

from tests.mistakes import contents
from tests.workflow.project import Project

pytestmark = pytest.mark.whole

STEP = "def step(task: Task, p: Params, state: {0}, round: int) -> {0}:\n"
NOISE = ("Cannot restore", "CalledProcessError", "Look above", "Traceback", "MissingRule", "jobid", "Finished job")


def make(project: Project, *words: str) -> tuple[int, list[str]]:
    """Run `make reproduce`; return its status and what stands on the screen."""
    done = project.make("reproduce", "CORES=2", *words)
    lines = done.stdout.splitlines()
    assert [line for line in lines if any(word in line for word in NOISE)] == []
    return done.returncode, lines


def test_why_jobs_failed_stands_last_and_once_and_what_they_would_replace_survives(project: Project) -> None:
    raised = (
        "from fu.errors import UserError\n    from fu.pipeline.engine import runs\n"
        '    raise UserError(f"the moon is full, and {runs.alive()} lives.")\n'
    )
    project.edit("fu/methods/fupga.py", STEP.format("Bounded"), STEP.format("Bounded") + f"    {raised}")
    project.edit("fu/methods/retrain.py", STEP.format("State"), STEP.format("State") + '    raise KeyError("a bug")\n')
    held = contents(project.root / "results")
    models = {path: path.stat() for path in (project.root / "results/toy/toy").rglob("*.safetensors")}
    status, lines = make(project)
    assert status == 2
    after = contents(project.root / "results")
    assert {
        name for name in held if not name.startswith(("toy/logs/", ".cache/")) and after.get(name) != held[name]
    } == set()
    same = [
        (now.st_ino, now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
        for was, now in ((was, path.stat()) for path, was in models.items())
    ]
    assert all(same), "Snakemake has put copies in place of models"
    assert not (project.root / ".snakemake/backups").exists()
    *before, one, two, three, by_make = lines
    assert by_make.startswith("make: *** ")
    log = "results/toy/logs/toy/{}/seed0/retraining.unlearned.log"
    file = project.root / "fu/methods/retrain.py"
    number = 1 + file.read_text().splitlines().index('    raise KeyError("a bug")')
    traceback = f"error: {file}: line {number}: KeyError: 'a bug' (full traceback: {{}})."
    (moon,) = {one, two, three} - {traceback.format(log.format(scenario)) for scenario in ("iid", "pat")}
    assert re.fullmatch(r"error: the moon is full, and \['process \d+ on \S+'\] lives\.", moon)
    assert "Traceback (most recent call last):" in (project.root / log.format("pat")).read_text()
    assert not any("the moon is full" in line or "a bug" in line for line in before)
    assert sum(line.endswith("fupga+lr0.02.unlearned: failed") for line in before) == 2
    assert not any("Tables and figures" in line for line in lines)
    assert len(lines) < 30


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
    last = "error: .snakemake: File too large; start again: no finished result is lost."
    assert done.stderr.splitlines()[-1] == last
    assert [word for word in ("Traceback", "Logging error", "Errno") if word in done.stdout + done.stderr] == []
    assert contents(project.root / "results/toy") == before


def test_the_estimate_is_of_what_is_to_be_made_for_the_targets(project: Project) -> None:
    for name in ("bars", "losses"):
        (project.root / f"results/toy/artefacts/toy/{name}.md").unlink()
    status, lines = make(project, "TARGETS=toy_bars")
    assert status == 0
    (told,) = [line for line in lines if line.startswith("To make")]
    assert told.startswith("To make at preset 'toy': 1 table or figure in 1 job, about 1 s on 2 cores (1 core minute)")
    (made,) = [line for line in lines if "results/toy/artefacts/toy/bars.{" in line and line.endswith(" s)")]
    assert any("1 of 1 job done in" in line for line in lines)
    assert lines.index(told) < lines.index(made)


def test_a_misspelt_target_gets_the_nearest(toy: Project) -> None:
    done = toy.snakemake("toy_bars", "toy_number", check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: there is no target 'toy_number'; did you mean 'toy_numbers'? allowed: all, toy, ")
    assert "MissingRule" not in done.stdout + done.stderr


def test_absent_archives_are_told_before_the_first_job(project: Project) -> None:
    project.edit("fu/datasets/mnist.py", 'torchvision="', 'embedded=False and "')  # which no server has
    project.override("{toy: {settings: {data: {dataset: mnist}}}}")
    before = contents(project.root / "results/toy")
    status, lines = make(project, "DATA_DIR=/of/mine")
    assert status == 2
    sentence = (
        "missing archives that cannot be downloaded here: /of/mine/mnist.npz; put them in place "
        "(docs/data.md) or set their folder (DATA_DIR=..., or data_dir in config.yaml)."
    )
    assert lines[-2] == f"error: {sentence}"
    dry = project.snakemake("-n", "--config", "data_dir=/of/mine")
    assert dry.stderr.count(f"warning: {sentence}\n") == 1
    (project.root / "mnist.npz").write_text("no archive")
    damaged = project.snakemake("-n", "--config", "data_dir=.")
    assert "warning: mnist.npz: " in damaged.stderr
    assert contents(project.root / "results/toy") == before
