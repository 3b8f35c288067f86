"""A job in a process that the server forked is the job in a process of its own, only sooner."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fu.pipeline import fork_server
from fu.pipeline.digest import ROOT

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
        case [name]:
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
            [sys.executable, "-m", "fu.pipeline.fork_server", module, *arguments],
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


def until(true: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


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
        path = Path(os.environ[fork_server.SOCKET].split(os.pathsep)[0])
        server = fork_server._servers[0]
        assert isinstance(server, subprocess.Popen)
        with server:  # closes its standard input and waits
            until(path.exists)
            place = Served(cold.folder, {fork_server.SOCKET: os.environ[fork_server.SOCKET]}, server.pid)
            until(lambda: json.loads(place.run("about")[1])["parent"] == server.pid)  # it listens
            yield place
        assert server.returncode == 0
        assert not path.parent.exists()


@pytest.fixture(params=["served", "cold"])
def place(request: pytest.FixtureRequest) -> Place:
    """Both: what a job does must not depend on it."""
    found: Place = request.getfixturevalue(request.param)
    return found


def test_a_job_prints_to_its_own_output_and_error(place: Place) -> None:
    assert place.run("nothing") == (0, "done\n", "")
    assert place.run("both") == (0, "one\n", "other\n")


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ("0", 0, ""),
        ("3", 3, ""),
        ("255", 255, ""),
        ("-1", 255, ""),
        ("null", 0, ""),
        ("true", 1, ""),
        ('"no such file."', 1, "no such file.\n"),
    ],
)
def test_a_job_ends_with_its_exit_status_and_its_last_words(place: Place, given: str, status: int, text: str) -> None:
    assert place.run("exit", given) == (status, "ends\n", text)


def test_an_error_that_nobody_caught_is_shown_whole(place: Place) -> None:
    status, out, err = place.run("fail")
    assert (status, out) == (1, "so far\n")
    assert err.startswith("Traceback (most recent call last):\n")
    assert "job.py" in err
    assert err.endswith("KeyError: 'lost'\n")


def test_a_module_that_is_not_there_is_an_error(place: Place) -> None:
    status, out, err = place.run(module="no_such_job")
    assert (status, out) == (1, "")
    assert "no_such_job" in err


def test_a_job_sees_the_folder_the_arguments_and_the_environment_of_its_client(place: Place, tmp_path: Path) -> None:
    arguments = ("about", "--spec", '{"a": [1, "ä b"]}', "", "$HOME")
    status, out, err = place.run(*arguments, cwd=tmp_path, OF_THE_CLIENT="ä = 1")
    seen = json.loads(out)
    assert (status, err) == (0, "")
    assert seen["folder"] == str(tmp_path)
    assert seen["argv"][1:] == list(arguments)
    assert seen["environment"]["OF_THE_CLIENT"] == "ä = 1"
    assert "OF_THE_SERVER" not in seen["environment"]
    assert fork_server.SOCKET not in seen["environment"]  # a job's own processes ask nobody


def test_values_of_any_bytes_arrive_as_they_are(place: Place, tmp_path: Path) -> None:
    values = {"EMPTY": "", "LINES": "one\ntwo\n", "EQUAL": "=a=", "BYTES": os.fsdecode(b"\xff\xe4")}
    seen = json.loads(place.run("about", "--x", values["BYTES"], "\n", "", cwd=tmp_path, **values)[1])
    assert seen["argv"][1:] == ["about", "--x", values["BYTES"], "\n", ""]
    assert {name: seen["environment"][name] for name in values} == values


def test_long_arguments_arrive_whole(place: Place) -> None:
    long = ["x" * 100_000] * 5
    assert json.loads(place.run("about", *long)[1])["argv"][1:] == ["about", *long]


def test_with_a_server_a_job_is_its_child_and_finds_the_libraries_imported_and_nothing_of_this_package(
    served: Served,
) -> None:
    processes = [served.start("about") for _ in range(3)]
    found = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert {seen["parent"] for seen in found} == {served.server}
    assert len({seen["pid"] for seen in found} | {process.pid for process in processes}) == 6
    for seen in found:
        assert {"torch", "pandas"} <= set(seen["loaded"])
        assert {name for name in seen["loaded"] if name.startswith("fu")} <= {"fu", "fu.pipeline"}


def test_without_a_server_a_job_runs_in_the_clients_process(cold: Place, tmp_path: Path) -> None:
    for socket in (
        {},
        {fork_server.SOCKET: ""},
        {fork_server.SOCKET: os.pathsep.join([str(tmp_path / "gone"), sys.prefix, ""])},
    ):
        process = Place(cold.folder, socket).start("about")
        seen = json.loads(process.communicate(timeout=300)[0])
        assert (seen["pid"], seen["parent"]) == (process.pid, os.getpid())
        assert "torch" not in seen["loaded"]


def test_a_job_of_another_environment_or_allocation_runs_in_the_clients_process(served: Served) -> None:
    own = served.environment[fork_server.SOCKET]
    others: list[dict[str, str]] = [{"SLURM_JOB_ID": "7"}, {fork_server.SOCKET: own.replace(sys.prefix, "/other", 1)}]
    for other in others:
        process = Place(served.folder, {fork_server.SOCKET: own, **other}).start("about")
        seen = json.loads(process.communicate(timeout=300)[0])
        assert (seen["pid"], seen["parent"]) == (process.pid, os.getpid())


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Where a shell started the tests with `&`, they ignore SIGINT, and so would the processes they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_job_ends_with_its_client(served: Served, tmp_path: Path, how: signal.Signals) -> None:
    client = served.start("last", cwd=tmp_path)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    job = int((tmp_path / "pid").read_text())
    assert alive(job)
    assert job != client.pid
    client.send_signal(how)
    client.communicate(timeout=300)
    assert client.returncode != 0
    until(lambda: not alive(job))
    assert served.run("nothing") == (0, "done\n", "")  # the server goes on


def test_a_killed_job_is_told(served: Served) -> None:
    assert served.run("kill") == (1, "", "error: the job's process was killed.\n")
    assert served.run("nothing") == (0, "done\n", "")


def test_the_libraries_can_be_imported_and_are_none_of_this_package() -> None:
    for name in fork_server.LIBRARIES:
        assert name.split(".")[0] != "fu"
        assert importlib.util.find_spec(name), name


def a_server_without_libraries(folder: Path) -> "subprocess.Popen[str]":
    program = "import sys; from fu.pipeline import fork_server as it; it.LIBRARIES = (); it.serve(sys.argv[1])"
    server = subprocess.Popen(
        [sys.executable, "-c", program, str(folder / "socket")], cwd=ROOT, stdin=subprocess.PIPE, text=True
    )
    until((folder / "socket").exists)
    return server


def test_the_server_ends_when_its_standard_input_closes_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "fu-server"
    folder.mkdir()
    server = a_server_without_libraries(folder)
    assert server.poll() is None
    server.communicate(timeout=300)  # closes it
    assert server.returncode == 0
    assert not folder.exists()


def test_an_interrupt_from_the_keyboard_leaves_the_server_to_whom_it_serves(tmp_path: Path) -> None:
    folder = tmp_path / "fu-server"
    folder.mkdir()
    server = a_server_without_libraries(folder)
    server.send_signal(signal.SIGINT)  # the terminal sends it to all: jobs end with their clients
    time.sleep(0.1)
    assert server.poll() is None
    server.communicate(timeout=300)
    assert server.returncode == 0
