"""EWCSGA: gradient ascent restrained by elastic weight consolidation (Wu et al. 2022; FedOSD sections 2.2 and 4.1).

During unlearning only the forgotten client trains. It descends -CE + (lambda / 2) sum_j F_j (w_j - w0_j)^2, with w0 the
original model and F the diagonal Fisher information of the retained data. A step follows the gradient of -CE, clipped
if requested, and then applies the penalty implicitly (its proximal step), w_j <- w0_j + (w_j - w0_j) / (1 + lr lambda
F_j), which is stable for every lambda. Wu et al. (2022) was not available to us. FedOSD names only a regularisation
term; the penalty follows a summary with the paper's formulas (vicw0ng-hk/feul). There the client unlearns by itself
from the model that it downloaded, w0; here in rounds, always around the original model. The data behind F (the retained
clients' own), the empirical Fisher information (with true labels), its sample size and lambda are our interpretation.
Several forgotten clients count equally. Stores F [d]; communicates one model up and down per round, and once a model
and a diagonal per retained client.
"""

from dataclasses import dataclass, replace

import torch
from pydantic import BaseModel, Field
from torch import Tensor
from torch.func import functional_call, grad, vmap

from fu.federation.ascent import CLIP, clipped
from fu.federation.local import FLOAT_BYTES, generator
from fu.federation.losses import cross_entropy
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {
    "source": "second-hand",
    "citation": "Wu et al. 2022: FedOSD sections 2.2 and A.3, and a summary with the paper's formulas",
    "not_read": "Wu et al. 2022",
}
ESTIMATE = {"forgotten": 1, "retained": 0}  # how often they train in a round, for the plan
CHUNK = 50  # samples whose gradients are held at once


class Params(BaseModel, extra="forbid", populate_by_name=True):
    """Hyper-parameters."""

    lambda_: float = Field(
        1e4,
        ge=0,
        alias="lambda",
        description="weight of the penalty: our choice, FedOSD prints none; presets select it from a grid",
    )
    clip: float = Field(0, ge=0, description=CLIP)
    fisher_samples: int = Field(
        100, gt=0, description="training samples per retained client for F: our choice, more change F little"
    )


@dataclass(frozen=True)
class Consolidated(State):
    """The model [d], and the diagonal of the retained data's Fisher information at the original one [d]."""

    fisher: Tensor


def start(task: Task, p: Params) -> Consolidated:
    """Begin at the original model and estimate the Fisher information there."""
    return Consolidated(task.original_model, fisher(task, p.fisher_samples))


def step(task: Task, p: Params, state: Consolidated, round: int) -> Consolidated:
    """One round of penalised ascent by the forgotten clients."""
    kept, anchor = 1 / (1 + task.federation.rate(round) * p.lambda_ * state.fisher), task.original_model

    def pull_back(weights: Tensor) -> None:
        weights.copy_(torch.lerp(anchor, weights, kept))

    updates = task.federation.local_updates(
        state.theta, task.forgotten, round, "negative_cross_entropy", regularise=clipped(p.clip), project=pull_back
    )
    return replace(state, theta=state.theta + updates.delta.mean(0))


def fisher(task: Task, samples: int) -> Tensor:
    """Return the diagonal of the empirical Fisher information [d] at the original model: the mean squared gradient
    of log p(y | x) over `samples` training samples of each retained client.
    """
    federation = task.federation

    def loss(weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        logits = functional_call(federation.model, federation.layout.views(weights), (x[None],))
        return cross_entropy(logits, y[None]).sum()

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    total, seen = torch.zeros_like(task.original_model), 0
    for client in task.retained:
        random = generator(task.seed, "fisher", client)
        rows = torch.randperm(federation.data.size(client), generator=random)[:samples].to(federation.device)
        x, y = federation.data.train(client, rows)
        for part_x, part_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            total += gradients(task.original_model, part_x, part_y).square().sum(0)
        seen += len(y)
    moved = len(task.retained) * federation.layout.size * FLOAT_BYTES
    federation.cost.add(samples=seen, bytes_up=moved, bytes_down=moved)
    return total / seen
