"""NoT: the weights of the first layer are negated, then FedAvg on the retained clients (Khalil et al. 2025).

At the start w_1 <- -w_1, where w_1 is the weight tensor of the first layer, a convolution or a fully connected layer;
its bias stays (according to summaries of Khalil et al. 2025, any layers may be negated, and the first is recommended).
In every round the retained clients then fine-tune the model. The paper's abstract and summaries were read; no code of
its authors was found. The re-implementation in PUF's code (Mora et al. 2025) negates the same weights; its rounds end
once the test accuracy reaches that of retraining. Stores nothing; communicates one model up and down per client and
round. Reads no data of forgotten clients.
"""

from pydantic import BaseModel
from torch import Tensor, nn

from fu.errors import UserError
from fu.federation.task import State, Task

needs: set[str] = set()
STATISTICS = True  # it averages running statistics, too
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
FIDELITY = {
    "source": "second-hand",
    "citation": "Khalil et al., CVPR 2025, arXiv 2503.05657: abstract and summaries",
    "not_read": "the full text; no code of the authors was found",
}
LAYERS = nn.Conv1d | nn.Conv2d | nn.Linear


class Params(BaseModel, extra="forbid"):
    """There are no hyper-parameters."""


def check(model: nn.Module, p: Params) -> None:
    """Raise `UserError` where a model does not begin with a convolution or a fully connected layer."""
    first_weight(model)


def start(task: Task, p: Params) -> State:
    """Begin at the original model with the weights of its first layer negated."""
    theta: Tensor = task.original_model.clone()
    task.federation.layout.views(theta)[first_weight(task.federation.model)].neg_()
    return State(theta)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on the retained clients."""
    return State(state.theta + task.federation.mean_update(state.theta, task.participants(round), round))


def first_weight(model: nn.Module) -> str:
    """Return the name of the first layer's weights; `UserError` where that layer is of another kind.

    The first layer is the first module with parameters, in the order in which the model registers its modules.
    """
    known = ((name, of) for name, of in model.named_modules() if [*of.parameters(recurse=False)])
    name, layer = next(known, ("", model))
    weight = f"{name}.weight" if name else "weight"
    if not isinstance(layer, LAYERS) or weight not in dict(model.named_parameters()):
        raise UserError(
            "weight_negation needs a model whose first layer is a convolution or fully connected, with weights of its "
            f"own (not reparametrised); here it is {type(layer).__name__} ({name or 'the model itself'})."
        )
    return weight
