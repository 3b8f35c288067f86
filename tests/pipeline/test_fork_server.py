"""A job in a process that the server forked is the job in a process of its own, only sooner."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.pipeline.engine import fork_server
from fu.pipeline.provenance.digest import ROOT
from tests.data.files import arrays_of
from tests.workflow.project import until

pytestmark = pytest.mark.whole

KILLED = "the job's process was killed; if memory ran out, use fewer CORES."
JOB = """
import json, os, signal, sys, time
from pathlib import Path

def about():
    loaded = [name for name in sys.modules if name in ("torch", "pandas") or name.split(".")[0] == "fu"]
    return {"pid": os.getpid(), "parent": os.getppid(), "loaded": loaded, "argv": sys.argv, "folder": os.getcwd(),
            "environment": dict(os.environ)}

def nothing():
    print("done")

def both():
    print("one")
    print("other", file=sys.stderr)

def fail():
    print("so far")
    raise KeyError("lost")

def load():
    import torch
    from fu.data import clients
    from fu.data.dataset import about
    x, y = clients._samples(Path("digits.npz"), "digits", about("digits"), torch.device("cpu"))
    print(len(clients.READ), int(y.sum()), round(float(x.sum())))

def load_and_wait():
    load()
    Path("read").touch()
    while not Path("go").exists():
        time.sleep(.01)

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def last():
    Path("pid").write_text(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["about", *_]:
            print(json.dumps(about()))
        case ["exit", status]:
            print("ends")
            sys.exit(json.loads(status))
        case [name] | ["--certificate", _, name]:
            globals()[name]()
"""


@dataclass
class Place:
    """Where jobs run: with a server, or without one."""

    folder: Path  # holds job.py
    environment: dict[str, str] = field(default_factory=dict)

    def start(
        self, *arguments: str, module: str = "job", cwd: Path | None = None, **more: str
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "fu.pipeline.engine.fork_server", module, *arguments],
            cwd=cwd or self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{self.folder}:{ROOT}", **self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, module: str = "job", cwd: Path | None = None, **more: str) -> tuple[int, str, str]:
        """Return status, standard output and standard error."""
        process = self.start(*arguments, module=module, cwd=cwd, **more)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


def alive(pid: int) -> bool:
    """Whether a process still runs; one that ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def last(pids: Path) -> int:
    """Wait until the job `last` runs, which writes its number into a folder, and return that."""
    file = pids / "pid"
    until(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "job.py").write_text(JOB)
    return Place(folder)


@dataclass
class Served(Place):
    """A place with a server."""

    server: int = 0


@pytest.fixture(scope="module")
def served(cold: Place) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{cold.folder}:{ROOT}")
        patch.setenv("OF_THE_SERVER", "1")
        patch.setenv(fork_server.SOCKET, "")  # so that its older value comes back
        patch.delenv("SLURM_JOB_ID", raising=False)  # nor do the clients see it
        patch.setattr(fork_server, "_servers", [])
        fork_server.start()
        server = fork_server._servers[0]
        assert isinstance(server, subprocess.Popen)
        with server:  # closes its standard input and waits
            place = Served(cold.folder, {fork_server.SOCKET: os.environ[fork_server.SOCKET]}, server.pid)
            until(lambda: json.loads(place.run("about")[1])["parent"] == server.pid)  # it listens
            yield place
        assert server.returncode == 0


@pytest.fixture(params=["served", "cold"])
def place(request: pytest.FixtureRequest) -> Place:
    """Both: what a job does must not depend on it."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def snakemake() -> "Iterator[subprocess.Popen[bytes]]":
    """A process that stands for Snakemake's."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def announced(pid: int, started: str | None = None) -> dict[str, Any]:
    return {fork_server.RUN: f"{pid} {started or fork_server._started(pid)}"}


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["both"], (0, "one\n", "other\n")),
        (["exit", "0"], (0, "ends\n", "")),
        (["exit", "-1"], (255, "ends\n", "")),
        (["exit", '"no file."'], (1, "ends\n", "no file.\n")),
    ],
)
def test_a_job_prints_and_ends_as_a_process_of_its_own(
    place: Place, words: list[str], ends: tuple[int, str, str]
) -> None:
    assert place.run(*words) == ends


