"""What a method receives: the federation, the forgotten clients, the original model and recorded histories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from fu.data.partition import Indices
from fu.federation.flat import Layout, tensors_of
from fu.federation.kept import KeptModels
from fu.federation.local import Federation, generator
from fu.federation.participation import participants
from fu.seeds import derive_integer

Record = dict[str, Tensor]


@dataclass(frozen=True)
class State:
    """What a training or a method carries from round to round: the current model `theta` [d].

    One that carries more has a subclass with further fields (a tensor, a number, or tensors by name), which `start` is
    annotated to return: a checkpoint holds them, too.
    """

    theta: Tensor


def initial_parameters(build: Callable[[], nn.Module], *name: int | str) -> Tensor:
    """Return theta [d] of a freshly initialised model, seeded by name."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_integer(*name))
        model = build()
    return Layout(model).flatten(tensors_of(model))


@dataclass(frozen=True)
class Training:
    """A way to train with its hyper-parameters: `start(task)` and `step(task, state, round)`.

    `state`: what these return. `trained_on(task)`: the rows of the data set that are in any batch of all rounds (None:
    it does not say).
    """

    state: type[State]
    start: Callable[["Task"], State]
    step: Callable[["Task", State, int], State]
    trained_on: Callable[["Task"], Indices] | None = None


@dataclass(frozen=True)
class Task:
    """One run: `original` [d] is absent while the original model is trained.

    The data of the `federation` name no test sample (`ClientData.without_tests`): who judges a model has data apart.
    `histories`: kind -> named tensors that the training recorded. `rounds`: how many rounds this phase has.
    `clients_per_round` of the population are drawn for a round (None: all take part). `training`: how the scenario
    trains, for a method that trains anew. `server`: how many of the server's samples are used (None: all).
    `kept`: models that the training keeps. `memory`: what a plug-in need not derive again in every round.
    """

    federation: Federation
    build: Callable[[], nn.Module]
    forgotten: list[int]
    retained: list[int]
    rounds: int
    seed: int
    original: Tensor | None = None
    histories: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    clients_per_round: int | None = None
    with_replacement: bool = False
    training: Training | None = None
    server: int | None = None
    kept: KeptModels | None = None
    memory: dict[Any, Any] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """How many requests come in a row, at equal distances."""
        asked = self.federation.data.request
        return len(asked.waves) if asked else 1

    def after(self, requests: int) -> "Task":
        """Return the task once the first of several requests in a row have come."""
        if requests == self.requests:
            return self
        data = self.federation.data.after(requests)
        federation = self.federation.holding(data)
        return replace(self, federation=federation, forgotten=data.forgotten, retained=data.retained)

    def repeated(self, number: int) -> "Task":
        """Return the same task with a first model and all draws of its own, by name; 0: this very task."""
        if not number:
            return self
        name = "repeat", number
        seed, memory = derive_integer(self.seed, *name), self.memory.setdefault(name, {})
        return replace(self, seed=seed, federation=self.federation.seeded(seed), memory=memory)

    def noisy(self, state: State, std: float, *name: int) -> State:
        """Return a state whose parameters have N(0, std^2) added; `name`: names the draw within the task's seed."""
        drawn = torch.randn(len(state.theta), generator=generator(self.seed, "noise", *name)).to(state.theta.device)
        return replace(state, theta=state.theta + std * drawn)

    @property
    def population(self) -> list[int]:
        """The clients of whom those of a round are drawn: after the request only retained ones."""
        return self.clients if self.original is None else self.retained

    @property
    def clients(self) -> list[int]:
        """All clients that are not absent."""
        return sorted([*self.forgotten, *self.retained])

    def places(self, clients: Sequence[int]) -> list[int]:
        """Return where clients stand among all of them, as a history of all has their rows."""
        where = {client: place for place, client in enumerate(self.clients)}
        return [where[client] for client in clients]

    def participants(self, round: int) -> list[int]:
        """Return the clients that take part in a round; one that is drawn k times stands there k times."""
        name = (self.seed, self.federation.stream)
        return participants(self.population, self.clients_per_round, self.with_replacement, *name, round)

    @property
    def original_model(self) -> Tensor:
        """The original model [d], for methods that start from it."""
        assert self.original is not None
        return self.original

    def first_model(self) -> Tensor:
        """Return theta [d] that a training begins at; retraining begins at another one than the original training."""
        return self.new_model("original" if self.original is None else "retrained")

    def new_model(self, *name: int | str) -> Tensor:
        """Return theta [d] of a freshly initialised model on the device, seeded by name."""
        return initial_parameters(self.build, self.seed, "model", *name).to(self.federation.device)
