"""FedAvg by fu."""

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.peers.common import BATCH, CLASSES, CLIENTS, RATE, SAMPLES, SEED, STREAM, Clients, Report, build
from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import State, Task
from fu.pipeline.stages.compute import keep_memory
from fu.training import fedavg


def train(name: str, file: Path, rounds: int, threads: int, report: Report) -> None:
    keep_memory()
    found, nobody = Clients(file), np.empty(0, dtype=np.int64)
    rows = np.split(np.arange(CLIENTS * SAMPLES), CLIENTS)
    part = Partition(train=rows, validation=[nobody] * CLIENTS, test=rows, attacked=nobody, backdoored=nobody)
    data = ClientData(found.x.permute(0, 2, 3, 1), found.y, part, CLASSES, "share")
    federation = Federation(
        build(name), data, LocalTraining(lr=RATE, lr_decay=1.0, batch_size=BATCH, local_epochs=1), STREAM, SEED
    )
    task = Task(federation, partial(build, name), [], list(range(CLIENTS)), rounds, SEED)
    layout, params = federation.layout, fedavg.Params()
    theta = layout.flatten(dict(build(name).named_parameters()))
    for round in range(rounds):
        theta = fedavg.step(task, params, State(theta), round).theta
        report.round_ends(layout.named(theta))