def test_an_error_that_nobody_caught_is_shown_whole(place: Place) -> None:
    status, out, err = place.run("fail")
    assert (status, out) == (1, "so far\n")
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith("KeyError: 'lost'\n")
    status, out, err = place.run(module="no_such_job")
    assert (status, out, "no_such_job" in err) == (1, "", True)


def test_a_job_sees_the_folder_the_arguments_and_the_environment_of_its_client_whatever_their_bytes(
    place: Place, tmp_path: Path, snakemake: "subprocess.Popen[bytes]"
) -> None:
    values: dict[str, Any] = {"EMPTY": "", "LINES": "one\ntwo\n", "EQUAL": "=ä=", "BYTES": os.fsdecode(b"\xff\xe4")}
    words = ["about", "--spec", '{"a": "ä b"}', values["BYTES"], "\n", "", "$HOME", *["x" * 100_000] * 5]
    status, out, err = place.run(*words, cwd=tmp_path, **values, **announced(snakemake.pid))
    seen = json.loads(out)
    assert (status, err) == (0, "")
    assert (seen["folder"], seen["argv"][1:]) == (str(tmp_path), words)
    assert values.items() <= seen["environment"].items()
    # A job's own processes ask nobody.
    assert not {"OF_THE_SERVER", fork_server.SOCKET, fork_server.RUN} & seen["environment"].keys()


@pytest.mark.parametrize(
    ("given", "spins"), [({}, fork_server.SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)]
)
def test_threads_that_wait_soon_sleep_unless_a_person_sets_otherwise(
    cold: Place, given: dict[str, Any], spins: str | None
) -> None:
    seen = json.loads(cold.run("about", **given)[1])
    assert seen["environment"].get("GOMP_SPINCOUNT") == spins


def test_with_a_server_a_job_is_its_child_and_finds_what_most_jobs_need_imported(served: Served) -> None:
    processes = [served.start("about") for _ in range(3)]
    found = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert {seen["parent"] for seen in found} == {served.server}
    assert len({seen["pid"] for seen in found} | {process.pid for process in processes}) == 6
    for seen in found:
        assert {"torch", "pandas", *fork_server.OWN} <= set(seen["loaded"])
        assert "fu.pipeline.plan.plan" not in seen["loaded"]


def test_a_job_shares_the_data_set_that_one_before_it_read(served: Served, tmp_path: Path) -> None:
    arrays = arrays_of("digits")
    for value in (0, 1):  # another archive at the same place
        np.savez(tmp_path / "digits.npz", allow_pickle=False, **{**arrays, "x_train": arrays["x_train"] + value})
        first = served.run("load", cwd=tmp_path)[1].split()
        assert first[0] == "1"  # read by itself
        until(lambda: served.run("load", cwd=tmp_path)[1].split()[0] == "0")
        assert served.run("load", cwd=tmp_path)[1].split()[1:] == first[1:]
    (tmp_path / "digits.npz").write_bytes(b"no archive")
    for _ in range(2):
        assert served.run("load", cwd=tmp_path)[0] == 1
    assert served.run("nothing") == (0, "done\n", "")


