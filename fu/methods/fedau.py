"""FedAU: the head is replaced by its mixture with heads trained on wrong labels (Gu et al. 2024).

While the model was trained, the forgotten clients trained auxiliary heads W_a on wrong labels
(`fu/histories/auxiliary_heads.py`), so it must be known beforehand who may ask to be forgotten. At the request

    W <- (1 - alpha) W + alpha mean_u W_a,

where W is the last fully connected layer, weight and bias. Nobody trains; post-training follows. The authors' code was
read, and the paper's abstract (arXiv 2405.15474); alpha here is 1 - alpha in the paper, as an author says (issue 2 of
the code). In that code W_a trains together with the model and moves its other layers, too; here it does not. (The code
of Mora et al. 2024 trains a new head after the request instead, with alpha = .96.) Stores a head per forgotten client;
communicates nothing.
"""

from pydantic import BaseModel, Field
from torch import nn

from fu.errors import UserError
from fu.federation.heads import head_mask, head_of
from fu.federation.task import State, Task

needs = {"auxiliary_heads"}
ESTIMATE = {"forgotten": 0, "retained": 0}  # how often they train in a round, for the plan
FIDELITY = {
    "source": "code",
    "citation": "Gu et al., IJCAI 2024, arXiv 2405.15474: abstract; authors' code, but the auxiliary heads train apart",
    "not_read": "the full text",
}


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    alpha: float = Field(
        0.9,
        ge=0,
        le=1,
        description="weight of the auxiliary heads, 1 - alpha of the paper (authors' script: .9)",
    )


def check(model: nn.Module, p: Params) -> None:
    """Raise `UserError` where a model has no fully connected layer."""
    if head_of(model) is None:
        raise UserError("fedau needs a model with a fully connected layer (nn.Linear), and this one has none.")


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    check(task.federation.model, p)
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Mix the heads; more rounds than one share it equally."""
    heads, head, theta = task.histories["auxiliary_heads"]["heads"], head_mask(task.federation.network), state.theta
    own = heads if len(heads) == len(task.forgotten) else heads[task.places(task.forgotten)]
    mixed = theta.clone()
    mixed[head] += p.alpha * (own.mean(0) - task.original_model[head]) / task.rounds
    return State(mixed)
