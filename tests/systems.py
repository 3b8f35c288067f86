"""Further systems for tests: random tensors, and tasks with models of given hyper-parameters."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fu.data.clients import ClientData
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import Task, initial_parameters
from tests.factories import COLOUR, builder, make_data, make_partition


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
