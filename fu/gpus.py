"""GPUs that jobs share: each takes a slot, a lock that the system releases when the job ends, however it ends.

No result depends on it: on which of several GPUs of a kind a job computes changes no byte.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TextIO

SHARED = "FU_GPUS"  # tells jobs how many may share a GPU, and the names of all: "2 GPU-1a GPU-2b"
VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS = 0.5  # between two looks for a free slot
GPU = re.compile(r"GPU (\d+): (.+) \(UUID: ([^)]+)\)")  # of `nvidia-smi -L`, with the instances that MIG makes of it
INSTANCE = re.compile(r"\s+MIG .*?(\d+)gb.*\(UUID: ([^)]+)\)")
_held: list[TextIO] = []  # locks are lost when their files are closed


class Gpu(NamedTuple):
    """A GPU, or an instance that MIG makes of one: the name by which CUDA knows it, what it is, and its memory."""

    name: str
    kind: str
    memory_mb: int
    place: int


def found() -> list[Gpu]:
    """Return the GPUs that `nvidia-smi` lists, but for those that CUDA_VISIBLE_DEVICES leaves out, in its order.

    Numbers are those of `nvidia-smi`, as CUDA's are with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    listed = list(_listed(_said("-L"), _said("--query-gpu=memory.total", "--format=csv,noheader,nounits")))
    if (visible := os.environ.get(VISIBLE)) is None:
        return listed
    chosen = []
    for word in filter(None, map(str.strip, visible.split(","))):
        known = [gpu for gpu in listed if (str(gpu.place) == word if word.isdigit() else gpu.name.startswith(word))]
        if not known:  # CUDA sees nothing behind a name that is wrong
            break
        chosen.append(known[0])
    return chosen


def driver() -> str:
    """Return the version of the driver."""
    return _said("--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0]


def _said(*options: str) -> str:
    tool = shutil.which("nvidia-smi")
    done = tool and subprocess.run([tool, *options], capture_output=True, text=True, check=False)
    return done.stdout if done and done.returncode == 0 else ""


def _listed(names: str, memory: str) -> Iterable[Gpu]:
    """Yield the GPUs of `nvidia-smi -L`; in place of one that MIG shares out, its instances."""
    sizes = [int(line) if line.strip().isdigit() else 0 for line in memory.splitlines()]
    whole: Gpu | None = None
    for line in names.splitlines():
        if gpu := GPU.match(line):
            if whole:
                yield whole
            place = int(gpu[1])
            kind, whole = gpu[2], Gpu(gpu[3], gpu[2], sizes[place] if place < len(sizes) else 0, place)
        elif instance := INSTANCE.match(line):
            yield Gpu(instance[2], f"{kind} (MIG)", 1000 * int(instance[1]), place)
            whole = None
    if whole:
        yield whole


def share(gpus: Iterable[Gpu], each: int) -> None:
    """Tell all jobs that this process starts which GPUs they share, and how many jobs may share one."""
    os.environ[SHARED] = " ".join([str(each), *(gpu.name for gpu in gpus)])


def take() -> None:
    """Take a slot of a GPU and see that alone from now on; wait while there is none. Before CUDA is first used."""
    each, names = _shared()
    if not names or _held:
        return
    slots = [(name, slot) for slot in range(each) for name in names]  # one job on each GPU before two on one
    said = False
    while True:
        for name, slot in slots:
            if file := _locked(name, slot):
                _held.append(file)
                os.environ[VISIBLE] = name
                return
        if not said:
            print("All GPUs are in use; waiting for a free one.", file=sys.stderr)
            said = True
        time.sleep(SECONDS)


def alone() -> bool:
    """Take all slots of the GPU of this process, and wait until they are free; False where it has them or no GPU."""
    each, names = _shared()
    if not names or not _held or len(_held) >= each:
        return False
    while _held:  # else two jobs would wait for each other
        _held.pop().close()
    for slot in range(each):
        while not (file := _locked(os.environ[VISIBLE], slot)):
            time.sleep(SECONDS)
        _held.append(file)
    return True


def _shared() -> tuple[int, list[str]]:
    each, *names = os.environ.get(SHARED, "0").split()
    return int(each), names


def _locked(name: str, slot: int) -> TextIO | None:
    """Return the locked file of a slot, or None where another process holds it; of one user, whatever the folder."""
    folder = Path(tempfile.gettempdir()) / f"fu-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = (folder / f"{name.replace('/', '-')}-{slot}").open("a", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
