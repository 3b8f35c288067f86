"""A Slurm cluster: its settings (`cluster.yaml`), its limits, and jobs left over from a killed run."""

import math
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, field_validator

from fu.errors import UserError, nearest
from fu.pipeline.engine import runs
from fu.pipeline.engine.groups import LONGEST_S
from fu.pipeline.settings.papers import read_yaml, validate
from fu.types import Strict

FILE = "cluster.yaml"
PREFIX = "fu_"  # of the names of our jobs (profiles/slurm)
RETRIES = 2  # after a node failed, a job was cancelled, its memory or time was too short
ENDING_S = 120.0  # in which Slurm ends a cancelled job; it gives a job 30 s by default


class Cluster(Strict):
    """cluster.yaml: what jobs ask for beyond memory and time."""

    account: str | None = None
    partition: str | None = None
    constraint: str | None = None
    gpu_partition: str | None = None
    gpu_constraint: str | None = None
    gres: str | None = None
    pack_minutes: float = Field(LONGEST_S / 60, ge=0)

    @field_validator("account", "partition", "constraint", "gpu_partition", "gpu_constraint")
    @classmethod
    def _one_word(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"\S+", text):
            raise ValueError("must be a single word or null")
        return text

    @field_validator("gres")
    @classmethod
    def _of_a_gpu(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"gpu(:[A-Za-z][\w.]*)?(:\d+)?", text):
            raise ValueError("must look like gpu, gpu:2, gpu:a100 or gpu:a100:2, or be null")
        return text

    def resources(self, gpu: bool) -> dict[str, str | int]:
        """Return what a job asks for, with the names that the Slurm plug-in gives it."""
        resources = {
            "slurm_account": self.account,
            "slurm_partition": (gpu and self.gpu_partition) or self.partition,
            "constraint": (gpu and self.gpu_constraint) or self.constraint,
            "gres": self.gres if gpu else None,
            "gpu": 1 if gpu and not self.gres else None,
        }
        return {name: value for name, value in resources.items() if value is not None}

    def limit(self, gpu: bool) -> float:
        """Return the time limit of the partition in minutes, infinite where it has none; refuse an unknown one."""
        known = _limits()
        key = "gpu_partition" if gpu and self.gpu_partition else "partition"
        name = getattr(self, key)
        if name is None:
            return known.get("", math.inf)
        if name not in known:
            raise UserError(f"{FILE}: {key}: there is no partition {name!r}{nearest(name, {*known} - {''})}.")
        return known[name]


def read(path: Path = Path(FILE)) -> Cluster:
    """Read `cluster.yaml`; where there is none, all is as the cluster does by itself."""
    return validate(Cluster, read_yaml(path), FILE) if path.exists() else Cluster()


def minutes(estimated: int, attempt: int, limit: float) -> int:
    """Return the minutes that a job asks for: more after each attempt, at most the partition's limit."""
    return int(min(estimated * attempt, limit))


def retries(estimated: int, limit: float) -> int:
    """Return how often a job may be submitted again: a few times, and whenever the partition's limit cuts it off."""
    return RETRIES + math.ceil(estimated / limit)


def _limits() -> dict[str, float]:
    """Return the time limit of every partition in minutes; the default one also has the name ""."""
    limits = {}
    for line in _ask("sinfo", "--noheader", "--format=%P|%l"):
        name, _, limit = line.partition("|")
        limits[name.rstrip("*")] = _minutes(limit)
        if name.endswith("*"):
            limits[""] = _minutes(limit)
    return limits


def _minutes(text: str) -> float:
    """Return the minutes of a time such as 30:00, 1:30:00 or 2-00:00:00; infinite where it is none."""
    days, _, clock = text.strip().rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in [*parts, days or "0"]):  # infinite, n/a
        return math.inf
    hours, least, seconds = (int(part) for part in ["0", "0", *parts][-3:])
    return 24 * 60 * int(days or 0) + 60 * hours + least + seconds / 60


def begin(root: Path) -> None:
    """Be the one process that submits from this folder, as long as it lives; cancel what a killed one left.

    Cancelled jobs are submitted again where they are needed, and go on from their checkpoints.
    """
    runs.begin(runs.SUBMITS)
    if left := queue(root):
        _ask("scancel", *left)
        until = time.monotonic() + ENDING_S
        while queue(root):
            if time.monotonic() > until:
                raise UserError(
                    f"Slurm is still cancelling {', '.join(left)}, left over from a killed run; start again when "
                    "squeue no longer shows them."
                )
            time.sleep(0.5)


def queue(root: Path) -> list[str]:
    """Return the numbers of our jobs in Slurm's queue that were submitted from a folder."""
    lines = _ask("squeue", "--me", "--array", "--noheader", "--format=%i|%j|%Z")
    jobs = [line.split("|", 2) for line in lines]
    return [number for number, name, folder in jobs if name.startswith(PREFIX) and Path(folder) == root]


def _ask(*command: str) -> Sequence[str]:
    """Return the lines that one of Slurm's commands prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}; run this on a login node of a Slurm cluster.") from None
    if done.returncode:
        raise UserError(f"{' '.join((done.stderr or done.stdout).split()).rstrip('.') or command[0]}.")
    return done.stdout.splitlines()
