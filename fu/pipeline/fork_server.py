"""Run a module in a process that has imported torch already: `python -m fu.pipeline.fork_server MODULE ARGUMENT ...`.

Importing torch takes longer than most jobs of a small run. Snakemake's process starts one server, which imports the
libraries (of `fu` what no result depends on) and forks for every job; where there is no server, the module simply runs
here. Each side imports only what it needs, because a client is started for every job.

No job outlives its run: a client, or the module that runs here, ends when the shell that started it or Snakemake's
process is gone, a forked job ends with its client, and the server and its jobs when Snakemake's process closes the
server's standard input, as the system does for a process that is killed.
"""

import os
import socket
import sys

SOCKET = "FU_FORK_SERVER"  # names the server's socket to the jobs
RUN = "FU_RUN"  # names Snakemake's process to them
SECONDS = 0.5  # between two looks whether it is still there
# Some of these the others would import on first use, in every job again.
LIBRARIES = (
    *("torch.func", "safetensors.torch", "pydantic.main", "pydantic.types", "pydantic.functional_validators"),
    *("pydantic.json_schema", "pydantic._internal._generate_schema", "resource"),
    *("pandas", "seaborn", "tabulate", "matplotlib.figure", "matplotlib.backends.backend_pdf"),
    *("matplotlib.backends.backend_agg", "fontTools.subset", "torch._dynamo"),
    *("importlib.metadata", "csv", "zipfile", "argparse"),
)
# Of `fu` what no result depends on (`UNCOUNTED` in digest.py), so that an edit in mid-run cannot be missed.
OWN = ("fu.pipeline.certificate", "fu.pipeline.digest")
# How often a waiting thread looks before it sleeps: some .5 ms. With libgomp's own 300,000 a job of two threads beside
# a busy core waits for itself, and a step takes 16 times the CPU. Read when torch is loaded.
SPINS = "10000"
_servers: list[object] = []  # kept, because a server ends when its standard input is closed


def announce() -> None:
    """Make every job that this process will start end when this process does."""
    os.environ[RUN] = f"{os.getpid()} {_started(os.getpid())}"


def start(scratch: "str | os.PathLike[str]" = "") -> None:
    """Start a server that ends with this process, however that ends, and then removes its temporary folder."""
    import subprocess
    import tempfile

    if sys.platform == "linux":  # a name without a file: no TMPDIR is too long for it, and no kill leaves a thing
        name = f"@fu-{os.urandom(8).hex()}"
    else:
        name = f"{tempfile.mkdtemp(prefix='fu-', dir='/tmp')}/socket"
    os.environ[SOCKET] = os.pathsep.join([name, *_place()])
    command = [sys.executable, "-m", "fu.pipeline.fork_server", "--serve", name, os.fspath(scratch)]
    _servers.append(subprocess.Popen(command, stdin=subprocess.PIPE))


def _place() -> list[str]:
    """What a job and its server must share: the installed libraries, and the allocation on a cluster."""
    return [sys.prefix, os.environ.get("SLURM_JOB_ID", "")]


def _address(name: str) -> str:
    return name.replace("@", "\0", 1) if name.startswith("@") else name


def _is_own(connection: socket.socket) -> bool:
    """Whether this user is at the other end: a name without a file has no permissions."""
    if sys.platform != "linux":
        return True
    process_user_group = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return process_user_group[4:8] == os.geteuid().to_bytes(4, sys.byteorder)


def _started(pid: int) -> str | None:
    """Return when a process started, which tells it from a later one of its number; None where it has ended."""
    if sys.platform != "linux":
        import psutil

        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else str(process.create_time())
        except psutil.NoSuchProcess:
            return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib: 4 ms)
            state, *more = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in b"ZX" else more[18].decode()


def _end_with_the_run(announced: str) -> None:
    """Watch, in a thread, the process that was announced and the one that started this; end when one of them ends."""
    import _thread  # threading: .7 ms
    import time

    (pid, started), parent = announced.split(), os.getppid()

    def watch() -> None:
        while os.getppid() == parent and _started(int(pid)) == started:
            time.sleep(SECONDS)
        os._exit(1)

    _thread.start_new_thread(watch, ())


