"""Run a module in a process that has imported torch already: `python -m fu.pipeline.fork_server MODULE ARGUMENT ...`.

Importing torch takes longer than most jobs of a small run. Snakemake's process starts one server, which imports the
libraries (nothing of `fu`) and forks for every job; where there is no server, the module simply runs here. Each side
imports only what it needs, because a client is started for every job.
"""

import os
import socket
import sys

SOCKET = "FU_FORK_SERVER"  # names the server's socket to the jobs
# Some of these the others would import on first use, in every job again.
LIBRARIES = (
    *("torch.func", "safetensors.torch", "pydantic.main", "pydantic.types", "pydantic.functional_validators"),
    *("pydantic.json_schema", "pydantic._internal._generate_schema", "resource"),
    *("pandas", "seaborn", "tabulate", "matplotlib.figure", "matplotlib.backends.backend_pdf"),
    *("matplotlib.backends.backend_agg", "fontTools.subset", "torch._dynamo"),
)
_servers: list[object] = []  # kept, because a server ends when its standard input is closed


def start() -> None:
    """Start a server that ends with this process, however that ends."""
    import subprocess
    import tempfile

    path = f"{tempfile.mkdtemp(prefix='fu-')}/socket"
    os.environ[SOCKET] = os.pathsep.join([path, *_place()])
    command = [sys.executable, "-m", "fu.pipeline.fork_server", "--serve", path]
    _servers.append(subprocess.Popen(command, stdin=subprocess.PIPE))


def _place() -> list[str]:
    """What a job and its server must share: the installed libraries, and the allocation on a cluster."""
    return [sys.prefix, os.environ.get("SLURM_JOB_ID", "")]


def run(module: str, arguments: list[str]) -> int:
    """Have the server run the module and return its exit status; run it here where there is no server."""
    path, *place = os.environ.pop(SOCKET, "").split(os.pathsep)
    environment = [part for pair in os.environ.items() for part in pair]
    words = [os.getcwd(), str(len(environment)), *environment, module, *arguments]  # noqa: PTH109 (pathlib: 4 ms)
    message = os.fsencode("\0".join(words))
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            if place != _place():
                raise OSError("another environment")
            connection.connect(path)
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
        print("error: the job's process was killed.", file=sys.stderr)
        return 1
    return status[0]


def serve(path: str) -> None:
    """Import the libraries, then fork for every connection until standard input is closed."""
    import gc
    import importlib
    import select
    import shutil
    import signal
    from pathlib import Path

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1024)
        for name in LIBRARIES:
            importlib.import_module(name)
        importlib.import_module("pydantic").create_model("First")  # looks for plug-ins of pydantic, once
        gc.freeze()  # else the collector of every job would copy the server's memory
        while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
            if ready:
                connection, _ = listener.accept()
                if os.fork() == 0:
                    listener.close()
                    _job(connection)
                connection.close()
    shutil.rmtree(Path(path).parent)


def _job(connection: socket.socket) -> None:
    """Run one job in this forked process and send its exit status."""
    import signal
    import threading

    for which in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(which, signal.default_int_handler if which == signal.SIGINT else signal.SIG_DFL)
    header, files, _, _ = socket.recv_fds(connection, 8, 2)
    length, message = int.from_bytes(header, "big"), b""
    while len(message) < length and (piece := connection.recv(length - len(message))):
        message += piece
    for target, file in enumerate(files, start=1):
        os.dup2(file, target)
    folder, number, *rest = os.fsdecode(message).split("\0")
    environment, (module, *arguments) = rest[: int(number)], rest[int(number) :]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(zip(environment[::2], environment[1::2], strict=True))

    def end_with_the_client() -> None:
        if not connection.recv(1):
            os.kill(os.getpid(), signal.SIGTERM)

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
    except BaseException:
        import traceback

        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        sys.exit(run(sys.argv[1], sys.argv[2:]))
