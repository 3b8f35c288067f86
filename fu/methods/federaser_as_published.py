"""FedEraser as in mirrors of its authors' code (Liu et al. 2021), where that differs from `federaser.py`.

The interval is the number of stored rounds divided by the number of calibration rounds. No client trains in the first
calibration round: its model is the retained clients' mean local model in the last round of the first interval, which
the forgotten clients influenced in earlier rounds. In every other calibration round the retained clients train for half
of their local epochs, rounded up, and the mean of their updates is rescaled layer by layer to the distance, in the last
round of that interval, between the retained clients' mean local model and the *next* global model. (`federaser.py`
follows the description in later papers: each client's update is rescaled to the norm of its own stored update.) Means
weigh clients by their samples; the mirrors weigh them equally. Stores a model and a number per layer in each round;
communicates one model up and down per retained client and round, except in the first.
"""

import math

from pydantic import BaseModel, Field

from fu.errors import UserError
from fu.federation.calibration import calibrated, calibration
from fu.federation.local import aggregate
from fu.federation.task import State, Task

needs = {"retained_means"}
FROM_SCRATCH = True  # audits compare it with retraining for the same number of rounds
FIDELITY = {
    "source": "second-hand",
    "citation": "Liu et al. 2021: unofficial mirrors of the authors' code",
    "not_read": "Liu et al. 2021",
}
ESTIMATE = {"forgotten": 0, "retained": 0.5}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    calibration_ratio: float = Field(
        0.5, gt=0, le=1, description="share of the local epochs, rounded up (authors' code: a half)"
    )


def start(task: Task, p: Params) -> State:
    """Begin at the model that the original training began from."""
    return State(task.new_model("original"))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """One calibration round; the first takes the stored mean model."""
    stored = task.histories["retained_means"]
    interval = max(1, len(stored["norms"]) // task.rounds)
    last = min((round + 1) * interval, len(stored["norms"])) - 1
    if not round:
        if last >= (kept := len(stored["models"])):
            raise UserError(f"federaser_as_published: an interval of {interval} rounds; allowed: at most {kept}.")
        return State(stored["models"][last])
    epochs, share = task.federation.training.local_epochs, p.calibration_ratio
    share = math.ceil(share * epochs - 1e-9) / epochs if epochs else share
    updates = calibration(task.federation, state.theta, task.retained, round, share)
    mean = aggregate(updates, "samples")[None]
    return State(state.theta + calibrated(task.federation.layout, mean, stored["norms"][None, last])[0])
