"""Federated unlearning that balances global stability (Shao et al. 2024, section 6.1).

Each round is one round of FedAvg on the retained clients, from w to w-bar, followed by a correction at the server
(problem P3):

    w <- w-bar - eta_g g_c,   g_c = lambda P_J (g_J - proj_{g_S} g_J),

    g_S = (w - w-bar) / eta_l,   g_J = grad F_J(w_o) + L (w-bar - w_o),

where P_J is the forgotten clients' share of the training samples. The direction of the retained clients is left
unchanged; orthogonally to it, the server takes a step towards the forgotten clients' loss. The paper prints grad
F_{-J}(w_o) in g_J (section 6.1, Assumption 6.2), but P3 requires grad F_J; the first term of its h, lambda (1 - P_J)
g_S, is projected away. Only the product lambda eta_g matters, and L has no effect in the first round, as w-bar - w_o
lies along g_S. At lambda = 0 the method is FedAvg on the retained clients. Stores grad F_J(w_o) [d]; communicates one
model up and down per client and round, and once a model down and a gradient up per forgotten client.

`as_published` is the authors' code: at the end of its local training each client takes one more optimiser step, tensor
by tensor, with the gradient (1 + .7 lambda) g_s + .3 lambda (g - proj_{g_s} g), where g_s is the gradient of its last
mini-batch and g = L (w_i - w_o). There, the forgotten clients' gradient is zero and P_J is .3.
"""

from dataclasses import dataclass, replace

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.gradient import loss_gradient
from fu.federation.local import FLOAT_BYTES, Federation, Updates, aggregate
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "paper and code", "citation": "Shao et al. 2024, section 6.1"}
STATISTICS = True  # it averages running statistics, too
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan
PUBLISHED_SHARE = 0.3  # P_J in the authors' code


class Params(BaseModel, extra="forbid", populate_by_name=True):
    """Hyper-parameters."""

    lambda_: float = Field(1.0, ge=0, alias="lambda", description="weight of the stability term: 1, 3 and 5 in Table 1")
    smoothness: float = Field(5.0, ge=0, description="L: 5 in the authors' code; the paper prints none")
    server_lr: float | None = Field(
        None, ge=0, description="eta_g; null: the clients' rate (Theorem 6.7). Only the product lambda eta_g matters"
    )
    as_published: bool = Field(False, description="apply the step that each client takes in the authors' code")


@dataclass(frozen=True)
class Corrected(State):
    """The model [d], and the gradient of the forgotten clients' loss at the original one [d]."""

    forgotten: Tensor


def start(task: Task, p: Params) -> Corrected:
    """Begin at the original model, where the forgotten clients send their gradient, once."""
    original = task.original_model
    return Corrected(original, torch.zeros_like(original) if p.as_published else gradient_of(task, original))


def step(task: Task, p: Params, state: Corrected, round: int) -> Corrected:
    """Train one round on the retained clients and correct what they have moved."""
    theta, federation, clients = state.theta, task.federation, task.participants(round)
    if p.as_published:
        return replace(state, theta=theta + aggregate(published(task, p, theta, clients, round), "samples"))
    mean = theta + federation.mean_update(theta, clients, round)
    rate = federation.rate(round)
    towards = state.forgotten + p.smoothness * (mean - task.original_model)
    weight = p.lambda_ * share(task)
    across, moved = torch.zeros_like(mean), federation.layout.parameters  # running statistics are averaged alone
    across[:moved] = correction(((theta - mean) / rate)[:moved], towards[:moved], weight)
    return replace(state, theta=mean - (rate if p.server_lr is None else p.server_lr) * across)


def correction(retained: Tensor, forgotten: Tensor, weight: float) -> Tensor:
    """Return g_c [d]: `weight` times the part of g_J (`forgotten`) that is orthogonal to g_S (`retained`), if any."""
    along, given = retained.double(), forgotten.double()
    square = along @ along
    if square > 0:
        given = given - (given @ along / square) * along
    return (weight * given).to(forgotten.dtype)


def share(task: Task) -> float:
    """Return P_J, the forgotten clients' share of all training samples."""
    size = task.federation.data.size
    gone, kept = sum(map(size, task.forgotten)), sum(map(size, task.retained))
    return gone / (gone + kept)


def gradient_of(task: Task, theta: Tensor) -> Tensor:
    """Return the gradient [d] of the forgotten clients' mean loss F_J at a model [d], over all their samples."""
    federation, total = task.federation, torch.zeros_like(theta)
    sizes = [federation.data.size(client) for client in task.forgotten]
    for client, size in zip(task.forgotten, sizes, strict=True):
        _, gradient = loss_gradient(federation.network, theta, *federation.data.train(client))
        total.add_(gradient, alpha=size / sum(sizes))
    moved = len(sizes) * federation.layout.size * FLOAT_BYTES
    federation.cost.add(samples=sum(sizes), bytes_up=moved, bytes_down=moved)
    return total


def published(task: Task, p: Params, theta: Tensor, clients: list[int], round: int) -> Updates:
    """Return the updates of clients that each take the published code's further step, with its momentum."""
    each = {}
    for client in dict.fromkeys(clients):
        steps = task.federation.steps_of(client, None)
        last = LastStep(p, task.federation, task.original_model, steps)
        each[client] = task.federation.local_updates(theta, [client], round, steps=steps + 1, regularise=last)
    return Updates.joined([each[client] for client in clients])


class LastStep:
    """Leaves the gradients of a client's steps as they are, and replaces that of the step after them."""

    def __init__(self, p: Params, federation: Federation, original: Tensor, steps: int) -> None:
        """`steps`: how many are left as they are."""
        self.p, self.layout, self.original, self.left = p, federation.layout, original, steps
        self.before = torch.zeros_like(original)

    def __call__(self, weights: Tensor, gradient: Tensor) -> None:
        """Keep a gradient [d] in mind, or put the published one in its place."""
        if self.left:
            self.left -= 1
            self.before.copy_(gradient)
            return
        away, before = self.layout.views(weights - self.original), self.layout.views(self.before)
        for name, view in self.layout.views(gradient).items():
            across = correction(
                before[name].flatten(), self.p.smoothness * away[name].flatten(), PUBLISHED_SHARE * self.p.lambda_
            )
            view.copy_((1 + (1 - PUBLISHED_SHARE) * self.p.lambda_) * before[name] + across.view_as(view))
