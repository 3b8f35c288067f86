"""FedQUIT: the forgotten client distils a teacher that does not know the true class (Mora et al. 2024).

The teacher is the original model with the logit z_y of the true class replaced by v, by default the sample's least
logit. The forgotten clients train on KL(teacher || student) over their own samples, from the original model, for the
rounds of unlearning (the authors' script: one); their models are averaged, and post-training follows. The authors' code
was read, and the paper's abstract (arXiv 2408.07587). The code uses Adam (learning rate 1e-4, batches of 32, one
epoch); here the optimiser is the scenario's, at the rate that the common rule selects; where the scenario gives
post-training no rate of its own, at the same rate (the authors' script: .1). Their post-training ends once the utility
is recovered; here it has as many rounds as any method's.

Stores nothing; communicates one model up and down per forgotten client and round: the first is also the teacher.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.frozen import predictor
from fu.federation.local import aggregate
from fu.federation.task import State, Task

needs: set[str] = set()
ESTIMATE = {"forgotten": 2, "retained": 0}  # trainings in a round, for the plan; the teacher's passes count as one
FIDELITY = {
    "source": "code",
    "citation": "Mora et al. 2024, arXiv 2408.07587: abstract; authors' code",
    "not_read": "the full text",
}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    v: Literal["least", "entropy"] | float = Field(
        "least",
        description="what replaces the true class's logit (authors' code has all three); least: the sample's least "
        "logit; entropy: the value at which the teacher's entropy is largest, sum over the other classes of "
        "softmax(z)_c z_c; a number: the same for all samples",
    )


def start(task: Task, p: Params) -> State:
    """Begin at the original model, which the forgotten clients keep as their teacher."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One round of distillation by the forgotten clients."""
    predict = predictor(task.federation, task.original_model)

    def relabel(x: Tensor, y: Tensor) -> Tensor:
        return teacher(predict(x), y, p.v)

    updates = task.federation.local_updates(state.theta, task.forgotten, round, divergence, relabel=relabel)
    return State(state.theta + aggregate(updates, "samples"))


def teacher(logits: Tensor, labels: Tensor, v: str | float) -> Tensor:
    """Return the teacher's probabilities [n, C]: softmax of the logits [n, C] with those of the labels [n] replaced."""
    if v == "least":
        value = logits.min(1).values
    elif v == "entropy":
        others = logits.scatter(1, labels[:, None], -torch.inf).softmax(1)
        value = (others * logits).sum(1)
    else:
        value = torch.full_like(logits[:, 0], float(v))
    return logits.scatter(1, labels[:, None], value[:, None]).softmax(1)


def divergence(logits: Tensor, targets: Tensor) -> Tensor:
    """KL(targets || softmax(logits)) per sample [n], of probabilities [n, C]."""
    return F.kl_div(logits.log_softmax(1), targets, reduction="none").sum(1)
