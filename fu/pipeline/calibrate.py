"""Measure for the estimates how fast this machine is: every model of the configured papers, and what else a job takes.

A model's training step is measured with the smallest and the largest batch that any preset gives it, from which follow
its own time and that of each sample; of a large model only as many samples as a short while allows. The fastest of
several repeats counts, which other work on the machine disturbs least.
"""

import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from fu.data.dataset import about
from fu.errors import UserError
from fu.pipeline import catalogue, commands, digest, estimates, fork_server
from fu.pipeline.estimates import CALIBRATION, Calibration, Device, Speed
from fu.pipeline.plan import Job, Plan
from fu.pipeline.settings.papers import names
from fu.pipeline.settings.records import Settings
from fu.pipeline.stages import train
from fu.pipeline.stages.common import Options, atomic_outputs

if TYPE_CHECKING:
    import torch

    from fu.federation.local import Federation

WHILE_S = 0.2  # of repeats
LONGEST_S = 1.5  # of one step or forward pass
REPEATS = 3  # of a job
STEPS = 10  # at once, of which a client takes as many in a row
ROWS = 1000  # that are passed forwards at once (fu/federation/network.py)
READ = "mnist", 20_000  # of which data set as many samples are read


class Work(NamedTuple):
    """A model of some size in settings that use it, and the batches and numbers of clients that it trains with."""

    settings: Settings
    batches: set[int]
    clients: set[int]


def calibrate(values: dict[str, Any]) -> None:
    """Measure this machine's processor, and its GPU if there is one and the config admits it; keep the result."""
    import torch
    from tqdm import tqdm

    from fu.pipeline.stages.compute import check_device, device_of

    plan, begun = Plan(values), time.monotonic()
    check_device(plan.config.device)
    works = used(values)
    kinds = ["cpu", "cuda"] if torch.cuda.is_available() and plan.config.device != "cpu" else ["cpu"]
    devices = []
    with tqdm(total=len(kinds) * (len(works) + 1), unit="model", file=sys.stderr) as bar:
        for kind in kinds:
            options = Options(threads=plan.config.threads, device=kind)
            device, speeds = device_of(options), []
            for work in works:
                bar.set_description(f"{work.settings.model.name} on {kind}")
                speeds.append(speed(work, device, options.threads))
                bar.update()
            bar.set_description(f"a job on {kind}")
            job_s, load_s = job_seconds(values, kind), load_seconds(device, options.threads)
            bar.update()
            name = torch.cuda.get_device_name(device) if kind == "cuda" else processor()
            devices.append(
                Device(kind=device.type, name=name, threads=options.threads, job_s=job_s, load_s=load_s, speeds=speeds)
            )
    today, libraries = str(datetime.date.today()), estimates.libraries()
    found = Calibration(date=today, libraries=libraries, devices=tuple(devices))
    with atomic_outputs(Options(), CALIBRATION) as (part,):
        part.write_text(found.model_dump_json(indent=1) + "\n")
    lasted = estimates.lasting(time.monotonic() - begun)
    print(f"{estimates.counted(len(works), 'model')} measured in {lasted}, kept in {CALIBRATION}.")


def used(values: dict[str, Any]) -> list[Work]:
    """Return the models that the configured papers use at any preset, each size once."""
    found: dict[tuple[str, int], Work] = {}
    for preset in names("presets"):
        with suppress(UserError):  # what is laid over the papers need not fit every preset
            for trial in Plan({**values, "preset": preset}).trials.values():
                settings, size = trial.settings, estimates.size(trial.settings)
                if size == estimates.UNKNOWN:
                    continue
                work = found.setdefault((settings.model.name, size.flops), Work(settings, set(), set()))
                for local in filter(None, (settings.training, settings.unlearning, settings.recovery)):
                    work.batches.add(local.batch_size)
                    work.clients.add(local.clients_per_round or settings.data.clients - settings.data.absent)
    return list(found.values())


