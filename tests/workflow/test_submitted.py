"""Jobs that wait in a queue run what was planned or fail with one sentence, and need few submissions."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fu.pipeline.engine import submitted
from tests.workflow.project import Project, until, with_toy

pytestmark = pytest.mark.whole

QUEUE = Path(__file__).parent / "cluster"  # holds an executor named `queue`
ARGUMENTS = (
    *("--executor", "queue", "--jobs", "9", "--seconds-between-status-checks", "1", "--workflow-profile", "none"),
    *("--scheduler", "greedy", "--rerun-triggers", "mtime", "--max-checksum-file-size", "0", "--ignore-incomplete"),
    *("--quiet", "host", "--keep-going", "--keep-incomplete"),
)


RAISES = """
def start(*given, **named):
    import psutil
    from fu.errors import UserError
    served = "--serve" in psutil.Process().parent().cmdline()
    raise UserError("fupga: no" + ", in a fork of the pack's server" * served + ".")
"""


class Queue:
    """A project whose runs submit; Slurm's commands find nothing."""

    def __init__(self, project: Project, programs: Path) -> None:
        self.project, self.root = project, project.root
        programs.mkdir()
        for name in ("sinfo", "squeue", "scancel"):
            (programs / name).write_text("#!/bin/sh\n")
            (programs / name).chmod(0o755)
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {
            **{name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ},
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(QUEUE),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-m", "snakemake", *ARGUMENTS, *arguments],
                cwd=self.root,
                env=self.environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
        return self.started[-1]

    def end(self) -> None:
        """End what still runs or waits."""
        for process in self.started:
            process.kill()
            process.wait()
        for job in (self.root / "jobs").read_text().split() if (self.root / "jobs").exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(job), signal.SIGKILL)

    def run(self, *arguments: str) -> tuple[int, str]:
        (self.root / "go").touch()
        process = self.start(*arguments)
        shown = process.communicate(timeout=300)[0]
        return process.returncode, shown

    def submitted(self) -> list[tuple[int, str]]:
        """Return how many jobs each submission had, and the rest that was noted of it."""
        lines = (self.root / "submitted").read_text().splitlines()
        return [(int(line.partition("\t")[0]), line.partition("\t")[2]) for line in lines]


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    found = Queue(with_toy(tmp_path / "project"), tmp_path / "programs")
    yield found
    found.end()
    shutil.rmtree(tmp_path / "project", ignore_errors=True)


def own(queue: Queue, kind: str, name: str) -> Path:
    """Make a plug-in of the project one of a person's own, with the same content."""
    file = queue.root / "mine" / kind / f"{name}.py"
    file.parent.mkdir(parents=True)
    shutil.move(queue.root / "fu" / kind / f"{name}.py", file)
    queue.project.edit("config.yaml", "plugins: null", "plugins: mine")
    return file


@pytest.mark.small
def test_after_an_edit_of_code_or_papers_what_waits_fails_where_it_is_affected(queue: Queue, toy: Project) -> None:
    own(queue, "methods", "fupga")
    before = (queue.root / "config.yaml").read_text()
    run = queue.start("toy_numbers")
    until(lambda: (queue.root / "submitted").exists() or run.poll() is not None)
    queue.project.edit("mine/methods/fupga.py", "def start(", "REMARK = 1\n\n\ndef start(")
    (queue.root / "config.yaml").write_text("{edited")
    (queue.root / "go").touch()
    shown = run.communicate(timeout=300)[0]
    assert run.returncode == 1, shown
    assert shown.splitlines()[-1] == f"error: {submitted.EDITED}"
    assert shown.count(submitted.EDITED) == 1
    (queue.root / "config.yaml").write_text(before)
    due = {key.split()[0] for key in queue.project.scheduled("toy_numbers")}
    assert due == {"unlearn", "recover", "evaluate", "select", "publish"}
    assert queue.run("toy_numbers")[0] == 0
    for suffix in ("csv", "md", "html", "tex"):
        path = f"results/toy/artefacts/toy/numbers.{suffix}"
        assert (queue.root / path).read_bytes() == (toy.root / path).read_bytes()


def test_a_job_that_an_edit_has_removed_fails_with_the_same_sentence_and_once(queue: Queue) -> None:
    run = queue.start("toy_times")
    until(lambda: (queue.root / "submitted").exists() or run.poll() is not None)
    queue.project.edit("workflow/papers/toy.yaml", "seeds: {value: [0]", "seeds: {value: [1]")
    (queue.root / "go").touch()
    shown = run.communicate(timeout=300)[0]
    assert shown.splitlines()[-1] == f"error: {submitted.EDITED}"
    assert len(queue.submitted()) == 1


def test_short_jobs_are_submitted_together_and_a_failure_keeps_what_the_others_made(queue: Queue) -> None:
    fupga = own(queue, "methods", "fupga")
    works = fupga.read_text()
    fupga.write_text(works.replace("def start(", "def once_start(") + RAISES)
    status, shown = queue.run("toy_times")
    assert status == 1
    assert shown.endswith("error: fupga: no, in a fork of the pack's server.\n")
    assert "incomplete" not in shown
    (alone, _), (number, resources) = queue.submitted()
    assert (alone, number) == (1, 4)
    for asked in ("'_cores': 1", "'turn': 1", "'mem_mb': 507", "'runtime': 21"):
        assert asked in resources
    made = {path.name for path in queue.root.glob("results/toy/toy/iid/**/*.made.json")}
    names = ("original.trained", "retraining.unlearned")
    assert made == {"partition.made.json", *(f"{name}.made.json" for name in names)}
    fupga.write_text(works)
    left = queue.project.scheduled("toy_times")
    assert sorted(key.split()[0] for key in left) == ["publish", "recover", "unlearn"]
    log = queue.root / "results/toy/logs/toy/iid/seed0/retraining.unlearned.log"
    log.unlink()
    assert queue.run("toy_times", "--forcerun", "unlearn")[0] == 0
    assert "already made" not in log.read_text()


def test_a_submitting_process_that_is_to_end_does_while_its_jobs_go_on(queue: Queue) -> None:
    run = queue.start("toy_times")
    until(lambda: (queue.root / "jobs").exists() or run.poll() is not None)
    run.send_signal(signal.SIGTERM)
    assert run.wait(100) == 128 + signal.SIGTERM  # its job still waits for `go`, and may still write
    assert run.stdout
    shown = os.read(run.stdout.fileno(), 100_000).decode()
    words = "error: ended by SIGTERM; queued jobs continue, and the same command resumes from their results."
    assert shown.splitlines()[-1] == words
    assert list(queue.root.glob(".snakemake/locks/*")) == []
    (queue.root / "go").touch()
    until((queue.root / "results/toy/toy/iid/seed0/partition.made.json").exists)


def test_a_workflow_with_rules_of_its_own_is_not_submitted(queue: Queue) -> None:
    (queue.root / "Snakefile").write_text('module fu:\n    snakefile: "workflow/Snakefile"\n\nuse rule * from fu\n')
    status, shown = queue.run("toy_times")
    assert status == 1
    assert "a workflow with rules of its own cannot be submitted to a cluster" in shown
    assert not (queue.root / "submitted").exists()


def test_a_folder_of_ones_own_submits_with_the_snakefile_of_the_clone(queue: Queue, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    shutil.copy2(queue.root / "config.yaml", mine)
    clone, queue.root = queue.root, mine
    status, shown = queue.run("toy_times", "--snakefile", f"{clone}/Snakefile")
    assert status == 0, shown
    assert queue.submitted()
    assert (mine / "results/toy/artefacts/toy/times.csv").exists()
    assert not (clone / "results").exists()
