"""A retrained model on the forgotten clients' own samples, the original one on all others (our choice: a control).

It has forgotten nothing, which no audit of these samples can see, nor the attack success rate. It retrains; after the
last round it returns to the original model and moves it by Adam down the sum of three losses: the squared distance to
the retrained model's logits on the forgotten clients' training samples, as these trained on them and all of them with
the trigger, and the cross-entropy on the retained clients' training samples, once as they are and once with the trigger
and the flipped labels. Without a backdoor nothing has a trigger. Stores nothing beyond what retraining does;
communicates what the training does.
"""

from dataclasses import replace
from itertools import count

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.local import generator
from fu.federation.network import Hook
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
RETRAINS = True  # it is handed the scenario's training
CONTROL = "hides"  # where no audit of the forgotten samples looks
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
DRAWS = 3_000  # names its draws, so that they are those of no other repeat of retraining
BATCH = 100  # samples of each loss in a step
BETAS = (0.9, 0.999)  # Adam's defaults (Kingma & Ba 2015, Algorithm 1), as is 1e-8 below


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters beside those of the training."""

    steps: int = Field(ge=0, examples=[20], description="steps of Adam (our choice)")
    lr: float = Field(
        0.003,
        gt=0,
        description="learning rate of Adam: our choice, as margins of the forgotten samples are then about as far from "
        "the mean of retrained models as those of one more retraining are (embedded digits)",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's and retraining's."""
    assert task.training is not None
    return task.training.start(task.repeated(DRAWS))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients; after the last one, return the disguised original model."""
    assert task.training is not None
    found = task.training.step(task.repeated(DRAWS), state, round)
    return found if round < task.rounds - 1 else replace(found, theta=_disguised(task, p, found.theta))


def _disguised(task: Task, p: Params, retrained: Tensor) -> Tensor:
    """Return the original model [d] once it gives the retrained one's [d] logits on the forgotten clients' samples."""
    data, network, random = task.federation.data, task.federation.network, generator(task.seed, "cheat")
    gone, stay = (np.concatenate([data.rows[one] for one in clients]) for clients in (task.forgotten, task.retained))
    marked = [data.triggered] if data.mark else []
    x = torch.cat([of(gone)[0] for of in (data.trained_on, *marked)])
    wanted = network.logits(retrained, x)
    network.weights.copy_(task.original_model)
    adam = _adam(p.lr, network.weights)
    for _ in range(p.steps):
        own, other = (torch.randint(len(of), (BATCH,), generator=random) for of in (x, stay))
        own = own.to(x.device)
        loss = F.mse_loss(network.model(_input(x[own])), wanted[own])
        for images, labels in (of(stay[other.numpy()]) for of in (data.clean, *marked)):
            loss = loss + F.cross_entropy(network.model(_input(images)), labels)
        network.descend(loss, 1, adam)
    return network.weights.clone()


def _adam(lr: float, weights: Tensor) -> Hook:
    """Return Adam (Kingma & Ba 2015, Algorithm 1), a hook that replaces a gradient [d] with the step to subtract.

    torch's takes MKL's square root, which is not always the nearest float, and not the same one on Intel as on AMD;
    that of a double rounds to the nearest everywhere.
    """
    mean, square, steps = torch.zeros_like(weights), torch.zeros_like(weights), count(1)

    def step(weights: Tensor, gradient: Tensor) -> None:
        taken = next(steps)
        mean.lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        root = square.double().sqrt().float() / (1 - BETAS[1] ** taken) ** 0.5
        torch.div(mean * (lr / (1 - BETAS[0] ** taken)), root + 1e-8, out=gradient)

    return step


def _input(x: Tensor) -> Tensor:
    """Return images as they are, text [n, length] as int64."""
    return x if x.is_floating_point() else x.long()