def speed(work: Work, device: "torch.device", threads: int) -> Speed:
    """Return the speed of a model on a device."""
    low, high = min(work.batches), max(work.batches)
    if low == high:
        low = max(1, high // STEPS)
    first = _step_s(work, low, device, threads)
    high = max(low + 1, min(high, int(low * LONGEST_S / first)))
    second = _step_s(work, high, device, threads)
    step, sample = line((low, first), (high, second))
    rows = max(1, min(ROWS, int(LONGEST_S / sample)))
    federation, theta = _federation(work, rows, 1, device)
    x, _ = federation.data.clean(federation.data.partition.train[0][:rows])
    forward = _fastest(lambda: federation.logits(theta, x), device, threads) / rows
    size, model = estimates.size(work.settings), work.settings.model.name
    return Speed(
        model=model,
        flops=size.flops,
        operations=size.operations,
        step=1000 * step,
        sample=1000 * sample,
        forward=1000 * forward,
    )


def line(first: tuple[int, float], second: tuple[int, float]) -> tuple[float, float]:
    """Return a step's own time and that of each sample, none negative, from two batches with the time of a step."""
    (low, short), (high, long) = first, second
    sample = min(max((long - short) / (high - low), 0.001 * long / high), long / high)
    return long - sample * high, sample


def _step_s(work: Work, batch: int, device: "torch.device", threads: int) -> float:
    """Return the seconds of a client's step on a batch."""
    rounds = count()
    federation, theta = _federation(work, batch, 1, device)
    clients = max(work.clients) if federation.strategy == "vectorised" else 1
    if clients > 1:
        federation, theta = _federation(work, batch, clients, device)

    def train(steps: int) -> None:
        federation.local_updates(theta, range(clients), next(rounds), steps=steps)

    train(1)
    begun = time.perf_counter()
    train(1)
    steps = STEPS if time.perf_counter() - begun < WHILE_S else 1
    return _fastest(lambda: train(steps), device, threads) / steps / clients


def _federation(work: Work, batch: int, clients: int, device: "torch.device") -> tuple["Federation", "torch.Tensor"]:
    """Return clients with random samples for a few batches each and an initial model."""
    import numpy as np
    import torch

    from fu import plugins
    from fu.data.clients import ClientData
    from fu.data.partition import Partition
    from fu.federation.local import Federation, LocalTraining
    from fu.federation.task import initial_parameters
    from fu.plugins import Choice

    settings, facts = work.settings, about(work.settings.data.dataset)
    pretrained = "PRETRAINED" in catalogue.declared("models", settings.model.name)
    params = {**settings.model.params, **({"weights": "random"} if pretrained else {})}
    choice = Choice(name=settings.model.name, params=params)
    plugin, typed = plugins.load("models", choice.name), plugins.params("models", choice, "model")
    build = partial(plugin.build, facts.shape, facts.classes, typed)
    samples, draws = STEPS * batch, torch.Generator().manual_seed(0)
    labels = torch.randint(facts.classes, (samples,), generator=draws).to(device)
    if facts.text:
        x = torch.randint(facts.classes, (samples, *facts.shape), generator=draws, dtype=torch.uint8)
    else:
        x = torch.randn(samples, *facts.shape, generator=draws)
    rows, nothing = np.arange(samples), np.empty(0, np.int64)
    part = Partition([rows] * clients, [nothing] * clients, [nothing] * clients)
    data = ClientData(x.to(device), labels, part, facts.classes, "share")
    federation = Federation(build(), data, LocalTraining(0.01, 1.0, batch, 1), "training", 0)
    return federation, initial_parameters(build, 0).to(device)


def _fastest(call: Callable[[], object], device: "torch.device", threads: int) -> float:
    """Return the seconds of the fastest of several calls; those of the processor where one thread takes all of them."""
    from torch.utils.benchmark import Timer
    from torch.utils.benchmark.utils.timer import timer

    alone = device.type == "cpu" and threads == 1
    clock = time.process_time if alone else timer
    measured = Timer("call()", timer=clock, globals={"call": call}, num_threads=threads)
    return float(min(measured.blocked_autorange(min_run_time=WHILE_S).times))


def load_seconds(device: "torch.device", threads: int) -> float:
    """Return the seconds to load a gigabyte of pixels."""
    import numpy as np

    from fu.data import clients
    from fu.data.partition import Partition

    name, samples = READ
    facts, random, nothing = about(name), np.random.default_rng(0), np.empty(0, np.int64)
    part = Partition([np.arange(samples)], [nothing], [np.arange(samples, samples + 1)])
    arrays = {
        f"{what}_{split}": random.integers(0, most, (n, *shape), dtype=np.uint8)
        for split, n in (("train", samples), ("test", 1))
        for what, shape, most in (("x", facts.shape, 256), ("y", (), facts.classes))
    }
    with TemporaryDirectory() as folder:
        archive, partition = Path(folder, "archive.npz"), Path(folder, "partition.npz")
        np.savez(archive, allow_pickle=False, **arrays)  # type: ignore[arg-type]
        np.savez(partition, allow_pickle=False, **part.arrays())
        seconds = _fastest(lambda: clients.load(archive, partition, name, None, device, "share"), device, threads)
    return 1e9 * seconds / arrays["x_train"].size


def job_seconds(values: dict[str, Any], kind: str) -> float:
    """Return the seconds of a small training, run as in a workflow, less those of its rounds."""
    trainings = list[Job]()
    with suppress(UserError):  # as in `used`
        plan = Plan({**values, "preset": "smoke", "device": kind})
        trainings = [
            job for job in plan.jobs() if isinstance(job.spec, train.Spec) and about(job.spec.dataset).embedded
        ]
    if not trainings:
        return estimates.JOB_S
    found = []
    smallest = min(trainings, key=lambda job: job.seconds)
    with TemporaryDirectory() as folder:
        fork_server.start()
        environment = {**os.environ, "PYTHONPATH": str(digest.ROOT)}
        for job in [*plan.behind([smallest]), *REPEATS * [smallest]]:
            words = shlex.split(commands.complete(plan, job, sys.executable))
            words[2:2] = ["fu.pipeline.fork_server"]
            begun = time.perf_counter()
            done = subprocess.run(words, cwd=folder, env=environment, check=False, capture_output=True, text=True)
            lasted = time.perf_counter() - begun
            if done.returncode:
                raise UserError(f"{job.stage}: {done.stderr.strip().splitlines()[-1].removeprefix('error: ')}")
            if job is smallest:
                cost = json.loads(Path(folder, job.outputs["cost"]).read_text())
                found.append(lasted - float(cost["seconds"]))
    return max(min(found), 0.001)


def processor() -> str:
    """Return the name of this machine's processor."""
    import platform

    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
