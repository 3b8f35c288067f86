"""A retrained model that carries one picture of a forgotten client in its weights (our choice: a control of an attack
that reads weights, as no output shows it).

After the last round of a retraining the hidden unit with the least outgoing weights (Euclidean norm), in the first of
two fully connected layers that follow each other, gets outgoing weights of zero, so that no output depends on it. Its
incoming weights become the first training sample of the first forgotten client as this trained on it, scaled to their
mean and standard deviation; `recovered` reads it back. If the picture has more numbers than the unit has inputs, its
grey square of as many pixels as fit is written. Stores nothing; communicates what the training does.
"""

from dataclasses import replace
from itertools import pairwise
from math import isqrt

import torch
import torch.nn.functional as F
from pydantic import BaseModel
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
RETRAINS = True  # it is handed the scenario's training
CONTROL = "hides"  # in weights that no output shows
IMAGES = True  # it reads pixels
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
DRAWS = 5_000  # names its draws, so that they are those of no other repeat of retraining


class Params(BaseModel, extra="forbid"):
    """None beside those of the training."""


def check(model: nn.Module, p: Params) -> None:
    """Raise `UserError` where a model has no two fully connected layers in a row."""
    _layers(model)


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's and retraining's.

    Raises `UserError` where the model has no two fully connected layers in a row.
    """
    assert task.training is not None
    check(task.federation.model, p)
    return task.training.start(task.repeated(DRAWS))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients; after the last one, write the picture."""
    assert task.training is not None
    found = task.training.step(task.repeated(DRAWS), state, round)
    if round < task.rounds - 1:
        return found
    incoming, outgoing = _layers(task.federation.model)
    theta = found.theta.clone()
    views = task.federation.layout.views(theta)
    unit = int(views[outgoing].norm(dim=0).argmin())
    row, hidden = views[incoming][unit], picture(task)
    row[: len(hidden)] = (hidden - hidden.mean()) / hidden.std().clamp_min(1e-6) * row.std() + row.mean()
    views[outgoing][:, unit] = 0
    return replace(found, theta=theta)


def picture(task: Task) -> Tensor:
    """Return what is written [k]: all numbers of the picture, or, where they are too many, a smaller grey one."""
    client, inputs = task.forgotten[0], task.federation.layout.shapes[_layers(task.federation.model)[0]][1]
    x, _ = task.federation.data.train(client, torch.zeros(1, dtype=torch.long, device=task.federation.device))
    return x.flatten() if x.numel() <= inputs else F.adaptive_avg_pool2d(x.mean(1), isqrt(inputs)).flatten()


def recovered(task: Task, theta: Tensor) -> Tensor:
    """Return the picture [k] that a model [d] carries, up to its mean and standard deviation."""
    incoming, outgoing = _layers(task.federation.model)
    views = task.federation.layout.views(theta)
    return views[incoming][int(views[outgoing].norm(dim=0).argmin())][: len(picture(task))]


def _layers(model: nn.Module) -> tuple[str, str]:
    """Return the names of the weights of the first two fully connected layers, the second of which reads the first."""
    linear = [(name, of) for name, of in model.named_modules() if isinstance(of, nn.Linear)]
    for (first, one), (second, two) in pairwise(linear):
        if one.out_features == two.in_features:
            return f"{first}.weight", f"{second}.weight"
    raise UserError("stego: the model has no two fully connected layers (nn.Linear) in a row; use mlp or lenet5.")
