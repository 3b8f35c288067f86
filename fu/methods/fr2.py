"""FR2: rapid retraining (Liu et al. 2022, "The right to be forgotten in federated learning"; FATS section 6.1.4).

FedAvg on the remaining data from a new model, but with quasi-Newton steps w <- w - lr Gamma^-1 Delta, where Delta is
the gradient with momentum and Gamma a diagonal curvature with momentum. It starts at a new model, as rapid retraining
does; the program of FATS's authors resumes where its FATS does, at the first round with a forgotten client. Stores
nothing; communicates one model up and down per client and round.

Liu et al. (2022) was not available to us. The implementation follows these sources:

- FATS (6.1.4, 6.2.1): a diagonal approximation of the Fisher matrix, and momentum.

- A public summary that repeats the paper's equations and settings: Gamma is the mean over a batch of outer products of
  each sample's gradient, of which the diagonal is used in blocks of 3, without a root; momenta .9 and .999; learning
  rate .001, batches of 128 to 2,048, one local epoch, full participation of ten clients; retraining starts from a new
  model.

- A public copy of the authors' code, and FATS's code: each client starts every round with a new optimiser, AdaHessian
  (Yao et al. 2021), whose curvature is Hutchinson's estimate; the server averages the models. FATS's code uses the
  AdaHessian of torch_optimizer: Hessian power .5 of the root, hence `power: 0.25`, damping 1e-4, averages over kernels.

Accordingly, `curvature: fisher` is the mean of the squared gradients of single samples, averaged over blocks of 3 as
AdaHessian averages its diagonal, and Gamma is its running mean (`power: 1`). Our choices, as no source states them: the
damping, blocks in the order of theta, bias correction of both moments (as in Adam and AdaHessian), clients weighted as
in FedAvg. Other curvatures:

- `batch`: the squared gradient of the batch. With `power: 0.5` and `block: 1` the steps are those of Adam.

- `hutchinson`: z * (H z) with one random vector z of -1 and 1 in each step, averaged over blocks, and squared. With
  `power: 0.5` the steps are those of AdaHessian.

- `none`: retraining by FedAvg, bit for bit.

Both moments persist over a client's steps within one round. The initial model is that of retraining. Without a root a
step is about lr / gradient, which requires damping; with a root it is about lr in each parameter, whatever the
gradient. A learning rate at which FedAvg learns may be too high for either.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.local import Federation, Updates, aggregate, generator
from fu.federation.losses import cross_entropy
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {
    "source": "second-hand",
    "citation": (
        "Liu et al. 2022, as FATS sections 6.1.4 and 6.2.1, a summary and a copy of the authors' code describe it"
    ),
    "not_read": "Liu et al. 2022",
}
SAMPLES = True  # it can forget samples, too
REQUESTS = True  # it can restart at every request: its steps do not depend on the number of rounds
FROM_SCRATCH = True  # audits compare it with retraining for the same number of rounds
MOMENTUM = True  # it keeps its own
OWN_OPTIMISER = True  # no retraining has it, so that audits do not judge it: a difference may be the optimiser's
ESTIMATE = {"forgotten": 0, "retained": 5}  # how often they train in a round, single samples of a batch included


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    curvature: Literal["fisher", "batch", "hutchinson", "none"] = Field(
        "fisher",
        description="source of Gamma: squared gradients of single samples (Liu et al. 2022) or of the batch, the "
        "Hessian's diagonal, or none",
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="momentum of the gradient (Kingma and Ba 2015; Yao et al. 2021)")
    beta2: float = Field(0.999, ge=0, lt=1, description="momentum of the curvature (as beta1: Yao et al. 2021)")
    block: Annotated[int, Field(ge=1)] | Literal["kernels"] = Field(
        3,
        description="number of consecutive entries over which the diagonal is averaged: Liu et al. 2022; 1: no "
        "averaging; kernels: over each kernel of a convolution, as in AdaHessian's code (Yao et al. 2021)",
    )
    power: float = Field(
        1.0, gt=0, le=1, description="exponent of the curvature's running mean: Liu et al. 2022 take no root"
    )
    damping: float = Field(
        1e-3,
        gt=0,
        description="added to Gamma: our choice, the smallest power of ten at which MNIST is learned with a learning "
        "rate of .001",
    )
    client_weights: Literal["samples", "equal"] = Field(
        "samples", description="weights of the clients: our choice, as in FedAvg"
    )


class Preconditioner:
    """The moments of one client in one round; called with weights and gradient [d], which it changes in place.

    `diagonal` [d]: the curvature of the batch, known before the call (`batch`: from the gradient itself).
    """

    def __init__(self, p: Params, federation: Federation, client: int, round: int) -> None:
        """Begin without moments."""
        self.p, self.model, self.step = p, federation.model, 0
        self.first = torch.zeros_like(federation.network.weights)
        self.second, self.diagonal = torch.zeros_like(self.first), torch.zeros_like(self.first)
        trained = {name: w for name, w in federation.model.named_parameters() if w.requires_grad}
        views = federation.layout.views(self.diagonal)
        self.weights, self.views = [*trained.values()], [views[name] for name in trained]
        self.layout, self.names = federation.layout, [*trained]
        self.random = generator(federation.seed, federation.stream, "hutchinson", client, round)

    def __call__(self, weights: Tensor, gradient: Tensor) -> None:
        """Make a gradient the direction of a step: Gamma^-1 Delta, both corrected for their start at zero."""
        p, self.step = self.p, self.step + 1
        if p.curvature == "batch":
            torch.square(gradient, out=self.diagonal)
            self._average()
        self.first.lerp_(gradient, 1 - p.beta1)
        self.second.lerp_(self.diagonal.square() if p.curvature == "hutchinson" else self.diagonal, 1 - p.beta2)
        mean, curvature = self.first / (1 - p.beta1**self.step), self.second / (1 - p.beta2**self.step)
        gradient.copy_(mean / (curvature.pow_(p.power).add_(p.damping)))

    def fisher(self, x: Tensor, y: Tensor) -> Tensor:
        """Keep the diagonal of a batch's empirical Fisher matrix for the step that follows; return the labels y [n]."""
        self.diagonal.zero_()
        for one, label in zip(x.split(1), y.split(1), strict=True):
            loss = cross_entropy(self.model(one), label).sum()
            gradients = torch.autograd.grad(loss, self.weights, materialize_grads=True)
            for view, gradient in zip(self.views, gradients, strict=True):
                view.addcmul_(gradient, gradient, value=1 / len(y))
        self._average()
        return y

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return cross-entropy [n], and keep the diagonal of its mean's Hessian for the step that follows."""
        losses = cross_entropy(logits, labels)
        z = self.layout.views(random_signs(len(self.first), self.random, self.first.device))
        each = hutchinson(losses.mean(), self.weights, [z[name] for name in self.names])
        for view, diagonal in zip(self.views, each, strict=True):
            view.copy_(diagonal)
        self._average()
        return losses

    def _average(self) -> None:
        """Average the diagonal over blocks, or over kernels by the absolute value (Yao et al. 2021)."""
        if self.p.block != "kernels":
            return averaged(self.diagonal, self.p.block)
        for view in self.views:
            if view.ndim == 4:
                view.copy_(view.abs().mean((2, 3), keepdim=True).expand_as(view))


