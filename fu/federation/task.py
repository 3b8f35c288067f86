"""What a method is given: the federation, who is to be forgotten, the original model and recorded histories."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fu.federation.flat import Layout
from fu.federation.local import Federation
from fu.seeds import derive_integer

State = dict[str, Tensor | float | int]
Record = dict[str, Tensor]


def theta_of(state: State) -> Tensor:
    """Return the current model theta [d] of a state."""
    theta = state["theta"]
    assert isinstance(theta, Tensor)
    return theta


def initial_parameters(build: Callable[[], nn.Module], *name: int | str) -> Tensor:
    """Return theta [d] of a freshly initialised model, seeded by name."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_integer(*name))
        model = build()
    return Layout(model).flatten(dict(model.named_parameters()))


@dataclass(frozen=True)
class Task:
    """One run: `original` [d] is absent while the original model is trained.

    `histories`: kind -> named tensors that the training recorded. `rounds`: how many rounds this phase has.
    """

    federation: Federation
    build: Callable[[], nn.Module]
    forgotten: list[int]
    retained: list[int]
    rounds: int
    seed: int
    original: Tensor | None = None
    histories: dict[str, dict[str, Tensor]] = field(default_factory=dict)

    @property
    def clients(self) -> list[int]:
        """All clients."""
        return sorted([*self.forgotten, *self.retained])

    @property
    def original_model(self) -> Tensor:
        """The original model [d], for methods that start from it."""
        assert self.original is not None
        return self.original

    def new_model(self, *name: int | str) -> Tensor:
        """Return theta [d] of a freshly initialised model on the device, seeded by name."""
        return initial_parameters(self.build, self.seed, "model", *name).to(self.federation.device)
