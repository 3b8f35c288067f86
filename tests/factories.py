"""Factories for tests: clients with random images, a small model, the task around them, an evaluator's context."""

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from fu import plugins
from fu.attacks import patch
from fu.data.clients import ClientData, Poison
from fu.data.partition import POOLS, Partition
from fu.data.request import Request
from fu.evaluation.context import Context
from fu.federation.local import Federation, LocalTraining
from fu.federation.task import Task, initial_parameters
from fu.pipeline.provenance.catalogue import available

torch.set_num_threads(1)

SIZES = (7, 12, 9)  # training samples per client
FORGOTTEN = (1,)
CLASSES = 10
SMALL, DIGITS, GREY, COLOUR = (8, 8, 1), (20, 20, 1), (28, 28, 1), (32, 32, 3)
MARK = 0.8333  # value of a trigger's pixels
PLACE = torch.device("cpu")  # where data and models lie


def make_partition(
    sizes: Sequence[int] = SIZES,
    forgotten: Sequence[int] = FORGOTTEN,
    *,
    share: float = 0.8,
    trigger: bool = True,
    absent: Sequence[int] = (),
    server: int = 0,
    held_out: int = 0,
) -> Partition:
    """Deal samples in random order: per client `sizes[k]` to train, two to validate, three to test.

    The forgotten are those attacked; without a trigger nobody is. The server's and the held-out samples come last.
    """
    order = np.random.default_rng(0).permutation(sum(sizes) + 5 * len(sizes))
    pools = np.split(order, np.cumsum([size + 5 for size in sizes])[:-1])
    empty, rest = np.empty(0, np.int64), np.arange(len(order), len(order) + server + held_out)
    train = [pool[5:] for pool in pools]
    marked = [train[client][: round(share * len(train[client]))] for client in forgotten]
    return Partition(
        train=train,
        validation=[pool[:2] for pool in pools],
        test=[pool[2:5] for pool in pools],
        attacked=np.array(forgotten, np.int64) if trigger else empty,
        backdoored=np.sort(np.concatenate([empty, *marked])) if trigger else empty,
        attack={
            "trigger": np.array([[True, False], [True, True]]),
            "margin": np.array(1),
            "value": np.array(MARK),
            "label_shift": np.array(CLASSES // 2),
        }
        if trigger
        else {},
        absent=np.array(absent, np.int64),
        server=rest[:server],
        held_out=rest[server:],
    )


def make_data(
    part: Partition,
    shape: tuple[int, int, int] = SMALL,
    poison: Poison = "all",
    asked: Sequence[int] | None = None,
) -> ClientData:
    """Draw normal images and labels for every sample of a partition; `asked`: the clients of a request."""
    random = torch.Generator().manual_seed(11)
    samples = sum(map(len, [*part.train, *part.validation, *part.test, *(getattr(part, name) for name in POOLS)]))
    x = torch.randn(samples, *shape, generator=random)
    mark = partial(patch.mark, part.attack, classes=CLASSES) if part.attack else None
    labels = torch.randint(CLASSES, (samples,), generator=random)
    request = None if asked is None else Request(np.array(asked, np.int64))
    return ClientData(x.to(PLACE), labels.to(PLACE), part, CLASSES, poison, mark, request)


def builder(model: str = "mlp", shape: tuple[int, ...] = SMALL, **params: Any) -> Callable[[], nn.Module]:
    """Return what builds a model; the multilayer perceptron has layers of eight unless `params` say otherwise."""
    plugin = plugins.load("models", model)
    if model == "mlp":
        params = {"hidden": 8, **params}
    return partial(plugin.build, shape, CLASSES, plugin.Params(**params))


def make_federation(
    data: ClientData | None = None,
    model: str = "mlp",
    *,
    stream: str = "unlearning",
    seed: int = 3,
    strategy: str = "sequential",
    **training: Any,
) -> Federation:
    """Bind a model to the toy's data; `training`: the settings of local training that are not the toy's."""
    data = make_data(make_partition()) if data is None else data
    local = LocalTraining(**{"lr": 0.1, "lr_decay": 0.9, "batch_size": 5, "local_epochs": 2, **training})
    return Federation(builder(model, data.shape)(), data, local, stream, seed, strategy)


def make_task(
    federation: Federation | None = None,
    model: str = "mlp",
    *,
    rounds: int = 3,
    original: Tensor | None = None,
    histories: dict[str, dict[str, Tensor]] | None = None,
    trained: bool = True,
) -> Task:
    """Return a task; its original model is a random one unless given, and absent where `trained` is false."""
    federation = make_federation(model=model) if federation is None else federation
    data, build = federation.data, builder(model, federation.data.shape)
    if original is None and trained:
        original = initial_parameters(build, 99).to(federation.device)
    return Task(federation, build, data.forgotten, data.retained, rounds, federation.seed, original, histories or {})


def make_context(
    task: Task, theta: Tensor | None = None, role: str = "unlearned", trace: list[dict[str, str]] | None = None
) -> Context:
    """Return what an evaluator is given of a task's model (default: its original one)."""
    model = task.original_model if theta is None else theta
    federation = task.federation
    return Context(federation.network, federation.data, model, task.original, role, trace or [])


KINDS = {kind: plugins.load("histories", kind).record for kind in available("histories")}


def make_histories(task: Task) -> dict[str, dict[str, Tensor]]:
    """Record every kind of history over one round from the task's original model."""
    return {kind: record(task, {}, task.original_model, 0) for kind, record in KINDS.items()}


def default_params(model: type[BaseModel]) -> Any:
    """Return hyper-parameters with the defaults; a field without one takes the first of its documented examples."""
    required = {name: field for name, field in model.model_fields.items() if field.is_required()}
    return model(**{field.alias or name: (field.examples or [None])[0] for name, field in required.items()})


def params_of(plugin: ModuleType, **values: Any) -> Any:
    """Return a plug-in's hyper-parameters, with defaults for what is not given."""
    return plugin.Params(**values)


def cosines(rows: Tensor, vector: Tensor) -> Tensor:
    """Return the cosine of every row [m, d] that is not zero with a vector [d], in float64."""
    rows = rows[rows.norm(dim=1) > 0].double()
    return (rows / rows.norm(dim=1, keepdim=True)) @ (vector.double() / vector.double().norm())
