"""FR2: rapid retraining (Liu et al. 2022, "The right to be forgotten in federated learning"; FATS section 6.1.4).

Retrains by FedAvg on what stays, from a new model, but by quasi-Newton steps w <- w - lr Gamma^-1 Delta: Delta is the
gradient with momentum, Gamma a diagonal curvature with momentum. Stores nothing; communicates one model up and down per
client and round.

Our reading, as we could not consult the paper; FATS says no more than a diagonal Fisher approximation and momentum:

- The diagonal of the empirical Fisher matrix is the squared gradient of a batch.
- Gamma is the root of its running mean (`power: 0.5`), as in Adam, whose steps these are. Without the root
  (`power: 1`) a step is about lr / gradient, which needs much damping.
- `hutchinson`: as AdaHessian (Yao et al. 2021), which the published code uses in place of Fisher: z * (H z) with one
  random z of -1 and 1 in each step; Gamma is the root of the running mean of its square. There is no spatial averaging.
- Both moments live through a client's steps of one round. Nobody keeps them: few clients are drawn twice, and the
  server cannot average them without sending more. FedAvg averages the models alone.
- It starts at the model that retraining starts at. With `curvature: none` it is retraining of a FedAvg, bit for bit.

A step of about lr in each parameter is not a step of lr times the gradient: a rate at which FedAvg learns may be
too high here.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from fu.federation.local import Federation, Updates, aggregate, generator
from fu.federation.losses import cross_entropy
from fu.federation.task import State, Task, theta_of

needs: set[str] = set()
SAMPLES = True  # it can forget samples, too
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    curvature: Literal["fisher", "hutchinson", "none"] = Field(
        "fisher", description="what Gamma is made of: the empirical Fisher diagonal, that of the Hessian, or nothing"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="momentum of the gradient: as Adam and AdaHessian")
    beta2: float = Field(0.999, ge=0, lt=1, description="momentum of the curvature: likewise")
    power: float = Field(0.5, gt=0, le=1, description="of the curvature's running mean: our choice")
    damping: float = Field(1e-8, gt=0, description="added to Gamma: our choice, as Adam")
    client_weights: Literal["samples", "equal"] = Field("samples", description="as in FedAvg")


class Preconditioner:
    """The moments of one client in one round; called with weights and gradient [d], which it changes in place."""

    def __init__(self, p: Params, federation: Federation, client: int, round: int) -> None:
        """Begin without moments."""
        self.p, self.layout, self.step = p, federation.layout, 0
        self.named = {name: w for name, w in federation.model.named_parameters() if w.requires_grad}
        self.first = torch.zeros_like(federation.network.weights)
        self.second, self.diagonal = torch.zeros_like(self.first), torch.zeros_like(self.first)
        self.random = generator(federation.seed, federation.stream, "hutchinson", client, round)

    def __call__(self, weights: Tensor, gradient: Tensor) -> None:
        """Make a gradient the direction of a step: Gamma^-1 Delta, both corrected for their start at zero."""
        p, self.step = self.p, self.step + 1
        curvature = gradient if p.curvature == "fisher" else self.diagonal
        self.first.lerp_(gradient, 1 - p.beta1)
        self.second.lerp_(curvature.square(), 1 - p.beta2)
        mean, square = self.first / (1 - p.beta1**self.step), self.second / (1 - p.beta2**self.step)
        gradient.copy_(mean / (square.pow(p.power) + p.damping))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cross-entropy [n], and keep the diagonal of its mean's Hessian for the step that follows."""
        losses = cross_entropy(logits, labels)
        signs = 2.0 * torch.randint(2, self.first.shape, generator=self.random).to(self.first) - 1
        views, found = self.layout.views(signs), self.layout.views(self.diagonal)
        each = hutchinson(losses.mean(), [*self.named.values()], [views[name] for name in self.named])
        for name, diagonal in zip(self.named, each, strict=True):
            found[name].copy_(diagonal)
        return losses


def hutchinson(loss: Tensor, parameters: Sequence[Tensor], signs: Sequence[Tensor]) -> list[Tensor]:
    """Return z * (H z) for signs z, whose mean over z is the diagonal of the Hessian H; the loss can be used again."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    along = torch.stack([(gradient * z).sum() for gradient, z in zip(gradients, signs, strict=True)]).sum()
    products = torch.autograd.grad(along, parameters, retain_graph=True, materialize_grads=True)
    return [z * product for z, product in zip(signs, products, strict=True)]


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, the one that retraining begins at."""
    return {"theta": task.first_model()}


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of the clients that take part, each with moments of its own."""
    theta, clients = theta_of(state), task.participants(round)
    if p.curvature == "none":
        updates = task.federation.local_updates(theta, clients, round)
    else:
        updates = preconditioned(task.federation, p, theta, clients, round)
    return {"theta": theta + aggregate(updates, p.client_weights)}


def preconditioned(federation: Federation, p: Params, theta: Tensor, clients: Sequence[int], round: int) -> Updates:
    """Return what clients send back that train by quasi-Newton steps from theta [d]."""
    each: dict[int, Updates] = {}
    for client in dict.fromkeys(clients):
        scaled = Preconditioner(p, federation, client, round)
        objective = scaled.loss if p.curvature == "hutchinson" else "cross_entropy"
        each[client] = federation.local_updates(theta, [client], round, objective, regularise=scaled)
    of = [each[client] for client in clients]
    return Updates(
        *(torch.cat(parts) for parts in zip(*((one.delta, one.sizes, one.losses) for one in of), strict=True))
    )
