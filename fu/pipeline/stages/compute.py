"""What the stages that compute with models share: the device, the data, the task, the checkpoint, the cost file."""

import contextlib
import ctypes
import json
import os
import platform
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fu import gpus, plugins
from fu.data import clients
from fu.data.clients import ClientData, Poison
from fu.data.dataset import about
from fu.data.partition import Partition
from fu.errors import UserError
from fu.evaluation.trace import columns
from fu.federation import model_files
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome
from fu.federation.kept import KeptModels
from fu.federation.local import Federation
from fu.federation.network import check_model, sample_of
from fu.federation.task import State, Task
from fu.pipeline.stages.common import (
    ModelFiles,
    ModelSpec,
    NetworkSpec,
    Options,
    RoundsSpec,
    TrainingFiles,
    TrainingSpec,
    atomic_outputs,
    inputs_of,
    outputs_of,
    write_rows,
)
from fu.plugins import Choice


def keep_memory() -> None:
    """Make glibc keep freed memory: otherwise every step maps activations anew (LeNet-5: 10% of its time)."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library: slower, not wrong
        libc = ctypes.CDLL(None)
        libc.mallopt(m_mmap_threshold, 1 << 30)
        libc.mallopt(m_trim_threshold, 1 << 29)


def check_device(device: str) -> None:
    """Raise `UserError` where there is no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device: cuda is set, but torch finds no GPU; allowed here: auto, cpu.")


def device_of(options: Options) -> torch.device:
    """Set threads, memory and determinism, and return the device that `--device` names."""
    if options.device != "cpu":
        gpus.take()
    check_device(options.device)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    keep_memory()
    torch.set_num_threads(options.threads)
    torch.set_deterministic_debug_mode("error")  # as use_deterministic_algorithms, whose imports take a second
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    auto = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(auto if options.device == "auto" else options.device)


def data_of(spec: NetworkSpec, files: ModelFiles, options: Options, poison: Poison) -> ClientData:
    """Return the clients' data on the device."""
    device = device_of(options)
    request = files.request[0] if files.request else None
    return clients.load(files.data, files.partition, spec.dataset, spec.attack, device, poison, request)


def builder_of(spec: NetworkSpec, data: ClientData) -> Callable[[], nn.Module]:
    """Return a function that builds a fresh model, which raises `UserError` where it cannot be trained."""
    plugin, params = plugins.load("models", spec.model.name), plugins.params("models", spec.model, "model")
    classes, where = about(spec.dataset).classes, f"{plugins.place_of(plugin, 'build')}: build"

    def build() -> nn.Module:
        model: nn.Module = plugin.build(data.shape, classes, params)
        check_model(model, sample_of(data.shape), classes, where, statistics=hasattr(plugin, "STATISTICS"))
        return model

    return build


def task_of(spec: RoundsSpec, data: ClientData, stream: str, seed: int, *, tests: bool = False) -> Task:
    """Return the task: the federation, the forgotten and retained clients, the rounds; `seed` names all its draws.

    Its data name test samples only for a method that reads them (`tests`).
    """
    data = data if tests else data.without_tests()
    build = builder_of(spec, data)
    federation = Federation(build(), data, spec.local, stream, seed)
    participation = {"clients_per_round": spec.clients_per_round, "with_replacement": spec.with_replacement}
    return Task(federation, build, data.forgotten, data.retained, spec.rounds, seed, **participation)  # type: ignore[arg-type]


def training_on(spec: RoundsSpec, data: ClientData, part: Partition, seed: int) -> Task:
    """Return the task of a training on what `part` says, before any request; `seed` names all its draws."""
    return task_of(spec, ClientData(data.inputs, data.y, part, data.classes, "share"), "training", seed)


def checkpoint_of(task: Task, spec: ModelSpec, files: ModelFiles, options: Options, beside: Path) -> Checkpoint:
    """Return the checkpoint of a job, stored beside its output and keyed by everything that determines its bytes."""
    inputs = inputs_of(spec.stage, files).values()
    provenance = {
        "spec": spec.model_dump(mode="json"),
        "code": options.code,
        "inputs": options.contents(path for several in inputs for path in several),
        "machine": [*processor(task), task.federation.strategy, options.threads, torch.__version__],
    }
    beside.parent.mkdir(parents=True, exist_ok=True)
    return Checkpoint(beside.with_name(f".{beside.stem}.checkpoint"), provenance, options.checkpoint_seconds)


def processor(task: Task) -> list[str]:
    """Return the GPU's name, or the CPU instructions in use: others may change results in their last bits."""
    device = task.federation.device
    if device.type == "cuda":
        return [torch.cuda.get_device_name(device)]
    return [torch.backends.cpu.get_cpu_capability(), os.environ.get("MKL_CBWR", "")]


def kept_models(task: Task, choice: Choice, checkpoint: Checkpoint) -> KeptModels | None:
    """Return where a training keeps models, if it does."""
    plugin = plugins.load("training", choice.name)
    if not hasattr(plugin, "KEEPS"):
        return None
    every = getattr(plugins.params("training", choice, f"training {choice.name}"), plugin.KEEPS)
    rounds = range(0, task.rounds, every) if every else [0]
    size = task.federation.layout.size
    return writable(checkpoint, lambda path: KeptModels.create(path, rounds, task.rounds, size, checkpoint.key))


def writable(checkpoint: Checkpoint, make: Callable[[Path], KeptModels]) -> KeptModels:
    """Return the kept models beside a checkpoint: those of a killed run that goes on from it, or else new ones.

    Without a checkpoint the run begins anew, and later requests may have overwritten what it reads first.
    """
    path = checkpoint.path.with_suffix(".kept")
    if checkpoint.load("cpu"):
        with contextlib.suppress(UserError):
            models = KeptModels.resumed(path)
            if models.key == checkpoint.key:
                return models
    checkpoint.clear()
    return make(path)


def diverged_outcome(task: Task, diverged: int | None) -> Outcome:
    """Return the outcome of a run whose initial model had diverged: that is its result, too."""
    return Outcome(State(torch.empty(task.federation.layout.size)), {}, [], 0.0, diverged)


def write_outcome(
    task: Task, outcome: Outcome, spec: TrainingSpec, files: TrainingFiles, options: Options, checkpoint: Checkpoint
) -> None:
    """Write model, trace (with the columns of the traced evaluators), cost file, and a training's recorded histories.

    Removes the checkpoint and the models beside it. Where a training keeps models, they are its history.
    """
    with atomic_outputs(options, *outputs_of(spec.stage, files)) as parts:
        model, trace, cost, *histories = parts
        model_files.save(model, task.federation.layout, outcome.state.theta, outcome.diverged)
        names = [*(plugins.load("evaluation", name).TRACE for name in spec.traced), spec.counted]
        write_rows(trace, outcome.rows, columns(names, outcome.rows))
        spent = {**cost_of(task, outcome.seconds, options.threads), **checkpoint.about}
        cost.write_text(json.dumps(spent, indent=2) + "\n")
        for history in histories:  # of a training
            if task.kept:
                task.kept.path.replace(history)
            else:
                model_files.save_histories(history, outcome.histories)
    if task.kept and task.kept.writable:
        task.kept.path.unlink(missing_ok=True)
    checkpoint.clear()


def cost_of(task: Task, seconds: float, threads: int) -> dict[str, Any]:
    """Return what is not reproducible byte by byte: seconds, peak memory, device, threads, versions."""
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
