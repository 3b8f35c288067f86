"""What the stages that train share: the device, the federation, the checkpoint, the trace and the cost file."""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import resource
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fu import plugins
from fu.data import clients
from fu.data.archives import checksum
from fu.data.clients import Poison
from fu.data.dataset import about
from fu.errors import UserError
from fu.evaluation.metrics import TRACED
from fu.federation import weights
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import Task
from fu.plan.digest import digest, modules_of
from fu.stages.common import write_rows

TRACE = ["round", *TRACED]


def keep_memory() -> None:
    """Tell glibc to keep freed memory: activations are else mapped anew in every step (LeNet-5: 10% of its time)."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library: slower, not wrong
        libc = ctypes.CDLL(None)
        libc.mallopt(m_mmap_threshold, 1 << 30)
        libc.mallopt(m_trim_threshold, 1 << 29)


def device_of(args: argparse.Namespace) -> torch.device:
    """Set threads, memory and determinism, and return the device that `--device` names."""
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UserError("device: cuda was asked for, but torch sees no GPU; allowed here: auto, cpu.")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    keep_memory()
    torch.set_num_threads(args.threads)
    torch.set_deterministic_debug_mode("error")  # as use_deterministic_algorithms, which imports for a second
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    auto = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(auto if args.device == "auto" else args.device)


def task_of(args: argparse.Namespace, rounds: int, stream: str, poison: Poison) -> Task:
    """Build the task from the spec (dataset, model, local, seed) and the data and partition files."""
    spec, device = args.spec, device_of(args)
    installed = torch.__version__.partition("+")[0]
    if installed != spec["torch"]:
        raise UserError(
            f"torch {installed} is installed, but envs/lock.txt pins {spec['torch']}; run `make` to set up again, or "
            "pin the installed version there."
        )
    data = clients.load(args.data, args.partition, spec["dataset"], device, poison)
    kind = spec["model"]
    params = plugins.params("models", kind["name"], kind["params"], "model")
    build = partial(plugins.load("models", kind["name"]).build, data.shape, about(spec["dataset"]).classes, params)
    local = spec.get("local")
    training = LocalTraining(**local) if local else LocalTraining(0.0, 1.0, 1, 1)
    federation = Federation(build(), data, training, stream, spec["seed"])
    part = data.partition
    return Task(federation, build, part.forgotten, part.retained, rounds, spec["seed"])


def checkpoint_of(task: Task, args: argparse.Namespace, stage: str, inputs: list[Path]) -> Checkpoint:
    """Return the checkpoint beside the job's model, keyed by all that equal bytes are promised for."""
    about = {
        "spec": args.spec,
        "code": digest(*modules_of(stage, args.spec)),
        "inputs": [checksum(path) for path in inputs],
        "machine": [task.federation.device.type, task.federation.strategy, args.threads, torch.__version__],
    }
    args.model.parent.mkdir(parents=True, exist_ok=True)
    return Checkpoint(args.model.with_name(f".{args.model.stem}.checkpoint"), about, args.checkpoint_seconds)


def nothing_left(task: Task, diverged: int | None) -> Outcome:
    """Return the outcome of a run whose first model had diverged: that stays the result."""
    return Outcome({"theta": torch.empty(task.federation.layout.size)}, {}, [], 0.0, diverged)


def write_outcome(
    task: Task, outcome: Outcome, args: argparse.Namespace, checkpoint: Checkpoint, paths: list[Path]
) -> None:
    """Write model, trace and cost file to `paths`."""
    model, trace, cost = paths
    theta = outcome.state["theta"]
    assert isinstance(theta, torch.Tensor)
    weights.save(model, task.federation.layout, theta, outcome.diverged)
    write_rows(trace, outcome.rows, TRACE)
    about = {**cost_of(task, outcome.seconds, args.threads), **checkpoint.about}
    cost.write_text(json.dumps(about, indent=2) + "\n")


def cost_of(task: Task, seconds: float, threads: int) -> dict[str, Any]:
    """Return what no promise of equal bytes covers: seconds, peak memory, device, threads, versions."""
    device = task.federation.device
    cuda = device.type == "cuda"
    return {
        "seconds": round(seconds, 3),
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "peak_gpu_memory_mib": round(torch.cuda.max_memory_allocated(device) / 2**20) if cuda else 0,
        "device": torch.cuda.get_device_name(device) if cuda else platform.processor() or platform.machine(),
        "strategy": task.federation.strategy,
        "threads": threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
