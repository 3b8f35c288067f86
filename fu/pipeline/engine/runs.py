"""Which processes make results in a folder: each holds a lock while it is alive, on whatever machine."""

import atexit
import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from fu.errors import UserError
from fu.pipeline.provenance.certificate import holder, sign

RUNS = Path(".snakemake/runs")
SUBMITS = "submits"  # the name of the one that submits jobs to a cluster
_held: list[TextIO] = []  # locks are lost when their files are closed


def begin(name: str = "") -> None:
    """Be known as a run as long as this process lives; `UserError` where another one lives under this name."""
    path = RUNS.absolute() / (name or f"{socket.gethostname()}-{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise UserError(
            f"{file.read()} already submits jobs from this folder; wait until it ends, or kill it."
        ) from None
    _held.append(file)
    sign(file)
    if not name:
        atexit.register(path.unlink, missing_ok=True)


def alive() -> list[str]:
    """Return the processes that make results in this folder."""
    return [process for path in sorted(RUNS.glob("*")) if (process := holder(path))]
