"""One FedAvg round against a plain loop over the same batches, in the same process, alternating.

python -m benchmarks.fedavg_round [--data-dir DIR with mnist.npz] [--device cpu] [--threads 2] [--rounds 7]

The plain loop does forward, backward and torch.optim.SGD on batches that already lie in memory as contiguous tensors;
"plain, fast" is the same with channels-last memory. Both leave out what a round also does: drawing, gathering,
differences, averaging. Without mnist.npz random images stand in, on which LeNet-5's pooling is slower.
"""

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fu import plugins
from fu.attacks import patch
from fu.data import archives, partition
from fu.data.clients import ClientData
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import Task
from fu.methods.fedosd import direction
from fu.partitions import pat
from fu.pipeline.stages.compute import keep_memory
from fu.training import fedavg


def federated(path: Path | None, device: torch.device) -> ClientData:
    if path:
        arrays = archives.read(path, "mnist")
        pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    else:
        random = np.random.default_rng(0)
        pixels = random.integers(0, 256, (70_000, 28, 28, 1), dtype=np.uint8)
        labels = random.integers(0, 10, 70_000, dtype=np.uint8)
    part = partition.draw(
        labels,
        seed=0,
        samples=None,
        deal=lambda found, random: pat.deal(found, 10, 10, pat.Params(class_share=0.5), random),
        train_share=6 / 7,
        validation_share=0.0,
        attacked=1,
        attack=lambda train, random: patch.draw(train, 10, patch.Params(), random),
    )
    x = torch.from_numpy(pixels).float().div_(255)
    mark = partial(patch.mark, part.attack, classes=10)
    return ClientData(x.to(device), torch.from_numpy(labels).long().to(device), part, 10, "share", mark)


def now() -> float:
    """Return the time in seconds at which a GPU, where there is one, has done all that it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def plain_round(model: nn.Module, batches: list[list[tuple[Tensor, Tensor]]], lr: float) -> float:
    start = {name: value.detach().clone() for name, value in model.state_dict().items()}
    spent = 0.0
    for client in batches:
        model.load_state_dict(start)
        optimiser = torch.optim.SGD(model.parameters(), lr=lr)
        begun = now()
        for x, y in client:
            optimiser.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimiser.step()
        spent += now() - begun
    return spent


def measure(name: str, data: ClientData, batch_size: int, rounds: int) -> None:
    plugin = plugins.load("models", name)
    build = partial(plugin.build, (28, 28, 1), 10, plugin.Params())
    federation = Federation(
        build(), data, LocalTraining(lr=0.1, lr_decay=0.999, batch_size=batch_size, local_epochs=1), "training", 0
    )
    task = Task(federation, build, data.forgotten, data.retained, rounds, 0)
    params = fedavg.Params()
    state = fedavg.start(task, params)
    times: dict[str, list[float]] = {"fu": [], "plain": [], "plain, fast": []}
    for number in range(rounds + 1):
        batches = [[(x.contiguous(), y) for x, y in federation.batches(c, number, None)] for c in task.clients]
        fast = [[(x.to(memory_format=torch.channels_last), y) for x, y in client] for client in batches]
        begun = now()
        state = fedavg.step(task, params, state, number)
        spent = now() - begun
        rows = {
            "fu": spent,
            "plain": plain_round(build().to(data.device), batches, 0.1),
            "plain, fast": plain_round(build().to(data.device, memory_format=torch.channels_last), fast, 0.1),
        }
        if number:  # the first round warms up
            for key, value in rows.items():
                times[key].append(value)
    medians = {key: statistics.median(values) for key, values in times.items()}
    text = ", ".join(f"{key} {value:.3f} s" for key, value in medians.items())
    ratios = " and ".join(f"{medians['fu'] / medians[key]:.2f} of {key}" for key in ("plain", "plain, fast"))
    print(f"{name}, batches of {batch_size}: {text} a round (medians of {rounds}); fu takes {ratios}")
    theta = state.theta
    retained = federation.local_updates(theta, task.retained, rounds).delta
    target = federation.local_updates(theta, task.forgotten, rounds, "unlearning_cross_entropy").delta[0]
    begun = now()
    d = direction(retained, target)
    spent = now() - begun
    cosines = (retained.double() @ d.double()) / (retained.double().norm(dim=1) * d.double().norm())
    print(f"{name}: FedOSD's direction in {spent * 1e3:.0f} ms, max |cos(g_i, d)| = {cosines.abs().max():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    keep_memory()
    torch.set_num_threads(args.threads)
    data = federated(args.data_dir / "mnist.npz" if args.data_dir else None, args.device)
    kind = torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else f"{args.threads} thread(s)"
    print(f"data: {'MNIST' if args.data_dir else 'random images'}; {kind}; torch {torch.__version__}")
    for name, batch_size in {"lenet5": 200, "mlp": 200, "logistic": 64}.items():
        measure(name, data, batch_size, args.rounds)


if __name__ == "__main__":
    main()
