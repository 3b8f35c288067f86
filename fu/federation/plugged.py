"""Load trainings and methods with their hyper-parameters, and check the states that they return."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np
import torch
from torch import Tensor

from fu import plugins
from fu.data.partition import Indices
from fu.errors import UserError
from fu.federation.checkpoint import Checkpoint, flat
from fu.federation.driver import Outcome, drive
from fu.federation.task import State, Task, Training
from fu.plugins import Choice

Measure = Callable[[Tensor], dict[str, float]]


def reads_tests(method: ModuleType, params: Any) -> bool:
    """Return whether a method gets test samples: `TESTS` says with which hyper-parameter it reads them."""
    if not hasattr(method, "TESTS"):
        return False
    name, value = method.TESTS
    return bool(getattr(params, name) == value)


def training_of(choice: Choice) -> Training:
    """Return a way to train with its hyper-parameters."""
    plugin = plugins.load("training", choice.name)
    params = plugins.params("training", choice, f"training {choice.name}")
    kind = kind_of(plugin)
    return Training(
        kind,
        lambda task: state_of(kind, plugin, "start", task, params),
        lambda task, state, round: state_of(kind, plugin, "step", task, params, state, round),
        (lambda task: _rows_of(plugin, task, params)) if hasattr(plugin, "trained_on") else None,
    )


def _rows_of(plugin: ModuleType, task: Task, params: Any) -> Indices:
    """Return the rows that a training had in its batches [n]; `UserError` where these are no numbers of rows."""
    rows: Indices = plugin.trained_on(task, params)
    if not (isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind == "i"):
        got = f"{rows.dtype} {[*rows.shape]}" if isinstance(rows, np.ndarray) else type(rows).__name__
        where = plugins.place_of(plugin, "trained_on")
        raise UserError(f"{where}: trained_on must return row numbers (an integer array [n]), got {got}.")
    return rows


def kind_of(plugin: ModuleType) -> type[State]:
    """Return the state that a plug-in's `start` is annotated to return, else `State`; `UserError` where it is none."""
    try:
        kind = get_type_hints(plugin.start).get("return", State)
    except NameError as error:
        kind = error
    if not (isinstance(kind, type) and issubclass(kind, State)):
        raise UserError(f"{plugins.place_of(plugin, 'start')}: start must be annotated to return a State, got {kind}.")
    return kind


def state_of(kind: type[State], plugin: ModuleType, name: str, task: Task, *given: Any) -> State:
    """Return the state of this kind that a function of a plug-in returns; `UserError` where it is none."""
    state: State = getattr(plugin, name)(task, *given)
    size, got = task.federation.layout.size, "" if type(state) is kind else type(state).__name__
    got = (
        got
        or plugins.mismatch(flat(vars(state)), Tensor, float, int)
        or plugins.mismatch({"theta": state.theta}, Tensor)
    )
    if not got and (state.theta.dtype != torch.float32 or state.theta.shape != (size,)):
        got = f"'theta' of {state.theta.dtype} {[*state.theta.shape]}"
    if got:
        raise UserError(
            f"{plugins.place_of(plugin, name)}: {name} must return a {kind.__name__}, whose 'theta' is the model "
            f"(float32 [{size}]) and all else tensors and numbers; got {got}."
        )
    return state


def train(
    task: Task, training: Training, measure: Measure, checkpoint: Checkpoint, label: str, **options: Any
) -> Outcome:
    """Run a training's rounds; `options`: those of `drive`."""
    return drive(
        task,
        lambda: training.start(task),
        lambda state, round: training.step(task, state, round),
        measure,
        checkpoint,
        label,
        kind=training.state,
        **options,
    )
