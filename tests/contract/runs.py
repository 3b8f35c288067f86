"""A run of a method or a training on the toy, as a stage drives it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from fu import plugins
from fu.evaluation import conflicts
from fu.evaluation.trace import columns
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import Outcome, drive
from fu.federation.task import State, Task
from fu.pipeline.catalogue import available, declared, needs
from fu.pipeline.stages.compute import measured, training_of
from fu.plugins import Choice
from tests.factories import (
    KINDS,
    default_params,
    make_data,
    make_federation,
    make_histories,
    make_partition,
    make_task,
)

ROUNDS = 3
TRACED = [name for name in available("evaluation") if "TRACE" in declared("evaluation", name)]


class KilledError(Exception):
    """Stands for whatever ends a job in the middle."""


def task_for(kind: str, name: str) -> Task:
    """Return a toy with what the plug-in is given: its histories, and the original model where there is one.

    The rate is low: ascent and penalties need it to stay among the finite numbers.
    """
    original = kind == "methods"
    data = make_data(make_partition(server=8, held_out=5), poison="all" if original else "share")
    stream = "unlearning" if original else "training"
    task = make_task(make_federation(data, lr=0.001, stream=stream), rounds=ROUNDS, trained=original)
    if not original:
        return task
    recorded = make_histories(make_task(make_federation(data, stream="training")))
    training = training_of(Choice(name="fedavg")) if declared(kind, name).get("RETRAINS") else None
    return replace(task, histories={key: recorded[key] for key in needs(name)}, training=training)


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
        measured(task, TRACED),
        Checkpoint(folder / "job.checkpoint", {"key": "key"}, 0.0),
        name,
        watch=partial(conflicts.count, task) if kind == "methods" else None,
        recorders=KINDS if kind == "training" else None,
    )


def rows_of(outcome: Outcome) -> list[dict[str, str]]:
    """Return the trace of a run, as a stage reads it."""
    names = columns([plugins.load("evaluation", name).TRACE for name in TRACED], outcome.rows)
    return [{name: str(row.get(name, "")) for name in names} for row in outcome.rows]


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
