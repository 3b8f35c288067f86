"""Trainings and methods that do not fit a federation, a model or a request are refused in one sentence."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from fu import plugins
from fu.api.given import count, names, plugin
from fu.data.clients import ClientData
from fu.errors import UserError
from fu.federation.flat import Layout
from fu.federation.sgd import LocalTraining
from fu.federation.task import Task

ELSEWHERE = {"FILE", "SERVER"}  # declared by trainings that run only in the workflow


def able(kind: str, *constants: str) -> str:
    """Return the names of a kind's plug-ins that declare all these constants and need no workflow, comma-separated."""
    declared = {name: {*vars(plugin(kind, name))} for name in names(kind)}
    return ", ".join(name for name, has in declared.items() if has.issuperset(constants) and not has & ELSEWHERE)


def training(name: str, module: ModuleType, settings: Mapping[str, Any], recorded: Sequence[str]) -> None:
    """Raise `UserError` where a training cannot run with these settings, or record these histories."""
    if hasattr(module, "FILE"):
        raise UserError(f"{name}: reads a model from a file; give the model to trained() instead.")
    if hasattr(module, "SERVER"):
        raise UserError(f"{name}: trains on data of the server, which has none here; allowed: {able('training')}.")
    if lacking := [key for key in getattr(module, "NEEDS", ()) if not settings[key]]:
        where = " (of from_datasets)" if "local_steps" in lacking else ""
        raise UserError(f"{name}: needs {', '.join(lacking)}{where}.")
    if recorded and getattr(module, "RECORDS", True) is False:
        raise UserError(f"record_for: {name} records no history, but {recorded[0]!r} is needed.")
    if recorded and settings["clients_per_round"] is not None:
        raise UserError(f"record_for: {recorded[0]!r} is of all clients in every round; leave out clients_per_round.")


def histories(method: str) -> set[str]:
    """Return the histories that a method needs; `UserError` where one is recorded only for clients known beforehand."""
    needs: set[str] = plugin("methods", method).needs
    if early := [kind for kind in sorted(needs) if hasattr(plugins.load("histories", kind), "ATTACK")]:
        raise UserError(
            f"{method}: needs {early[0]!r}, for which training must know who will be forgotten; it runs only in the "
            "workflow."
        )
    return needs


def statistics(kind: str, name: str, layout: Layout) -> None:
    """Raise `UserError` where a model has running statistics, and a training or method does not average them."""
    if layout.size > layout.parameters and not hasattr(plugin(kind, name), "STATISTICS"):
        raise UserError(
            f"{name}: does not average the model's running statistics (batch normalisation); allowed: "
            f"{able(kind, 'STATISTICS')}."
        )


def request(method: str, module: ModuleType, task: Task, before: LocalTraining, rounds: int) -> None:
    """Raise `UserError` where settings do not suit a method; `before`, `rounds`: those of the training."""
    now = task.federation.training
    if hasattr(module, "IMAGES") and not task.federation.data.x.is_floating_point():
        raise UserError(f"{method}: needs images, but these data sets have text.")
    if hasattr(module, "MOMENTUM") and now.momentum:
        raise UserError(f"momentum: {method} has its own; allowed: 0.")
    if not hasattr(module, "CONTINUES"):
        return
    if other := [key for key, value in now if value != getattr(before, key)]:
        raise UserError(
            f"{other[0]}: {method} continues the training; allowed: {getattr(before, other[0])}, as in training."
        )
    if hasattr(module, "done") and task.rounds != rounds:
        raise UserError(f"rounds: {method} completes the training; allowed: {rounds}, as in training.")


def drawn(clients: int, clients_per_round: int | None = None, with_replacement: bool = False) -> None:
    """Raise `UserError` where more clients would be drawn than take part, or none are drawn with replacement."""
    if with_replacement and clients_per_round is None:
        raise UserError("with_replacement: requires clients_per_round.")
    number = 1 if clients_per_round is None else count(clients_per_round, "clients_per_round")
    if number > clients and not with_replacement:
        raise UserError(
            f"clients_per_round: must be 1 to {clients}, as many as take part, got {number}; or set with_replacement."
        )


def batches(data: ClientData, training: LocalTraining) -> None:
    """Raise `UserError` where one of a client's batches would have a single sample."""
    batch, steps = training.batch_size, training.local_steps
    for client in data.retained:
        size = data.size(client)
        if ((size if steps is None else min(size, steps * batch)) - 1) % batch == 0:
            raise UserError(
                f"batch_size: {batch} leaves one of the {size} training samples of client {client} alone, and the "
                "model fails on one in training mode (batch normalisation); use another."
            )
