"""An original training by FedAvg, with all that it records, for methods that need its histories."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import drive
from fu.federation.task import State, Task
from fu.training import fedavg
from tests.factories import KINDS, make_data, make_federation, make_partition, make_task, params_of


@dataclass(frozen=True)
class Trained:
    """An original training: the models before and after its rounds [T + 1, d], every client's updates [T, m, d]."""

    data: ClientData
    models: Tensor
    updates: Tensor
    histories: dict[str, dict[str, Tensor]]

    def task(self, rounds: int = 1, **federation: Any) -> Task:
        """Return the task of unlearning that follows."""
        bound = make_federation(self.data, **federation)
        return make_task(bound, rounds=rounds, original=self.models[-1], histories=self.histories)


def train(
    folder: Path,
    rounds: int = 4,
    *,
    sizes: tuple[int, ...] = (7, 12, 9, 8),
    forgotten: tuple[int, ...] = (1,),
    client_weights: str = "samples",
    **federation: Any,
) -> Trained:
    """Train by FedAvg with the real recorders; the updates are computed again, by a federation of their own."""
    data = make_data(make_partition(sizes, forgotten), poison="share")
    federation = {"stream": "training", "lr_decay": 0.7, **federation}
    task = make_task(make_federation(data, **federation), rounds=rounds, trained=False)
    p = params_of(fedavg, client_weights=client_weights)
    models: list[Tensor] = []

    def step(state: State, round: int) -> State:
        models.append(state.theta)
        return fedavg.step(task, p, state, round)

    checkpoint = Checkpoint(folder / "job.checkpoint", {}, 1e9)
    outcome = drive(task, lambda: fedavg.start(task, p), step, lambda _: {}, checkpoint, "train", recorders=KINDS)
    assert outcome.diverged is None
    again = make_federation(data, **federation)
    updates = [again.local_updates(theta, range(len(sizes)), round).delta for round, theta in enumerate(models)]
    return Trained(data, torch.stack([*models, outcome.state.theta]), torch.stack(updates), outcome.histories)
