"""Whoever of a run is ended, and however, no process and no folder is left."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pipeline.test_fork_server import alive
from tests.workflow.project import REPOSITORY, until

pytestmark = pytest.mark.whole

SNAKEFILE = """
from fu.pipeline.engine import fork_server

fork_server.announce()

onstart:
    if config["server"]:
        fork_server.start()

rule all:
    input:
        [f"{name}.done" for name in config["names"]],

rule job:
    output:
        "{name}.done",
    shell:
        "python -m fu.pipeline.engine.fork_server job {wildcards.name} 2> {wildcards.name}.log"

rule later:
    input:
        rules.all.input,
    output:
        "later.done",
    shell:
        "python -m fu.pipeline.engine.fork_server job later 2> later.log"
"""
JOB = """
import os, sys, time
from pathlib import Path

Path(f"{sys.argv[1]}.pid").write_text(f"{os.getpid()} ")
while not Path("go").exists():
    time.sleep(.01)
Path(f"{sys.argv[1]}.done").write_text("done")
"""
SIGNALS = (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


class Run:
    """A run of Snakemake whose jobs wait for a file `go`."""

    def __init__(self, root: Path, server: bool, names: list[str]) -> None:
        self.root = root
        (root / "tmp").mkdir()
        (root / "Snakefile").write_text(SNAKEFILE)
        (root / "job.py").write_text(JOB)
        self.snakemake = subprocess.Popen(
            [
                *(sys.executable, "-m", "snakemake", "--cores", "99", "--keep-going", "later.done"),
                *("--config", f"server={server}", f"names={names}"),
            ],
            cwd=root,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PYTHONPATH": f"{REPOSITORY}:{root}",
                "TMPDIR": str(root / "tmp"),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also where `&` began it
        )

    def job(self, name: str) -> int:
        """Return the process in which a job's module runs, as soon as it does."""
        file = self.root / f"{name}.pid"
        until(lambda: file.exists() and file.read_text().endswith(" "), 60)
        return int(file.read_text())

    def processes(self) -> dict[int, str]:
        """Return all processes of the run that have not ended, with their commands."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"TMPDIR={self.root}/tmp\0".encode() in (folder / "environ").read_bytes():
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().decode().replace("\0", " ").strip()
            except OSError:  # it ended, or is another user's
                continue
        return found

    def find(self, command: str) -> int:
        """Return the process whose command matches; the first one, because a server's jobs have its command."""
        until(lambda: any(re.search(command, found) for found in self.processes().values()), 60)
        return min(pid for pid, found in self.processes().items() if re.search(command, found))

    def who(self, name: str, job: str) -> int:
        """Return a job's process, its client's or its shell's."""
        return (
            self.job(job) if name == "job" else self.find(f"fork_server job {job}{'$' if name == 'client' else ' 2>'}")
        )

    def ends(self, status: int) -> None:
        """Assert that it ends soon and leaves no process and no folder."""
        until(lambda: self.snakemake.poll() is not None and not self.processes(), 10)
        assert self.snakemake.returncode == status
        assert not any(alive(int(file.read_text())) for file in self.root.glob("*.pid"))
        assert not list((self.root / "tmp").glob("fu-*"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(server: bool, *names: str) -> Run:
        runs.append(Run(tmp_path, server, list(names)))
        return runs[-1]

    yield start
    for run in runs:
        for pid in run.processes():
            os.kill(pid, signal.SIGKILL)
        run.snakemake.wait()


served = pytest.mark.parametrize("server", [True, False], ids=["served", "direct"])


@pytest.mark.parametrize(("server", "how"), [(True, signal.SIGKILL), (False, signal.SIGHUP)], ids=["served", "direct"])
def test_nothing_outlives_snakemake(start: Callable[..., Run], server: bool, how: signal.Signals) -> None:
    engine = (REPOSITORY / "fu/pipeline/engine/rules.py").read_text()
    assert "        fork_server.announce()\n" in engine  # as the one above
    run = start(server, "one", "other")
    run.job("one"), run.job("other")
    run.snakemake.send_signal(how)
    run.ends(-how)
    assert not list(run.root.glob("*.done"))


def test_nothing_outlives_a_snakemake_that_was_killed_while_the_server_started(start: Callable[..., Run]) -> None:
    run = start(True, "one")
    run.find("--serve")
    run.snakemake.kill()
    run.ends(-signal.SIGKILL)


def test_snakemake_itself_waits_for_its_jobs_where_it_is_asked_to_end(start: Callable[..., Run]) -> None:
    run = start(True, "one")
    run.job("one")
    run.snakemake.send_signal(signal.SIGINT)
    (run.root / "go").touch()
    run.ends(1)
    assert (run.root / "one.done").exists()


@served
def test_a_job_ends_with_each_of_its_processes_alone_and_the_others_go_on(
    start: Callable[..., Run], server: bool
) -> None:
    faults = {f"{who}-{how.name}": (who, how) for who in ("shell", "client", "job") for how in SIGNALS}
    run = start(server, "other", *faults)
    jobs = {name: run.job(name) for name in (*faults, "other")}
    for name, (who, how) in faults.items():
        if (who, how) != ("shell", signal.SIGINT):  # bash waits for its command, which a terminal would interrupt, too
            os.kill(run.who(who, name), how)
    until(lambda: [name for name in jobs if alive(jobs[name])] == ["shell-SIGINT", "other"], 5)
    (run.root / "go").touch()
    run.ends(1)
    assert {path.name for path in run.root.glob("*.done")} == {"other.done", "shell-SIGINT.done"}
    assert "Traceback" not in "".join(path.read_text() for path in run.root.glob("*.log"))


def test_a_run_goes_on_without_its_server(start: Callable[..., Run]) -> None:
    run = start(True, "one", "other")
    jobs = [run.job("one"), run.job("other")]
    server = run.find("--serve")
    for how in reversed(SIGNALS):  # the last one alone ends it
        assert server in run.processes()
        os.kill(server, how)
    until(lambda: not alive(server), 5)
    assert all(alive(job) for job in jobs)
    (run.root / "go").touch()
    run.ends(0)
    assert (run.root / "later.done").exists()
