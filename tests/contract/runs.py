"""A run of a method or a training on the toy, as a stage drives it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from fu import plugins
from fu.evaluation import conflicts
from fu.evaluation.measure import measure
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.task import State, Task
from fu.pipeline.catalogue import needs
from tests.factories import (
    KINDS,
    default_params,
    make_context,
    make_data,
    make_federation,
    make_histories,
    make_partition,
    make_task,
)

ROUNDS = 3


class KilledError(Exception):
    """Stands for whatever ends a job in the middle."""


def task_for(kind: str, name: str) -> Task:
    """Return a toy with what the plug-in is given: its histories, and the original model where there is one.

    The rate is low: ascent and penalties need it to stay among the finite numbers.
    """
    original = kind == "methods"
    data = make_data(make_partition(), poison="all" if original else "share")
    stream = "unlearning" if original else "training"
    task = make_task(make_federation(data, lr=0.001, stream=stream), rounds=ROUNDS, trained=original)
    if not original:
        return task
    recorded = make_histories(make_task(make_federation(data, stream="training")))
    return replace(task, histories={key: recorded[key] for key in needs(name)})


def driven(kind: str, name: str, folder: Path, killed_after: int | None = None) -> tuple[Task, Outcome]:
    """Drive a run with a checkpoint after every round, up to the end or until it is killed."""
    module, task = plugins.load(kind, name), task_for(kind, name)
    p = default_params(module.Params)

    def step(state: State, round: int) -> State:
        if round == killed_after:
            raise KilledError
        following: State = module.step(task, p, state, round)
        return following

    return task, drive(
        task,
        lambda: module.start(task, p),
        step,
        lambda theta: measure(make_context(task, theta)),
        Checkpoint(folder / "job.checkpoint", {"key": "key"}, 0.0),
        name,
        watch=partial(conflicts.count, task) if kind == "methods" else None,
        recorders=KINDS if kind == "training" else None,
    )


def assert_equal_states(one: State, two: State) -> None:
    """Compare bit for bit."""
    assert one.keys() == two.keys()
    for key, value in one.items():
        other = two[key]
        if isinstance(value, Tensor):
            assert isinstance(other, Tensor)
            assert value.numpy().tobytes() == other.numpy().tobytes(), key
        else:
            assert value == other, key
