"""MoDe: momentum degradation and memory guidance (Zhao et al. 2023; FedOSD section 4.1, appendix B.1).

A second model starts from random weights and is trained by FedAvg on the retained clients. In the first rounds the
model is degraded towards it, w <- lambda w + (1 - lambda) w_de, and guided: the forgotten client trains on the classes
that the second model predicts for its data. The last rounds consist of guidance only, in which the retained clients
also train, on their own labels. A hyper-parameter sets who trains which model in the first rounds. Of Zhao et al.
(2023) only the abstract was available to us. A re-implementation in the code of Mora et al. (2024, FedQUIT) agrees on
the formula and the pseudo-labels; there all clients guide in every round. `both` takes from it who trains in each
round; shares, lambda and rates are ours. Our default is an interpretation of FedOSD's Table 12 (1.04 to 1.05 of
retraining's time: about ten client trainings per round). Stores a second model [d]; communicates one model up and down
per client and round, and the second model down to the forgotten client, which needs its predictions.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.frozen import predictor
from fu.federation.local import FLOAT_BYTES, Updates, aggregate
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {
    "source": "second-hand",
    "citation": (
        "Zhao et al. 2023: abstract; FedOSD section 4.1; a re-implementation in FedQUIT's code agrees on the "
        "formula and the pseudo-labels, and has the same clients train in each round as the schedule `both`"
    ),
    "not_read": "Zhao et al. 2023 beyond its abstract; no code of the authors",
}


class Params(BaseModel, extra="forbid", populate_by_name=True):
    """Hyper-parameters."""

    lambda_: float = Field(
        0.95, ge=0, le=1, alias="lambda", description="degradation factor (FedOSD appendix B.1: .95)"
    )
    lambda_rounds: int | None = Field(
        100,
        gt=0,
        description="number of unlearning rounds for which lambda is meant (our choice, from the 100 rounds of "
        "FedOSD section 4.1); with R rounds it becomes lambda^(100 / R), so that the same share of the original model "
        "remains; null: lambda is used unchanged",
    )
    degradation_share: float = Field(
        0.8,
        ge=0,
        le=1,
        description="share of the rounds with degradation, the others consist of guidance only: our choice, as of Zhao "
        "et al. (2023) only the abstract was available to us",
    )
    schedule: Literal["split", "alternating", "both"] = Field(
        "split",
        description="who trains in a round with degradation: our choice, as of Zhao et al. (2023) only the abstract "
        "was available to us; split: the retained clients train the second model, the forgotten client the first (ten "
        "trainings per round, which fits the times of FedOSD Table 12); alternating: even rounds train the second "
        "model and degrade, odd rounds guide (nine, ten); both: additionally, all clients guide in each round "
        "(nineteen; Mora et al. 2024)",
    )


@dataclass(frozen=True)
class Guided(State):
    """The model [d], and the second one [d] that it is degraded towards and guided by."""

    second: Tensor


def start(task: Task, p: Params) -> Guided:
    """Begin at the original model, with a fresh second one."""
    return Guided(task.original_model, task.new_model("degradation"))


def step(task: Task, p: Params, state: Guided, round: int) -> Guided:
    """One round: degradation in the first rounds, and guidance."""
    theta, second = state.theta, state.second
    degrading = round < p.degradation_share * task.rounds
    if degrading and not (p.schedule == "alternating" and round % 2):
        second = second + task.federation.mean_update(second, task.retained, round)
        theta = degrade(theta, second, momentum(p, task.rounds))
        if p.schedule == "alternating":
            return Guided(theta, second)
    alone = degrading and p.schedule == "split"
    return Guided(theta + guidance(task, theta, second, round, [] if alone else task.retained), second)


def momentum(p: Params, rounds: int) -> float:
    """Return lambda for this many unlearning rounds; `alternating` degrades in every other one."""
    each = 2 if p.schedule == "alternating" else 1
    return p.lambda_ ** (each * p.lambda_rounds / rounds if p.lambda_rounds else 1)


def degrade(theta: Tensor, second: Tensor, momentum: float) -> Tensor:
    """Return lambda w + (1 - lambda) w_de."""
    return theta + (1 - momentum) * (second - theta)


def guidance(task: Task, theta: Tensor, second: Tensor, round: int, retained: list[int]) -> Tensor:
    """Return the mean update [d] of a round of FedAvg in which the forgotten clients train on the second model's
    classes and these retained clients, if any, on their own labels.
    """
    federation, predict = task.federation, predictor(task.federation, second)

    def relabel(x: Tensor, y: Tensor) -> Tensor:
        return predict(x).argmax(1)

    gone = federation.local_updates(theta, task.forgotten, round, relabel=relabel)
    kept = federation.local_updates(theta, retained, round)
    federation.cost.add(bytes_down=len(task.forgotten) * federation.layout.size * FLOAT_BYTES)
    return aggregate(Updates.joined([kept, gone]), "samples")
