"""FedEraser: retraining that takes its step lengths from the original training (Liu et al. 2021; FedOSD section 4.1).

From the initial model of the original training, in each calibration round every retained client trains a share of its
local steps; layer by layer its update U' is given the length that its update U had in a stored round, ||U|| U' /
||U'||, and these are averaged. We could not consult Liu et al.: the rule, the interval and their ratio of one half are
as later papers describe them; mirrors of the authors' program differ (`federaser_as_published.py`). FedOSD's Table 12
(.99 to 1.00 of retraining's time) means full local training, our default. Every round's norms are stored, and those
used follow from the number of calibration rounds: 2000 in 200 are every tenth. Stores m x layers numbers per round;
communicates one model up and down per retained client and round.
"""

from pydantic import BaseModel, ConfigDict, Field

from fu.federation.calibration import calibrated, calibration
from fu.federation.local import Updates, aggregate
from fu.federation.task import State, Task

needs = {"update_norms"}
ESTIMATE = {"forgotten": 0, "retained": 1}  # how often they train in a round, for the plan


class Params(BaseModel):
    """Hyper-parameters."""

    model_config = ConfigDict(extra="forbid")
    interval: int | None = Field(
        None,
        gt=0,
        description="stored rounds per calibration round; null: stored over calibration rounds (FedOSD "
        "section 4.1: 10)",
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
