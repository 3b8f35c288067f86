"""What is measured: each function is a point, and returns its numbers by name. 1 MB is 1,000,000 bytes."""

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fu import plugins
from fu.contents import checksum
from fu.data import clients, dataset
from fu.data.clients import ClientData
from fu.data.dataset import about
from fu.data.partition import Partition
from fu.errors import UserError
from fu.federation.checkpoint import Checkpoint
from fu.federation.kept import KeptModels
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import State, Task
from fu.partitions import natural
from fu.pipeline.plan.pending import Pending
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import certificate_of
from fu.pipeline.settings.papers import read_yaml

ROUNDS = 3  # that are timed, after one that is not
SHAPE = (28, 28, 1)
MODELS: dict[str, dict[str, Any]] = {"lenet5": {}, "mlp": {"hidden": 592}}  # 61,706 and 821,706 parameters
Point = dict[str, Any]


def most() -> float:
    """Return the most memory that this process has held so far, in MB (`ru_maxrss` counts its parent's, too)."""
    told = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert told
    return int(told[1]) * 1024 / 1e6


def timed(action: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return how many seconds an action took, and what it returned."""
    begun = time.perf_counter()
    found = action(*given)
    return time.perf_counter() - begun, found


def random_images(number: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (number, *SHAPE), dtype=np.uint8)


def save(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, allow_pickle=False, **arrays)
    return path


def to_train(rows: list[NDArray[np.int64]], test: NDArray[np.int64] | None = None) -> Partition:
    """Return a partition in which clients hold these samples to train, and share out those to test."""
    none = [np.empty(0, np.int64)] * len(rows)
    return Partition(rows, none, none if test is None else np.array_split(test, len(rows)))


def task_of(data: ClientData, model: str, classes: int = 10, rounds: int = 100, **how: Any) -> Task:
    """Return a task of FedAvg's settings, an epoch in batches of 200, but for `how` and its `local`."""
    plugin = plugins.load("models", model)
    build = partial(plugin.build, SHAPE, classes, plugin.Params(**MODELS.get(model, {})))
    local = {"lr": 0.1, "lr_decay": 0.999, "batch_size": 200, "local_epochs": 1, **how.pop("local", {})}
    federation = Federation(build(), data, LocalTraining(**local), "training", 0)
    return Task(federation, build, data.forgotten, data.retained, rounds, 0, **how)


def seconds_a_round(task: Task, present: int, held: str = "mean") -> float:
    """Return the median seconds of rounds of the first clients; `held`: their mean alone, or all that they send."""
    theta, each, spent = task.first_model(), list(range(present)), []
    train = task.federation.mean_update if held == "mean" else task.federation.local_updates
    for round in range(ROUNDS + 1):
        spent.append(timed(train, theta.clone(), each, round)[0])
    return statistics.median(spent[1:])


def of_clients(clients: int, present: int, model: str, held: str) -> Point:
    """Rounds in which `present` of so many clients train, who share 60,000 samples."""
    x, y = torch.from_numpy(random_images(60_000)).float().div_(255), torch.arange(60_000) % 10
    data = ClientData(x, y, to_train(np.array_split(np.arange(len(y)), clients)), 10, "share")
    task, before = task_of(data, model), most()
    return {"seconds a round": seconds_a_round(task, present, held), "MB of the rounds": most() - before}


def of_data(samples: int, images: str, folder: str) -> Point:
    """Ten clients take 30 steps each, of a data set of so many samples; `images`: resident, streamed."""
    facts = replace(about("mnist"), samples=samples)
    vars(plugins.load("datasets", "mnist"))["ABOUT"] = facts
    dataset.RESIDENT_BYTES = 0 if images == "streamed" else 1 << 60
    archive, file = (Path(folder) / name for name in (f"{samples}.npz", f"{samples}.part.npz"))
    loading, data = timed(clients.load, archive, file, "mnist", None, torch.device("cpu"), "share")
    local = {"local_epochs": None, "local_steps": 30}
    spent = seconds_a_round(task_of(data, "lenet5", local=local), 10)
    return {"seconds to load": loading, "seconds a round": spent, "MB": most()}


def write_data(folder: Path, samples: int) -> None:
    """Write an archive of random images, and ten clients who share all but a thousand of them."""
    few, labels = random_images(10_000), np.arange(samples, dtype=np.uint8) % 10
    arrays = {"y_train": labels[1000:], "y_test": labels[:1000], "x_test": few[:1000]}
    save(folder / f"{samples}.npz", {**arrays, "x_train": np.resize(few, (samples - 1000, *SHAPE))})
    rows = np.arange(samples)
    part = to_train(np.array_split(rows[:-1000], 10), rows[-1000:])
    save(folder / f"{samples}.part.npz", part.arrays())


def of_kept(rounds: int, folder: str) -> Point:
    """Models of 61,706 parameters kept at the start of each of so many rounds (FATS), and a checkpoint after them."""
    data = ClientData(torch.zeros(1, *SHAPE), torch.zeros(1).long(), to_train([np.arange(1)]), 10, "share")
    task = task_of(data, "lenet5")
    theta, path = task.first_model(), Path(folder) / f"{rounds}.safetensors"
    making, kept = timed(KeptModels.create, path, range(rounds), rounds, theta.numel())
    writing, _ = timed(lambda: [kept.write(round, theta) for round in range(rounds)])
    reading, _ = timed(lambda: KeptModels(path).read(rounds // 2))
    size = path.stat().st_size
    path.unlink()
    cost = task.federation.cost.record()
    rows = [{"round": round, **cost} for round in range(rounds)]
    file = Checkpoint(Path(folder) / f"{rounds}.checkpoint", {"of": rounds}, 0)
    saving, _ = timed(file.save, State(theta), {"seconds": 1.0, "done": rounds, "rows": rows, "cost": cost})
    restarting, _ = timed(file.load, "cpu")
    return {
        "MB on disk": size / 1e6,
        "ms to write a model": 1000 * (making + writing) / rounds,
        "ms to read one": 1000 * reading,
        "seconds of a checkpoint": saving,
        "seconds of a restart": restarting,
    }


def of_owners(method: str, owners: int, folder: str) -> Point:
    """A hundred rounds with 36 of the owners of 20 to 400 images of FEMNIST's shape, who are the clients."""
    sizes = np.random.default_rng(0).integers(20, 401, owners)
    total, one_each = int(sizes.sum()), np.arange(owners, dtype=np.int32)
    x, owner = random_images(total), np.repeat(one_each, sizes)
    arrays: dict[str, Any] = {"x_train": x, "y_train": (np.arange(total) % 62).astype(np.uint8), "client_train": owner}
    tests = {"x_test": x[:owners], "y_test": arrays["y_train"][:owners], "client_test": one_each}
    archive = save(Path(folder) / "femnist.npz", {**arrays, **tests})
    rows = natural.deal(owner, owners, owners, natural.Params(minimum=20), np.random.default_rng(0))
    file = save(Path(folder) / "femnist.part.npz", to_train(rows, total + np.arange(owners)).arrays())
    del x, arrays, tests
    loading, data = timed(clients.load, archive, file, "femnist", None, torch.device("cpu"), "share")
    plugin, local = plugins.load("training", method), {"batch_size": 20, "local_epochs": 1, "local_steps": None}
    if method == "fats":
        local |= {"local_epochs": None, "local_steps": 10}
    task = task_of(data, "lenet5", 62, local=local, clients_per_round=36, with_replacement=method == "fats")
    state = plugin.start(task, p := plugin.Params())
    first, state = timed(plugin.step, task, p, state, 0)  # FATS draws all rounds here
    begun = time.perf_counter()
    for round in range(1, task.rounds):
        state = plugin.step(task, p, state, round)
    others, steps = time.perf_counter() - begun, task.federation.cost.steps
    spent = {"seconds to load": loading, "seconds of the first round": first, "seconds of 99 rounds": others}
    return {"samples": total, **spent, "steps": steps, "ms a step": 1000 * (first + others) / steps}


def of_plan(seeds: int, folder: str) -> Point:
    """What planning costs before and after all is made, ours and Snakemake's: FedOSD at `smoke` with so many seeds."""
    for file in ("Snakefile", "fu", "profiles", "workflow"):
        (Path(folder) / file).symlink_to(digest.ROOT / file)
    os.chdir(folder)
    chosen = {"preset": "smoke", "papers": ["fedosd"], "overrides": {"fedosd": {"seeds": list(range(seeds))}}}
    Path("config.yaml").write_text(json.dumps({**read_yaml(digest.ROOT / "config.yaml"), **chosen}))
    planning, plan = timed(lambda: Plan(read_yaml(Path("config.yaml"))))
    asking, due = timed(lambda: len(list(Pending(plan).to_make(plan.asked(["all"])))))
    found = {"jobs": due, "seconds": planning + asking, "seconds of the settings": planning, "MB": most()}
    why, dry = ["fu", "why"], ["snakemake", "--cores", "2", "-n", "--quiet", "all"]
    for when in ("", ", all made"):
        if when:
            as_made(plan)
        for name, command in (("make why", why), ("snakemake -n", dry)):
            run = partial(subprocess.run, capture_output=True, text=True, check=False)
            found[f"seconds of {name}{when}"], done = timed(run, [sys.executable, "-m", *command])
            if done.returncode:
                raise UserError(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
            if name == "make why" and done.stdout.startswith("Nothing to do") != bool(when):
                raise UserError(f"make why{when}: {done.stdout.splitlines()[0]}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    return {**found, "MB of snakemake -n": peak}


def as_made(plan: Plan) -> None:
    """Write what a finished run leaves: a small file in place of each output, and the certificates."""
    contents: dict[str, str] = {}
    for job in plan.jobs():
        for path in map(Path, {*job.outputs.values()} - {job.certificate}):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(path))
            contents[str(path)] = checksum(path)
        made = {Path(path).name: [len(path), contents[path]] for path in job.outputs.values() if path in contents}
        read = {
            role: [[path, contents[path]] for path in paths if path in contents] for role, paths in job.listed.items()
        }
        spec = job.specs[0].model_dump(mode="json")
        certificate.write(
            Path(job.certificate), Certificate(job.keys[0], job.stage, spec, job.code, job.parts, read, made)
        )


def of_results(certificates: int, folder: str) -> Point:
    """So many certificates, each of a file of 1,000 bytes: written, read, and the files verified by them."""
    of_module = {f"fu.module{k}": "0" * 64 for k in range(60)}
    settings = {f"setting{k}": k for k in range(60)}
    made = Certificate("k" * 64, "train", settings, "c" * 64, of_module, {"data": [["d", "0" * 64]]})
    files = [Path(folder) / f"{k % 100}" / f"{k}.csv" for k in range(certificates)]

    def write() -> None:
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"x" * 1000)
            certificate.write(certificate_of(file), replace(made, outputs={file.name: [1000, checksum(file)]}))

    writing, _ = timed(write)
    reading, each = timed(lambda: [certificate.read(certificate_of(file)) for file in files])
    checking, _ = timed(lambda: [*map(certificate.verified, files, each)])
    return {"seconds to write": writing, "seconds to read": reading, "seconds to verify": checking, "MB": most()}
