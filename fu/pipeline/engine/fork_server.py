"""Run a module in a process that has already imported torch: `python -m fu.pipeline.engine.fork_server MODULE ...`.

`MODULE @FILE`: with the arguments of a file, one after another with null bytes between them.

Importing torch takes longer than most jobs of a small run. Snakemake's process (on a cluster, the process of a pack of
jobs) starts one server, which imports the libraries and the common modules of `fu` and forks for every job. Without a
server, or if a file of `fu` was edited or a library replaced since, the module runs in this process. The server also
keeps recently read data sets, which its jobs share. Each side imports only what it needs, because a client is started
for every job.

No job outlives its run. A client, or a module that runs in this process, ends when its shell or Snakemake's process is
gone; a forked job ends with its client; the server and its jobs end when Snakemake's process closes the server's
standard input, which the system does for a killed process.
"""

import os
import socket
import sys

from fu import sources

SOCKET = "FU_FORK_SERVER"  # names the server's socket to the jobs
RUN = "FU_RUN"  # names Snakemake's process to them
YES, NO = b"y", b"n"  # whether the server takes a job
SECONDS = 0.5  # between two checks that it is still alive
# Some of these would otherwise be imported on first use, again in every job.
LIBRARIES = (
    *("torch.func", "safetensors.torch", "pydantic.main", "pydantic.types", "pydantic.functional_validators"),
    *("pydantic.json_schema", "pydantic._internal._generate_schema", "resource"),
    *("pandas", "seaborn", "tabulate", "matplotlib.figure", "matplotlib.backends.backend_pdf"),
    *("matplotlib.backends.backend_agg", "fontTools.subset", "torch._dynamo"),
    *("importlib.metadata", "csv", "zipfile", "argparse", "psutil"),
)
# What these import is all that most jobs import, but for stages and plug-ins.
OWN = (
    *("fu.pipeline.stages.compute", "fu.pipeline.stages.frames", "fu.data.sharing", "fu.evaluation.measure"),
    *("fu.evaluation.predictions", "fu.artefacts.drawing", "fu.artefacts.result", "fu.artefacts.provenance"),
)
# How often a waiting thread spins before it sleeps: about 0.5 ms. With libgomp's default of 300,000, the threads of a
# two-thread job next to a busy core spin for each other: a step takes 16 times the CPU. Read when torch is loaded.
SPINS = "10000"
# With these, torch, oneDNN, MKL, OpenBLAS and numpy compute the same bytes on every x86-64 CPU with AVX2 (MKL's other
# branches differ between AMD and Intel). Each library reads its own when it is loaded or first used.
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
_servers: list[object] = []  # kept, because a server ends when its standard input is closed


def announce() -> None:
    """Make every job that this process will start end when this process does."""
    os.environ[RUN] = f"{os.getpid()} {_started(os.getpid())}"


def be_portable() -> None:
    """Restrict the jobs that this process starts to instructions that all x86-64 CPUs with AVX2 share."""
    if os.uname().machine == "x86_64":  # elsewhere the libraries warn of values that they do not know
        os.environ.update(PORTABLE)


def start(scratch: "str | os.PathLike[str]" = "") -> None:
    """Start a server that ends with this process, however that ends, and then removes its temporary folder."""
    import subprocess

    name = f"fu-{os.urandom(8).hex()}"
    os.environ[SOCKET] = os.pathsep.join([name, *_place()])
    command = [sys.executable, "-m", "fu.pipeline.engine.fork_server", "--serve", name, os.fspath(scratch)]
    _servers.append(subprocess.Popen(command, stdin=subprocess.PIPE))


def _place() -> list[str]:
    """What a job and its server must share: the installed libraries, and the cluster allocation."""
    return [sys.prefix, os.environ.get("SLURM_JOB_ID", "")]


def _address(name: str) -> str:
    """Return an abstract socket: no TMPDIR is too long for it, and no kill leaves a file."""
    return f"\0{name}"


def _is_own(connection: socket.socket) -> bool:
    """Whether the peer is the same user: an abstract socket has no permissions."""
    process_user_group = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return process_user_group[4:8] == os.geteuid().to_bytes(4, sys.byteorder)


