"""Three models that an evaluation must judge: one retrained, the original that nobody touched, a broken one.

All are of a small federation on scikit-learn's digits, whose original training took a backdoor from one of the clients.
Each comes as the run of a method would leave it, with the trace of its rounds: retraining; doing nothing; a round
that replaces all parameters by normal numbers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from fu.attacks import patch
from fu.data.clients import ClientData, Poison
from fu.data.partition import draw
from fu.evaluation import conflicts
from fu.evaluation.context import Context
from fu.evaluation.values import measured
from fu.federation.checkpoint import Checkpoint
from fu.federation.driver import drive
from fu.federation.local import Federation, LocalTraining
from fu.federation.plugged import training_of
from fu.federation.task import State, Task
from fu.methods import retrain
from fu.partitions import iid
from fu.plugins import Choice
from fu.training import fedavg
from tests.contract.runs import TRACED, rows_of
from tests.evaluation.shadows import trained
from tests.factories import CLASSES, SMALL, builder
from tests.systems import random

HELD_OUT, SHADOWS = 97, 4
ROUNDS, LOCAL = 40, LocalTraining(lr=0.3, lr_decay=1.0, batch_size=20, local_epochs=2)


def make_digits(poison: Poison) -> ClientData:
    """Share scikit-learn's digits, 8 by 8 pixels, out to four clients, one of them with a backdoor."""
    digits = load_digits()
    x = torch.from_numpy(digits.images[..., None] / 16).float()
    y = torch.from_numpy(digits.target).long()
    attack = patch.Params(size=4, margin=0)
    part = draw(
        digits.target,
        seed=0,
        samples=len(y) - HELD_OUT,
        deal=lambda labels, rng: iid.deal(labels, CLASSES, 4, iid.Params(), rng),
        train_share=0.7,
        validation_share=0.2,
        attacked=(1,),
        attack=lambda train, rng: patch.draw(train, CLASSES, attack, rng),
    )
    part = replace(
        part, held_out=np.setdiff1d(np.arange(len(y)), np.concatenate([*part.train, *part.validation, *part.test]))
    )
    return ClientData(x, y, part, CLASSES, poison, partial(patch.mark, part.attack, classes=CLASSES))


def make_task(stream: str, poison: Poison) -> Task:
    """Return a task on the digits."""
    data, build = make_digits(poison), builder(shape=SMALL, hidden=32)
    federation = Federation(build(), data, LOCAL, stream, seed=0)
    return Task(federation, build, data.forgotten, data.retained, ROUNDS, 0)


def run(task: Task, start: Callable[[], State], step: Callable[[State, int], State], folder: Path) -> Context:
    """Drive a run, and return what an evaluator is given of its model."""
    network, data = task.federation.network, task.federation.data
    outcome = drive(
        task,
        start,
        step,
        measured(task, data, TRACED),
        Checkpoint(folder / "job.checkpoint", {}, float("inf")),
        "three models",
        watch=partial(conflicts.count, task) if task.original is not None else None,
    )
    return Context(network, data, outcome.state.theta, task.original, "unlearned", rows_of(outcome))


def make_three(folder: Path) -> dict[str, Context]:
    """Return what an evaluator is given of the retrained, the original and the broken model."""
    training = make_task("training", "share")
    fed = fedavg.Params()
    original = run(
        training, lambda: fedavg.start(training, fed), lambda s, r: fedavg.step(training, fed, s, r), folder
    ).theta

    def task() -> Task:
        return replace(make_task("unlearning", "all"), original=original)

    again, p = replace(task(), training=training_of(Choice(name="fedavg"))), retrain.Params()
    idle, broken = task(), replace(task(), rounds=1)
    shadows = trained(idle.federation.data, idle.build, LOCAL, ROUNDS, SHADOWS)
    found = {
        "retrained": run(again, lambda: retrain.start(again, p), lambda s, r: retrain.step(again, p, s, r), folder),
        "original": run(idle, lambda: State(original), lambda s, _: s, folder),
        "broken": run(broken, lambda: State(original), lambda *_: State(random(original.numel())), folder),
    }
    return {name: replace(context, shadows=shadows) for name, context in found.items()}


def complaints(
    name: str, metrics: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return what is wrong with an evaluator's judgement; `found`: model -> metric -> value.

    A model is told from the retrained one where the larger of the two numbers is more than twice the smaller one.
    """
    declared = [(metric, *told) for metric, about in metrics.items() for told in about.get("tells", {}).items()]
    if not declared:
        return [
            f"{name}.py (evaluation): METRICS: no metric tells the untouched original or a broken model from a "
            "retrained one; say which does, and on which side it lies, as 'tells': {'original': 'higher'}."
        ]
    out = []
    for metric, model, side in declared:
        number, bar = (_mean(found[which].get(metric, math.nan)) for which in (model, "retrained"))
        low, high = (number, bar) if side == "lower" else (bar, number)
        if not (low < high and abs(high - low) > max(abs(high), abs(low)) / 2):
            out.append(
                f"{name}.py (evaluation): METRICS: {metric}: tells the {model} model by a {side} number than the "
                f"retrained one's, but is {number:g} of the {model} and {bar:g} of the retrained model."
            )
    return out


def _mean(value: float | Mapping[int, float]) -> float:
    """Return a number of a model, or the mean of those of its clients."""
    return fmean(value.values()) if isinstance(value, Mapping) else value
