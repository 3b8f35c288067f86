"""A federation of one's own model and data, and how it trains."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from fu import plugins
from fu.api import audits, checks, data
from fu.api.given import (
    Build,
    builder,
    built,
    choice,
    classes_of,
    count,
    device_of,
    fails_alone,
    local_sgd,
    plugin,
    seeded,
    several,
)
from fu.api.model import NO_CHECKPOINT, Model, Run, nothing
from fu.data.clients import ClientData
from fu.data.partition import Partition
from fu.data.request import Request
from fu.errors import UserError
from fu.federation import local, plugged
from fu.federation.flat import tensors_of
from fu.federation.kept import KeptModels
from fu.federation.network import Network
from fu.federation.sgd import LocalTraining
from fu.federation.task import Task
from fu.plugins import Choice


class Federation:
    """Clients with data sets of their own, one architecture, and local SGD."""

    def __init__(
        self, build: Build, x: Tensor, y: Tensor, part: Partition, local_training: LocalTraining, seed: int, device: str
    ) -> None:
        """See `from_datasets`."""
        self.build, self.part, self.training, self.seed = build, part, local_training, seeded(seed)
        self.device = device_of(device)
        self.x, self.y = x.to(self.device), y.to(self.device)
        model = built(build)
        self.classes = classes_of(model, self.x, self.y)
        self.network = Network(build(), self.device)
        self.layout = self.network.layout
        self.needs_two = self.layout.size > self.layout.parameters and fails_alone(model, self.x)

    @classmethod
    def from_datasets(
        cls,
        model: nn.Module | Build,
        datasets: Sequence[data.Samples],
        *,
        batch_size: int,
        lr: float,
        local_epochs: int | None = None,
        local_steps: int | None = None,
        lr_decay: float = 1.0,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        test: data.Samples | Sequence[data.Samples] | None = None,
        test_share: float = 0.2,
        seed: int = 0,
        device: str = "auto",
    ) -> "Federation":
        """Return a federation of clients, each of which holds one of the data sets.

        `model`: a class or function that builds one, or a module, whose copies are initialised anew. Its outputs are
        [n, classes]. `datasets`: items are pairs of a sample (a float tensor; text: whole numbers [length]) and a
        label from 0. All items are read once: a random augmentation is drawn once, too. `local_epochs` (default: 1) or
        `local_steps` a round. `test`: one data set for all, or one for each client; by default `test_share` of each
        client's samples, drawn. `UserError` says in one sentence what does not fit.
        """
        sgd = {"lr": lr, "lr_decay": lr_decay, "momentum": momentum, "weight_decay": weight_decay}
        epochs = 1 if local_epochs is None and local_steps is None else local_epochs
        steps = {"batch_size": batch_size, "local_epochs": epochs, "local_steps": local_steps}
        x, y, part = data.merged(datasets, test, test_share, seed)
        return cls(builder(model), x, y, part, local_sgd({**sgd, **steps}), seed, device)

    @property
    def clients(self) -> list[int]:
        """The IDs of all clients, from 0."""
        return self.part.present

    def train(
        self,
        rounds: int,
        training: str = "fedavg",
        params: dict[str, Any] | None = None,
        *,
        record_for: Sequence[str] = (),
        clients_per_round: int | None = None,
        with_replacement: bool = False,
        seed: int | None = None,
    ) -> Model:
        """Train from a fresh initialisation on all clients, and return the original model.

        `training`: of `fu/training`. `record_for`: methods whose histories are recorded while it trains.
        `clients_per_round`: how many are drawn (default: all take part). `seed`: of this run; default: the
        federation's.
        """
        seed, module = self.seed if seed is None else seeded(seed), plugin("training", training)
        named = choice(training, params)
        chosen = plugins.params("training", named, training)
        per_round = None if clients_per_round is None else count(clients_per_round, "clients_per_round")
        participation = {"clients_per_round": per_round, "with_replacement": with_replacement}
        given = {**self.training.model_dump(), **participation}
        kinds = sorted({kind for method in several(record_for, "record_for") for kind in checks.histories(method)})
        checks.training(training, module, given, kinds)
        checks.statistics("training", training, self.layout)
        rounds = count(rounds, "rounds")
        task = self.task(self.data(()).without_tests(), "training", seed, rounds, {}, **participation)
        folder = kept = None
        if hasattr(module, "KEEPS"):
            every = getattr(chosen, module.KEEPS)
            folder = tempfile.TemporaryDirectory(prefix="fu-")
            numbers = range(0, rounds, every) if every else [0]
            kept = KeptModels.create(Path(folder.name, "models"), numbers, rounds, self.layout.size)
        trained, task = plugged.training_of(named), replace(task, kept=kept)
        recorders = {kind: plugins.load("histories", kind).record for kind in kinds}
        outcome = plugged.train(task, trained, nothing, NO_CHECKPOINT, training, recorders=recorders)
        kept = kept and KeptModels(kept.path)  # which no request may overwrite
        run = Run(rounds, trained, training, seed, participation, outcome.histories, kept, folder)
        return Model(self, outcome.state.theta, "original", run, rows=outcome.rows, diverged=outcome.diverged)

    def trained(self, model: nn.Module | Mapping[str, Tensor], rounds: int, seed: int | None = None) -> Model:
        """Return a model that was trained elsewhere (a module, or its `state_dict`) as the original one.

        `rounds`: of its training, of which unlearning takes a tenth. `UserError` where its weights are not those of
        this architecture. Give test sets of your own (`test`): those that are drawn here may have been trained on.
        """
        fresh = self.build()
        if not isinstance(model, nn.Module | Mapping):
            raise UserError(f"model: must be an nn.Module or its state_dict, got {type(model).__name__}.")
        saved = fresh.state_dict().keys()
        tensors = {name: tensor for name, tensor in tensors_of(fresh).items() if name not in saved}  # not persistent
        trained = tensors_of(model) if isinstance(model, nn.Module) else model
        if odd := [name for name, tensor in trained.items() if not isinstance(tensor, Tensor)]:
            raise UserError(
                f"model: {odd[0]!r} is not a tensor; give the state_dict itself, not what it was saved with."
            )
        tensors |= {name: tensor for name, tensor in trained.items() if tensor.is_floating_point()}
        theta = self.layout.flatten(tensors, "model").to(self.device)
        if odd := [name for name, view in self.layout.views(theta).items() if not view.isfinite().all()]:
            raise UserError(f"model: {odd[0]!r} is not finite.")
        run = Run(
            count(rounds, "rounds"),
            plugged.training_of(Choice(name="fedavg")),
            "fedavg",
            self.seed if seed is None else seeded(seed),
            {"clients_per_round": None, "with_replacement": False},
        )
        return Model(self, theta, "original", run)

    audit = audits.audit

    def data(self, clients: Sequence[int]) -> ClientData:
        """Return what the clients hold, where these are asked to be forgotten."""
        asked = Request(np.asarray(clients, np.int64)) if len(clients) else None
        return ClientData(self.x, self.y, self.part, self.classes, "all", request=asked)

    def task(
        self, held: ClientData, stream: str, seed: int, rounds: int, changes: dict[str, Any], **participation: Any
    ) -> Task:
        """Return a task on data; `changes`: of local SGD. `UserError` for too few clients or too small batches."""
        sgd = local_sgd(self.training.model_dump(), **changes)
        checks.drawn(len(held.retained), **participation)
        if self.needs_two:
            checks.batches(held, sgd)
        federation = local.Federation(self.build(), held, sgd, stream, seed)
        return Task(federation, self.build, held.forgotten, held.retained, rounds, seed, **participation)

    def present(self, clients: Sequence[int] | int) -> tuple[int, ...]:
        """Return clients in order; `UserError` where one does not exist, or none would be retained."""
        listed = isinstance(clients, Iterable) and getattr(clients, "shape", None) != ()  # no array of one number
        requested: list[Any] = [*clients] if listed else [clients]  # type: ignore[misc]
        for client in requested:
            if not isinstance(client, Integral) or isinstance(client, bool) or client not in self.clients:
                raise UserError(f"clients: there is no client {client!r}; allowed: 0 to {len(self.clients) - 1}.")
        asked = sorted({*map(int, requested)})
        if not asked:
            raise UserError("clients: name at least one.")
        if len(asked) == len(self.clients):
            raise UserError(f"clients: all {len(asked)} would be forgotten; at least one must be retained.")
        return tuple(asked)