def averaged(diagonal: Tensor, block: int) -> None:
    """Replace numbers [d] by the mean of their block, the last of which may be shorter (Yao et al. 2021)."""
    whole = len(diagonal) // block * block
    for part in (diagonal[:whole].view(-1, block), diagonal[None, whole:]):
        if block > 1 and part.numel():
            columns = part.unbind(1)  # `mean(1)` of three takes twice as long
            part.copy_((sum(columns[1:], columns[0]) / len(columns))[:, None])


def random_signs(number: int, random: torch.Generator, device: torch.device) -> Tensor:
    """Return random signs, -1 or 1 [number], from the bits of random bytes: faster than a draw for each."""
    drawn = torch.randint(256, (-(-number // 8),), generator=random, dtype=torch.uint8).to(device)
    bits = drawn[:, None] >> torch.arange(8, dtype=torch.uint8, device=device) & 1
    return 2.0 * bits.flatten()[:number] - 1


def hutchinson(loss: Tensor, parameters: Sequence[Tensor], signs: Sequence[Tensor]) -> list[Tensor]:
    """Return z * (H z) for signs z, whose mean over z is the diagonal of the Hessian H; the loss can be used again."""
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    along = torch.stack([(gradient * z).sum() for gradient, z in zip(gradients, signs, strict=True)]).sum()
    products = torch.autograd.grad(along, parameters, retain_graph=True, materialize_grads=True)
    return [z * product for z, product in zip(signs, products, strict=True)]


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, the one that retraining begins at."""
    return State(task.first_model())


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Average one round of the clients that take part, each with moments of its own."""
    theta, clients = state.theta, task.participants(round)
    if p.curvature == "none":
        return State(theta + task.federation.mean_update(theta, clients, round, p.client_weights))
    return State(theta + aggregate(preconditioned(task.federation, p, theta, clients, round), p.client_weights))


def preconditioned(federation: Federation, p: Params, theta: Tensor, clients: Sequence[int], round: int) -> Updates:
    """Return what clients send back that train by quasi-Newton steps from theta [d]."""
    each: dict[int, Updates] = {}
    for client in dict.fromkeys(clients):
        scaled = Preconditioner(p, federation, client, round)
        objective = scaled.loss if p.curvature == "hutchinson" else "cross_entropy"
        relabel = scaled.fisher if p.curvature == "fisher" else None
        each[client] = federation.local_updates(theta, [client], round, objective, regularise=scaled, relabel=relabel)
    return Updates.joined([each[client] for client in clients])
