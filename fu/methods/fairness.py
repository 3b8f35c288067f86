"""Federated unlearning that balances local fairness (Shao et al. 2024, section 6.2 and Algorithm 1).

The retained clients train by FedAvg, each on its loss times 1 + lambda_i, and report how much worse each new model w is
for them than the original one: r_i, on their training data. Initially all lambda_i are 0; afterwards

    lambda_i = Lambda e^{r_i} / (1 + sum_j e^{r_j}).

Here r_i is that of the round's new model; Algorithm 1 uses the model before the round, so its weights lag by one round.

Algorithm 1 stops as soon as max r_i <= epsilon. This already holds at w_o, so it ends after its first round
(`literal`). Our variant runs all rounds. `theta` is the model that would be returned at this point: of the models with
max r_i <= epsilon, the one with the lowest loss on the retained clients' training data, or, if there is none, the one
with the smallest max r_i (not `feasible`). The printed values of epsilon are in points of accuracy, so by default r_i
is the accuracy that a client has lost, in points; Algorithm 1 uses the loss. Stores a model and a number per client;
communicates one model up and down per client and round, and one more down for the reports on the last.

`as-published` is the authors' code: it uses lambda_i minus the mean of all lambda_j, without Lambda and epsilon and
with r_i on the clients' test data, and returns the last model.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.local import FLOAT_BYTES
from fu.federation.losses import cross_entropy
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "paper and code", "citation": "Shao et al. 2024, section 6.2 and Algorithm 1"}
STATISTICS = True  # it averages running statistics, too
TESTS = ("variant", "as-published")  # with this value it reads the retained clients' test data, as the authors' code
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    epsilon: float = Field(
        1.0, ge=0, description="how much worse the model may become for a client: 1 in section 7.3, 20 in appendix G.2"
    )
    bound: float = Field(
        1.0, ge=0, description="Lambda: 1.3 in section 7.3, 1 in appendix G.2; 0: no client is weighted up"
    )
    unit: Literal["points", "loss"] = Field(
        "points", description="unit of r_i; points of accuracy lost (the printed epsilon), or loss (Algorithm 1)"
    )
    margin: bool = Field(
        False, description="use r_i - epsilon in lambda_i, as in problem P5; Algorithm 1 uses r_i alone"
    )
    variant: Literal["best", "literal", "as-published"] = Field(
        "best",
        description="which model is returned; best: the best so far; literal: that of Algorithm 1 as printed; "
        "as-published: that of the authors' code",
    )


@dataclass(frozen=True)
class Fair(State):
    """What would be returned now [d], the model that is trained on [d], the clients' weights and first scores.

    `lambdas`, `first`: of each retained client [m]. `worst`, `loss`: max r_i and F_{-J} of `theta`.
    """

    current: Tensor
    lambdas: Tensor
    first: Tensor
    worst: float = torch.inf
    loss: float = torch.inf
    feasible: bool = False
    stopped: bool = False


def start(task: Task, p: Params) -> Fair:
    """Begin at the original model, on which each retained client reports first."""
    original = task.original_model
    first, _ = reports(task, p, original)
    task.federation.cost.add(bytes_down=len(task.retained) * task.federation.layout.size * FLOAT_BYTES)
    return Fair(original, original, torch.zeros(len(task.retained)), first)


def done(state: Fair) -> bool:
    """Whether Algorithm 1 has stopped."""
    return state.stopped


def step(task: Task, p: Params, state: Fair, round: int) -> Fair:
    """Train one round with each client's weight, and choose new weights by what the clients report."""
    factors = {client: 1 + one for client, one in zip(task.retained, state.lambdas.tolist(), strict=True)}
    model = state.current + task.federation.mean_update(state.current, task.participants(round), round, factors=factors)
    if not torch.isfinite(model).all():
        return replace(state, theta=model)
    scores, loss = reports(task, p, model)
    harm = scores - state.first
    worst, feasible = harm.max().item(), bool(harm.max() <= p.epsilon)
    following = replace(state, current=model, lambdas=weights(p, harm))
    if p.variant == "best" and not better((feasible, worst, loss), (state.feasible, state.worst, state.loss)):
        return following
    stopped = p.variant == "literal"
    return replace(following, theta=model, worst=worst, loss=loss, feasible=feasible, stopped=stopped)


def better(one: tuple[bool, float, float], other: tuple[bool, float, float]) -> bool:
    """Whether a model is to be returned rather than another, each by feasible, max r_i and F_{-J}."""
    if one[0] != other[0]:
        return one[0]
    return one[2] < other[2] if one[0] else one[1] < other[1]


def weights(p: Params, harm: Tensor) -> Tensor:
    """Return lambda_i [m] of r_i [m]; no exponential overflows."""
    harm = harm.double() - (p.epsilon if p.margin else 0)
    largest = harm.max().clamp(min=0)
    found = (harm - largest).exp() / ((-largest).exp() + (harm - largest).exp().sum())
    return (found - found.mean() if p.variant == "as-published" else p.bound * found).float()


def reports(task: Task, p: Params, theta: Tensor) -> tuple[Tensor, float]:
    """Return each retained client's score [m], which is higher for a worse model, and their mean training loss F_{-J}.

    A score is the loss, or the percentage of samples that are misclassified.
    """
    data, logits = task.federation.data, task.federation.logits
    scores, losses = [], []
    for client in task.retained:
        x, y = data.train(client)
        said = logits(theta, x)
        losses.append(cross_entropy(said, y).mean())
        if p.variant == "as-published":
            x, y = data.held_out(client, "test")
            said = logits(theta, x)
        wrong = 100 * (said.argmax(1) != y).float().mean()
        scores.append(wrong if p.unit == "points" else cross_entropy(said, y).mean())
    sizes = torch.tensor([data.size(client) for client in task.retained], dtype=torch.float64)
    mean = (sizes / sizes.sum()) @ torch.stack(losses).double().cpu()
    return torch.stack(scores).cpu(), mean.item()