def _started(pid: int) -> str | None:
    """Return when a process started, which tells it from a later one with the same PID; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib: 4 ms)
            state, *more = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in b"ZX" else more[18].decode()


def _end_with_the_run(announced: str) -> None:
    """Watch, in a thread, the announced process and the parent process; exit when either ends."""
    import _thread  # threading: .7 ms
    import time

    (pid, started), parent = announced.split(), os.getppid()

    def watch() -> None:
        while os.getppid() == parent and _started(int(pid)) == started:
            time.sleep(SECONDS)
        os._exit(1)

    _thread.start_new_thread(watch, ())


def arguments_of(arguments: list[str]) -> list[str]:
    """Return the arguments, read from a file if `@FILE` is given instead."""
    if not arguments or not arguments[0].startswith("@"):
        return arguments
    path = arguments[0][1:]
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib: 4 ms)
            return os.fsdecode(file.read()).split("\0")
    except OSError as error:
        sys.exit(f"error: {path}: the job's arguments cannot be read: {error.strerror}; start the run again.")


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
            if not _is_own(connection) or connection.recv(1) != YES:
                raise OSError("another user's, or of other code")
            socket.send_fds(connection, [len(message).to_bytes(8, "big")], [1, 2])
            connection.sendall(message)
        except OSError:  # no server, one on another machine, one with other code, or one that failed before
            connection.close()
            return _run_module(module, arguments)
        try:
            status = connection.recv(1)
        except OSError:
            status = b""
    if not status:
        made = arguments[arguments.index("--certificate") + 1] if "--certificate" in arguments else module
        name = made.removesuffix(".made.json")
        print(f"error: {name}: the job's process was killed; if memory ran out, use fewer CORES.", file=sys.stderr)
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

    # Only Snakemake's process ends the server: a signal to all processes of a terminal or cluster job ends that, too.
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [which for which in ends if signal.signal(which, signal.SIG_IGN) != signal.SIG_IGN]
    jobs: set[int] = set()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(_address(name))
        listener.listen(1024)
        digest = importlib.import_module("fu.pipeline.provenance.digest")  # before the libraries
        for library in (*LIBRARIES, *OWN):
            if not select.select([sys.stdin], [], [], 0)[0]:
                importlib.import_module(library)
        importlib.import_module("pydantic").create_model("First")  # makes pydantic look for its plug-ins, once
        digest.look_up_versions()
        gc.freeze()  # else garbage collection in every job would copy the server's memory
        read_by_jobs, reports = os.pipe()
        waited_for = [listener, sys.stdin, read_by_jobs]
        while sys.stdin not in (ready := select.select(waited_for, [], [], 1 if jobs else None)[0]):
            jobs -= {job for job in jobs if os.waitpid(job, os.WNOHANG)[0]}
            if read_by_jobs in ready:
                _keep(os.read(read_by_jobs, 1 << 16))
            if listener in ready:
                connection, _ = listener.accept()
                if _is_own(connection):
                    job = os.fork()
                    if job == 0:
                        listener.close()
                        for which in heeded:
                            signal.signal(which, signal.SIG_DFL)  # also SIGINT, which would show a traceback
                        _job(connection, reports)
                    jobs.add(job)
                connection.close()
    for job in jobs:
        os.kill(job, signal.SIGKILL)
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)


def _keep(reported: bytes) -> None:
    """Keep the data set that a job read last (archive, name); if it cannot be read, later jobs report it."""
    import contextlib
    from pathlib import Path

    import torch

    from fu.data import clients

    torch.set_num_threads(1)  # else threads would start, which no fork has
    with contextlib.suppress(Exception):
        archive, dataset = os.fsdecode(reported).splitlines()[-1].split("\0")
        clients.keep(Path(archive), dataset)


def _job(connection: socket.socket, reports: int) -> None:
    """Run one job in this forked process, report which data set it read, and send its exit status."""
    import threading

    from fu.pipeline.provenance import digest

    replaced = digest.metadata() != digest.METADATA or sources.edited()
    try:
        connection.sendall(NO if replaced else YES)
        if replaced:
            os._exit(0)
        header, files, _, _ = socket.recv_fds(connection, 8, 2)
        length, message = int.from_bytes(header, "big"), b""
        while len(message) < length and (piece := connection.recv(length - len(message))):
            message += piece
    except OSError:  # the client was killed, with an answer that it had not read
        os._exit(1)
    if len(message) < length or not length:  # it was killed before it had sent what to run
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
            connection.recv(1)  # returns when the client is gone: it sends nothing more
        finally:
            os._exit(1)

    threading.Thread(target=end_with_the_client, daemon=True).start()
    status = _run_module(module, arguments) & 0xFF
    sys.stdout.flush()
    sys.stderr.flush()
    if read := getattr(sys.modules.get("fu.data.clients"), "READ", None):
        os.write(reports, os.fsencode("\0".join(read[-1]) + "\n"))
    connection.sendall(bytes([status]))
    os._exit(status)


def _run_module(module: str, arguments: list[str]) -> int:
    import runpy

    import fu.pipeline.provenance.digest  # noqa: F401 (notes which libraries are installed, before a stage imports some)

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
            sys.exit(run(sys.argv[1], arguments_of(sys.argv[2:])))
        except KeyboardInterrupt:
            sys.exit("error: interrupted.")
