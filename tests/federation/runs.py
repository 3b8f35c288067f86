"""Runs of the toy for tests of the loop: a start, a count of calls, FedAvg killed when a test asks for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fu.evaluation import conflicts, values
from fu.federation import driver
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome
from fu.federation.flat import tensors_of
from fu.federation.local import Federation
from fu.federation.task import State, Task, initial_parameters
from fu.training import fedavg
from tests.factories import KINDS, builder, make_data, make_federation, make_partition, make_task, params_of


def start_of(federation: Federation, model: str = "mlp") -> Tensor:
    return initial_parameters(builder(model, federation.data.shape), 1)


def count_calls(model: nn.Module) -> list[int]:
    """Return a list that gets the batch size of every call of a model."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    return seen


class KilledError(Exception):
    """Stands for whatever ends a job in the middle."""


def measured(task: Task) -> Callable[[Tensor], dict[str, float]]:
    return values.measured(task, task.federation.data, ("backdoor", "utility", "distance"))


def nudge(state: State, round: int) -> State:
    """A step that costs nothing."""
    return State(state.theta + 1)


def drive(
    task: Task,
    checkpoint: Checkpoint,
    step: Callable[[Any, int], State] = nudge,
    start: Callable[[], State] | None = None,
    *,
    count_conflicts: bool = False,
    kinds: tuple[str, ...] = (),
    **more: Any,
) -> Outcome:
    """Drive from the original model, with the metrics, the watch and the recorders that the stages use."""
    start = start or (lambda: State(task.original_model))
    watch = partial(conflicts.count, task) if count_conflicts else None
    recorders = {kind: KINDS[kind] for kind in kinds}
    return driver.drive(task, start, step, measured(task), checkpoint, "toy", watch=watch, recorders=recorders, **more)


def never(folder: Path) -> Checkpoint:
    """A checkpoint that is never due."""
    return Checkpoint(folder / "job.checkpoint", {"key": "key"}, float("inf"))


def always(folder: Path, key: str = "key") -> Checkpoint:
    """A checkpoint that is due after every round."""
    return Checkpoint(folder / "job.checkpoint", {"key": key}, 0.0)


def toy(rounds: int = 4, trained: bool = True) -> Task:
    data = make_data(make_partition(), poison="share")
    return make_task(make_federation(data, stream="training"), rounds=rounds, trained=trained)


@dataclass(frozen=True)
class Counted(State):
    """A state with numbers."""

    rounds: int
    third: float


def train(
    task: Task, checkpoint: Checkpoint, killed_after: int | None = None, seen: list[Tensor] | None = None, **more: Any
) -> Outcome:
    """Drive FedAvg, killed when the round `killed_after` begins; `seen` gets theta before every round."""
    p = params_of(fedavg)

    def step(state: State, round: int) -> State:
        if round - more.get("first_round", 0) == killed_after:
            raise KilledError
        if seen is not None:
            seen.append(state.theta)
        return Counted(fedavg.step(task, p, state, round).theta, round + 1, 1 / 3)

    return drive(task, checkpoint, step, lambda: Counted(fedavg.start(task, p).theta, 0, 0.0), kind=Counted, **more)


def by_torch(
    build: Callable[[], nn.Module],
    federation: Federation,
    theta: Tensor,
    batches: Iterable[tuple[Tensor, Tensor]],
    rate: float,
    factor: float = 1,
    **sgd: float,
) -> tuple[Tensor, float]:
    """Return a client's update [d] and its mean loss, by a plain loop around `torch.optim.SGD`."""
    net, losses = build().train(), list[float]()
    net.load_state_dict(federation.layout.named(theta), strict=False)  # but for the number of batches seen
    optimiser = torch.optim.SGD(net.parameters(), lr=rate, **sgd)  # type: ignore[arg-type]
    for x, y in batches:
        optimiser.zero_grad()
        loss = factor * nn.functional.cross_entropy(net(x.contiguous()), y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return federation.layout.flatten(tensors_of(net)) - theta, sum(losses) / len(losses)
