"""FedEraser: retraining calibrated by the step lengths of the original training (Liu et al. 2021; FedOSD section 4.1).

Starting from the initial model of the original training, in each calibration round every retained client performs a
share of its local steps. Layer by layer, its update U' is rescaled to the norm of its update U in a stored round, ||U||
U' / ||U'||, and the rescaled updates are averaged. Liu et al. (2021) was not available to us: the rule, the interval
and the ratio of one half follow later papers; mirrors of the authors' code differ (`federaser_as_published.py`). By a
summary with the paper's formulas (vicw0ng-hk/feul), as in the code of Mora et al. (2024, FedQUIT), the norm is that of
the whole update, and the first round takes the stored updates as they are, since the initial model has seen nobody;
here the retained clients train in it, too. FedOSD's Table 12 (.99 to 1.00 of retraining's time) implies full local
training, our default. The norms of every round are stored; the number of calibration rounds determines which of them
are used: every tenth for 2000 rounds and 200 calibration rounds. Stores m x layers numbers per round; communicates one
model up and down per retained client and round.
"""

from pydantic import BaseModel, Field

from fu.federation.calibration import calibrated, calibration
from fu.federation.local import Updates, aggregate
from fu.federation.task import State, Task

needs = {"update_norms"}
FROM_SCRATCH = True  # audits compare it with retraining for the same number of rounds
FIDELITY = {
    "source": "second-hand",
    "citation": (
        "Liu et al. 2021, as FedOSD section 4.1 and later papers describe it; a re-implementation in "
        "FedQUIT's code agrees that each client's update is rescaled, by the norm of all layers at once"
    ),
    "not_read": "Liu et al. 2021",
}
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    interval: int | None = Field(
        None,
        gt=0,
        description="stored rounds per calibration round; null: stored rounds divided by calibration rounds (our "
        "choice: 2000 / 200 rounds of FedOSD section 4.1)",
    )
    calibration_ratio: float = Field(
        1.0, gt=0, le=1, description="share of the local steps: all (FedOSD Table 12; Liu et al. 2021: a half)"
    )


def start(task: Task, p: Params) -> State:
    """Begin at the model that the original training began from."""
    return State(task.new_model("original"))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One calibration round of the retained clients."""
    theta = state.theta
    norms = task.histories["update_norms"]["norms"]
    interval = p.interval or max(1, len(norms) // task.rounds)
    stored = norms[min(round * interval, len(norms) - 1), task.places(task.retained)]
    updates = calibration(task.federation, theta, task.retained, round, p.calibration_ratio)
    delta = calibrated(task.federation.layout, updates.delta, stored)
    return State(theta + aggregate(Updates(delta, updates.sizes, updates.losses), "samples"))