def test_what_a_server_imports_does_not_start_cuda_which_no_fork_could_use() -> None:
    program = (
        "import importlib, torch.cuda\n"
        "from fu.pipeline.engine.fork_server import LIBRARIES, OWN\n"
        "def started(): raise AssertionError\n"
        "torch.cuda._lazy_init = torch.cuda.is_available = torch.cuda.device_count = started\n"
        "for library in (*LIBRARIES, *OWN): importlib.import_module(library)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_without_a_server_of_its_environment_and_allocation_a_job_runs_in_the_clients_process(served: Served) -> None:
    own = served.environment[fork_server.SOCKET]
    for environment in (
        {fork_server.SOCKET: ""},
        {fork_server.SOCKET: own.replace("fu-", "gone-", 1)},
        {fork_server.SOCKET: own.replace(sys.prefix, "/other", 1)},
        {fork_server.SOCKET: own, "SLURM_JOB_ID": "7"},
    ):
        process = Place(served.folder, environment).start("about")
        seen = json.loads(process.communicate(timeout=300)[0])
        assert (seen["pid"], seen["parent"]) == (process.pid, os.getpid())
        assert "torch" not in seen["loaded"]


def test_another_user_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert fork_server._is_own(one)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not fork_server._is_own(one)


# ---- how jobs end; tests/workflow/test_processes.py ends each process of a run ---------------------------------------


@pytest.mark.parametrize("waited_for", [True, False])
def test_a_job_ends_with_the_process_that_was_announced(
    place: Place, tmp_path: Path, snakemake: "subprocess.Popen[bytes]", waited_for: bool
) -> None:
    client = place.start("last", cwd=tmp_path, **announced(snakemake.pid))
    job = last(tmp_path)
    time.sleep(2 * fork_server.SECONDS)
    assert alive(job)
    snakemake.kill()
    if waited_for:  # else its number stays taken
        snakemake.wait()
    until(lambda: not alive(job) and not alive(client.pid), seconds=5)
    assert client.wait() != 0


def test_a_later_process_of_the_same_number_is_another_one(place: Place, snakemake: "subprocess.Popen[bytes]") -> None:
    assert place.run("last", **announced(snakemake.pid, started="1"))[0] == 1


def test_a_job_that_was_killed_is_one_sentence(served: Served) -> None:
    assert served.run("kill") == (1, "", f"error: job: {KILLED}\n")
    assert served.run("--certificate", "a/b.made.json", "kill") == (1, "", f"error: a/b: {KILLED}\n")
    assert served.run("nothing") == (0, "done\n", "")


Bare = tuple[Place, "subprocess.Popen[str]"]


@pytest.fixture
def bare(cold: Place) -> Iterator[Bare]:
    """A server without libraries, and the place that it serves."""
    name = f"fu-test-{os.getpid()}"
    none = "it.LIBRARIES = it.OWN = ()"
    program = f"import sys; from fu.pipeline.engine import fork_server as it; {none}; it.serve(sys.argv[1])"
    with subprocess.Popen(
        [sys.executable, "-c", program, name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{cold.folder}:{ROOT}"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        place = Place(cold.folder, {fork_server.SOCKET: os.pathsep.join([name, sys.prefix, ""])})
        until(lambda: json.loads(place.run("about")[1])["parent"] == server.pid)
        yield place, server
        server.kill()


def test_the_server_ends_its_jobs_when_its_standard_input_closes(bare: Bare, tmp_path: Path) -> None:
    place, server = bare
    client = place.start("last", cwd=tmp_path)
    job = last(tmp_path)
    _, err = server.communicate(timeout=5)  # closes it
    until(lambda: not alive(job), seconds=0.4)  # before anybody looks whether Snakemake is there
    assert (server.returncode, err) == (0, "")
    assert client.communicate(timeout=5)[1] == f"error: job: {KILLED}\n"
    assert client.returncode == 1


def test_the_server_survives_clients_that_were_killed_and_waits_for_its_jobs(bare: Bare) -> None:
    place, server = bare
    name = place.environment[fork_server.SOCKET].split(os.pathsep)[0]
    for sent in (b"", (100).to_bytes(8, "big"), (100).to_bytes(8, "big") + b"half"):
        for answered in (False, True):  # where an answer is left unread, the server's end is reset
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(fork_server._address(name))
                connection.sendall(sent)
                if answered:
                    connection.recv(1, socket.MSG_PEEK)
    assert place.run("nothing") == (0, "done\n", "")
    until(lambda: not Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(), seconds=5)
    assert server.communicate(timeout=5)[1] == ""