def run(module: str, arguments: list[str]) -> int:
    """Have the server run the module and return its exit status; run it here where there is no server."""
    name, *place = os.environ.pop(SOCKET, "").split(os.pathsep)
    if announced := os.environ.pop(RUN, ""):
        _end_with_the_run(announced)
    environment = [part for pair in os.environ.items() for part in pair]
    words = [os.getcwd(), str(len(environment)), *environment, module, *arguments]  # noqa: PTH109 (pathlib: 4 ms)
    message = os.fsencode("\0".join(words))
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            if place != _place():
                raise OSError("another environment")
            connection.connect(_address(name))
            if not _is_own(connection):
                raise OSError("another user")
            socket.send_fds(connection, [len(message).to_bytes(8, "big")], [1, 2])
            connection.sendall(message)
        except OSError:  # no server, one of another machine, or one that failed before it took the job
            connection.close()
            return _run_module(module, arguments)
        try:
            status = connection.recv(1)
        except OSError:
            status = b""
    if not status:
        made = arguments[arguments.index("--certificate") + 1] if "--certificate" in arguments else module
        name = made.removesuffix(".made.json")
        print(f"error: {name}: the job's process was killed; where memory is short, use fewer CORES.", file=sys.stderr)
        return 1
    return status[0]


def serve(name: str, scratch: str = "") -> None:
    """Import the libraries, then fork for every connection until standard input is closed; then end all jobs.

    `scratch`: the temporary folder of the process that started this one, which a kill leaves behind.
    """
    import gc
    import importlib
    import select
    import shutil
    import signal
    from pathlib import Path

    # Only Snakemake's process ends the server: a signal to all of a terminal's or a cluster's processes ends that, too.
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [which for which in ends if signal.signal(which, signal.SIG_IGN) != signal.SIG_IGN]
    jobs: set[int] = set()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(_address(name))
        listener.listen(1024)
        for library in (*LIBRARIES, *OWN):
            if not select.select([sys.stdin], [], [], 0)[0]:
                importlib.import_module(library)
        importlib.import_module("pydantic").create_model("First")  # looks for plug-ins of pydantic, once
        if digest := sys.modules.get("fu.pipeline.digest"):
            digest.look_up_versions()
        gc.freeze()  # else the collector of every job would copy the server's memory
        while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [], 1 if jobs else None)[0]):
            jobs -= {job for job in jobs if os.waitpid(job, os.WNOHANG)[0]}
            if ready:
                connection, _ = listener.accept()
                if _is_own(connection):
                    job = os.fork()
                    if job == 0:
                        listener.close()
                        for which in heeded:
                            signal.signal(which, signal.SIG_DFL)  # also an interrupt, which else shows a traceback
                        _job(connection)
                    jobs.add(job)
                connection.close()
    for job in jobs:
        os.kill(job, signal.SIGKILL)
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    if not name.startswith("@"):
        shutil.rmtree(Path(name).parent)


def _job(connection: socket.socket) -> None:
    """Run one job in this forked process and send its exit status."""
    import threading

    header, files, _, _ = socket.recv_fds(connection, 8, 2)
    length, message = int.from_bytes(header, "big"), b""
    while len(message) < length and (piece := connection.recv(length - len(message))):
        message += piece
    if len(message) < length or not length:  # the client was killed before it had said what to run
        os._exit(1)
    for target, file in enumerate(files, start=1):
        os.dup2(file, target)
    folder, number, *rest = os.fsdecode(message).split("\0")
    environment, (module, *arguments) = rest[: int(number)], rest[int(number) :]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(zip(environment[::2], environment[1::2], strict=True))

    def end_with_the_client() -> None:
        try:
            connection.recv(1)  # returns when the client is gone, which sends no more
        finally:
            os._exit(1)

    threading.Thread(target=end_with_the_client, daemon=True).start()
    status = _run_module(module, arguments) & 0xFF
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status]))
    os._exit(status)


def _run_module(module: str, arguments: list[str]) -> int:
    import runpy

    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        import traceback

        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
    else:
        try:
            sys.exit(run(sys.argv[1], sys.argv[2:]))
        except KeyboardInterrupt:
            sys.exit("error: interrupted.")
