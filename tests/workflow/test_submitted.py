"""Jobs that wait in a queue run the code that was planned, in few submissions, whatever a person edits meanwhile."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fu.pipeline.engine import snakemake, snapshot
from tests.workflow.project import Project, with_toy

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

    def start(self, *arguments: str, program: str = "fu.pipeline.engine.snapshot") -> subprocess.Popen[str]:
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-m", program, *ARGUMENTS, *arguments],
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
        said = process.communicate(timeout=300)[0]
        return process.returncode, said

    def submitted(self) -> list[tuple[int, str]]:
        """Return how many jobs each submission had, and the rest that was noted of it."""
        lines = (self.root / "submitted").read_text().splitlines()
        return [(int(line.partition("\t")[0]), line.partition("\t")[2]) for line in lines]

    def copies(self) -> list[Path]:
        return list((self.root / ".snakemake/code").glob("*"))


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    found = Queue(with_toy(tmp_path / "project"), tmp_path / "programs")
    yield found
    found.end()
    shutil.rmtree(tmp_path / "project", ignore_errors=True)


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def own(queue: Queue, kind: str, name: str) -> Path:
    """Make a plug-in of the project one of a person's own, with the same content."""
    file = queue.root / "mine" / kind / f"{name}.py"
    file.parent.mkdir(parents=True)
    shutil.move(queue.root / "fu" / kind / f"{name}.py", file)
    queue.project.edit("config.yaml", "plugins: null", "plugins: mine")
    return file


@pytest.mark.small
def test_what_waits_is_not_what_a_person_edits(queue: Queue, toy: Project) -> None:
    own(queue, "methods", "fupga")
    (queue.root / ".snakemake/code/of-a-killed-run").mkdir(parents=True)
    (queue.root / "fu/.#errors.py").symlink_to("who@where.1:2")  # which Emacs makes while a file is edited
    run = queue.start("toy_numbers")
    until(lambda: (queue.root / "submitted").exists() or run.poll() is not None)
    assert len(queue.copies()) == 1
    for file in (
        file for folder in ("fu", "mine", "workflow/rules") for file in queue.root.glob(f"{folder}/**/[!.]*.*")
    ):
        file.write_text("raise SystemExit('edited')\n")
    for file in [*queue.root.glob("workflow/p*/**/*.*"), queue.root / "config.yaml", queue.root / "envs/lock.txt"]:
        file.write_text("{edited")
    (queue.root / "Snakefile").unlink()
    told = queue.project.make("status", **queue.environment).stdout
    assert re.match(
        r"\d+ of \d+ jobs done, 0 running, 0 waiting, 0 failed, \d+ not started\nRunning in this folder: proc", told
    )
    (queue.root / "go").touch()
    assert run.wait(300) == 0, (queue.root / "queue.log").read_text()[-3000:]
    for suffix in ("csv", "md", "html", "tex", "pdf", "svg", "png"):
        path = f"results/toy/artefacts/toy/numbers.{suffix}"
        assert (queue.root / path).read_bytes() == (toy.root / path).read_bytes()
    assert not queue.copies()


def test_short_jobs_are_submitted_together_and_a_failure_keeps_what_the_others_made(queue: Queue) -> None:
    fupga = own(queue, "methods", "fupga")
    works = fupga.read_text()
    fupga.write_text(works.replace("def start(", "def once_start(") + RAISES)
    status, said = queue.run("toy_times")
    assert status == 1
    assert said.endswith("error: fupga: no, in a fork of the pack's server.\n")
    assert "incomplete" not in said
    (alone, _), (number, resources) = queue.submitted()
    assert (alone, number) == (1, 4)
    for asked in ("'_cores': 1", "'turn': 1", "'mem_mb': 507", "'runtime': 21"):
        assert asked in resources
    assert not queue.copies()
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
    said = os.read(run.stdout.fileno(), 100_000).decode()
    words = "error: ended by SIGTERM; jobs in the queue go on, and the same command goes on from what they make."
    assert said.splitlines()[-1] == words
    assert len(queue.copies()) == 1
    assert list(queue.root.glob(".snakemake/locks/*")) == []
    (queue.root / "go").touch()
    until((queue.root / "results/toy/toy/iid/seed0/partition.made.json").exists)


def test_a_cluster_gets_no_job_without_a_copy_of_the_code(queue: Queue) -> None:
    run = queue.start("toy_losses", program="snakemake")
    said = run.communicate(timeout=100)[0]
    assert run.returncode == 1
    assert "start with `make reproduce PROFILE=...`" in said
    assert not (queue.root / "submitted").exists()


@pytest.mark.parametrize(
    ("arguments", "copies"),
    [
        (["--cores", "1", "toy"], False),
        ([*ARGUMENTS, "--config", "preset=toy", "--", "toy"], True),
        ([*ARGUMENTS, "toy"], True),
        ([*ARGUMENTS, "-n"], False),
        (["--no-such-thing"], False),
    ],
)
def test_only_what_is_submitted_needs_a_copy(
    arguments: list[str], copies: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    became: list[list[str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda _, words: became.append(words))
    monkeypatch.setattr(snakemake, "submits", lambda words: "queue" in words and "-n" not in words)
    snapshot.main(list(arguments))
    made = list((tmp_path / ".snakemake/code").glob("*"))
    assert len(made) == copies
    ((_, *words),) = became
    if copies:
        place = words.index("--snakefile")
        assert words[place + 1] == f"{made[0]}/Snakefile"
        assert "--" not in words[:place]
        del words[place : place + 2]
        assert {path.name for path in made[0].iterdir()} == {*snapshot.PARTS, "config.yaml"}
        assert not list(made[0].rglob("__pycache__"))
    assert words == ["-m", "snakemake", *arguments]
