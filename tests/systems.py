"""Further systems for tests: random tensors, and tasks with models of given hyper-parameters."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.federation.local import Federation, LocalTraining
from fu.federation.plugged import training_of
from fu.federation.task import Task, initial_parameters
from fu.plugins import Choice
from tests.factories import COLOUR, builder, make_data, make_federation, make_partition, make_task, params_of


def random(*shape: int, seed: int = 0) -> Tensor:
    """Return normal numbers, the same for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def weighted_mean(rows: Tensor, sizes: list[int]) -> Tensor:
    """Return the mean of the rows [m, d], weighted by `sizes`."""
    return sum((size * row for size, row in zip(sizes, rows, strict=True)), torch.zeros_like(rows[0])) / sum(sizes)


def model_task(
    model: str,
    shape: tuple[int, int, int],
    images: Callable[[Tensor], Tensor] = lambda x: x,
    *,
    sizes: tuple[int, ...] = (7, 12, 9),
    seed: int = 3,
    training: dict[str, Any] | None = None,
    **params: Any,
) -> Task:
    """Return a task with a model of given hyper-parameters; batches of four unless `training` says otherwise."""
    part = make_partition(sizes)
    data = make_data(part, shape)
    data = ClientData(images(data.x), data.y, part, data.classes, "all", data.mark)
    values: dict[str, Any] = {"lr": 0.02, "lr_decay": 0.9, "batch_size": 4, "local_epochs": 1, **(training or {})}
    build = builder(model, shape, **params)
    federation = Federation(build(), data, LocalTraining(**values), "unlearning", seed)
    original = initial_parameters(build, 99)
    return Task(federation, build, data.forgotten, data.retained, 3, seed, original)


def dropout_task(
    seed: int = 3, *, sizes: tuple[int, ...] = (7, 12, 9), dropout: tuple[float, float] = (0.2, 0.5)
) -> Task:
    """Return a task with a small CNN that has dropout after convolutions and after hidden layers."""
    training = {"lr_decay": 1.0, "local_epochs": 1}
    return model_task("cnn", COLOUR, sizes=sizes, seed=seed, training=training, channels=4, dropout=dropout)


def trained_by(name: str = "fedavg", federation: Federation | None = None, *, rounds: int = 3, **params: Any) -> Task:
    """Return the toy's task with the scenario's training, which a retraining is handed."""
    return replace(make_task(federation, rounds=rounds), training=training_of(Choice(name=name, params=params)))


def states_of(method: ModuleType, task: Task, rounds: int | None = None, **params: Any) -> list[Any]:
    """Return the states of a method: the first, and that after each of its rounds."""
    p = params_of(method, **params)
    states = [method.start(task, p)]
    for round in range(task.rounds if rounds is None else rounds):
        states.append(method.step(task, p, states[-1], round))
    return states


def forgetting_two(**federation: Any) -> Federation:
    """Return a federation of four clients, with 7, 12, 9 and 8 samples, of whom the second and last are forgotten."""
    return make_federation(make_data(make_partition((7, 12, 9, 8), (1, 3))), **federation)
