"""A run of a method or a training on the toy, as a stage drives it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from fu import plugins
from fu.data.clients import ClientData
from fu.evaluation import conflicts
from fu.evaluation.trace import columns
from fu.evaluation.values import measured
from fu.federation.checkpoint import Checkpoint, flat
from fu.federation.driver import Outcome, drive
from fu.federation.kept import KeptModels
from fu.federation.plugged import kind_of, state_of, training_of
from fu.federation.task import State, Task
from fu.pipeline.provenance.catalogue import declared, needs
from fu.plugins import Choice
from fu.training import fats
from tests.contract.names import sound
from tests.factories import (
    KINDS,
    default_params,
    make_data,
    make_federation,
    make_histories,
    make_partition,
    make_task,
)
from tests.federation.runs import KilledError

ROUNDS = 3
FOLDER = TemporaryDirectory()
TRACED = [name for name in sound("evaluation") if "TRACE" in declared("evaluation", name)]


def task_for(kind: str, name: str) -> Task:
    """Return a toy with what the plug-in is given: its histories, and the original model where there is one.

    The rate is low: ascent and penalties need it to stay among the finite numbers.
    """
    original = kind == "methods"
    if {"KEEPS", "CONTINUES"} & declared(kind, name).keys():
        return drawn(original, declared(kind, name).get("CONTINUES", name))
    data = make_data(make_partition(server=8, held_out=5), poison="all" if original else "share")
    stream = "unlearning" if original else "training"
    task = make_task(make_federation(data, lr=0.001, stream=stream), rounds=ROUNDS, trained=original)
    if not original:
        return task
    recorded = make_histories(make_task(make_federation(data, stream="training")))
    training = training_of(Choice(name="fedavg")) if declared(kind, name).get("RETRAINS") else None
    return replace(task, histories={key: recorded[key] for key in needs(name)}, training=training)


def drawn(original: bool, way: str) -> Task:
    """Return a toy whose clients are drawn, with the models that a training has kept; one of the first is forgotten."""
    part, theta, asked = make_partition(trigger=False, server=8, held_out=5), None, None
    if original:
        training, task = training_of(Choice(name=way)), drawn(False, way)
        size = task.federation.layout.size
        task = replace(task, kept=KeptModels.create(Path(FOLDER.name) / "kept", range(ROUNDS), ROUNDS, size))
        state = training.start(task)
        for round in range(ROUNDS):
            state = training.step(task, state, round)
        theta, asked = state.theta, fats.history(task).clients(0)[:1]
    federation = make_federation(
        make_data(part, asked=asked),
        lr=0.001,
        local_epochs=None,
        local_steps=3,
        batch_size=4,
        stream="unlearning" if original else "training",
    )
    task = make_task(federation, rounds=ROUNDS, original=theta, trained=False)
    kept = KeptModels(Path(FOLDER.name) / "kept") if original else None
    return replace(task, clients_per_round=2, with_replacement=True, kept=kept)


def two_rounds(kind: str, name: str, task: Task) -> list[State]:
    """Return the state at the start and after each of two rounds, with default hyper-parameters."""
    module = plugins.load(kind, name)
    p = default_params(module.Params)
    states = [module.start(task, p)]
    for round in range(2):
        states.append(module.step(task, p, states[-1], round))
    return states


def driven(
    kind: str,
    name: str,
    folder: Path,
    killed_after: int | None = None,
    change: Callable[[ClientData], ClientData] = lambda data: data,
) -> tuple[Task, Outcome]:
    """Drive a run with a checkpoint after every round, up to the end or until it is killed.

    As in a stage, the task's data name no test sample; `change`: what is done to them, but not to those that are
    measured on.
    """
    folder.mkdir(exist_ok=True)
    module, task = plugins.load(kind, name), task_for(kind, name)
    data = task.federation.data
    task = replace(task, federation=task.federation.holding(change(data).without_tests()))
    p = default_params(module.Params)
    states = task.training.state if hasattr(module, "RETRAINS") and task.training else kind_of(module)

    def step(state: State, round: int) -> State:
        if round == killed_after:
            raise KilledError
        return state_of(states, module, "step", task, p, state, round)

    return task, drive(
        task,
        lambda: state_of(states, module, "start", task, p),
        step,
        measured(task, data, TRACED),
        Checkpoint(folder / "job.checkpoint", {"key": "key"}, 0.0),
        name,
        watch=partial(conflicts.count, task) if kind == "methods" else None,
        recorders=KINDS if kind == "training" and task.clients_per_round is None else None,
        finished=getattr(module, "done", None),
        kind=states,
    )


def spoiled(data: ClientData) -> ClientData:
    """Return the data with NaN for the pixels of test and held-out samples (of text other bytes), and other labels."""
    part, x, y = data.partition, data.x.clone(), data.y.clone()
    rows = np.concatenate([*part.test, part.held_out, part.global_test])
    x[rows] = torch.nan if x.is_floating_point() else (x[rows] + 1) % data.classes
    y[rows] = (y[rows] + 1) % data.classes
    return ClientData(x, y, part, data.classes, data.poison, data.mark, data.request)


def rows_of(outcome: Outcome) -> list[dict[str, str]]:
    """Return the trace of a run, as a stage reads it."""
    names = columns([plugins.load("evaluation", name).TRACE for name in TRACED], outcome.rows)
    return [{name: str(row.get(name, "")) for name in names} for row in outcome.rows]


def assert_equal_states(one: State, two: State) -> None:
    """Compare bit for bit."""
    assert type(one) is type(two)
    assert_equal_tensors(flat(vars(one)), flat(vars(two)))


def assert_equal_outcomes(one: Outcome, two: Outcome) -> None:
    """Compare states, rows and histories bit for bit."""
    assert_equal_states(one.state, two.state)
    assert one.rows == two.rows
    assert one.histories.keys() == two.histories.keys()
    for kind, record in one.histories.items():
        assert_equal_tensors(record, two.histories[kind])


def assert_equal_tensors(one: Mapping[str, object], two: Mapping[str, object]) -> None:
    """Compare tensors and numbers by name."""
    assert one.keys() == two.keys()
    for key, value in one.items():
        other = two[key]
        if isinstance(value, Tensor):
            assert isinstance(other, Tensor)
            assert value.numpy().tobytes() == other.numpy().tobytes(), key
        else:
            assert value == other, key
