"""Which processes are at work in a folder, whoever asks."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fu.pipeline.cli import show
from fu.pipeline.engine import runs
from tests.mistakes import sentence

RUN = "from fu.pipeline.engine import runs; runs.begin({}); print(); input()"


def test_a_run_is_known_as_long_as_it_lives_and_several_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert runs.alive() == []
    processes = [
        subprocess.Popen([sys.executable, "-c", RUN.format(name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in ("", "", "runs.SUBMITS")
    ]
    for process in processes:
        assert process.stdout
        process.stdout.readline()
    alive = {pid: f"process {pid} on {socket.gethostname()}" for pid in (process.pid for process in processes)}
    for process in processes:
        assert sorted(runs.alive()) == sorted(alive.values())
        at_work = " and ".join(runs.alive())
        assert sentence(lambda: show.lines_of("unlock", {})) == (
            f"a run is active in this folder ({at_work}); wait until it ends, or kill it."
        )
        process.kill()
        process.communicate()
        del alive[process.pid]
    assert runs.alive() == []
    assert show.lines_of("unlock", {}) == ([], False)


def test_a_run_that_ends_leaves_no_file(tmp_path: Path) -> None:
    code = "from fu.pipeline.engine import runs; runs.begin(); assert len([*runs.RUNS.iterdir()]) == 1"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert list((tmp_path / runs.RUNS).iterdir()) == []
