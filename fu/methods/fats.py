"""Unlearning for FATS, exact for clients and samples (Tao et al. 2024, Algorithms 2 and 3).

If a target never took part in training, nothing is done. Otherwise training resumes from the time when it first did,
with draws from the remaining data (`fu.federation.sampling`), and from the model *before* that time; Algorithm 1, line
5, prints the model after it. If the model at the start of a round is not stored, it is rebuilt from the nearest earlier
one; these steps, and the steps of a round before the target's, are counted separately, as `replayed`. Each of several
consecutive requests starts from the history that the previous one left. The guarantee holds for targets chosen
independently of the training's draws, as requests of this program are, and not for targets chosen after inspecting the
model.

Stores the models that training stores; communicates one model up and down per client in every recomputed round. Reads
no data of a target.
"""

from dataclasses import dataclass

from pydantic import BaseModel, Field
from torch import Tensor

from fu.data.request import Request
from fu.federation.sampled import drawn, trained
from fu.federation.sampling import History
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "paper", "citation": "Tao et al. 2024, Algorithms 2 and 3"}
SAMPLES = True  # it can forget samples, too
CONTINUES = "fats"  # it continues this training: reads the models that it kept, has its settings
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    full: bool = Field(
        False,
        description="recompute all rounds once a target took part, which needs no stored model (section 5.3.2); the "
        "clients drawn so far are kept, because drawing new ones would not be exact for samples",
    )


@dataclass(frozen=True)
class Resumed(State):
    """The model [d], and how many rounds are left to compute again."""

    left: int


def start(task: Task, p: Params) -> Resumed:
    """Begin where the first request's targets first took part, or be done."""
    return _met(task, p, task.original_model)


def again(task: Task, p: Params, state: Resumed, round: int) -> Resumed:
    """Begin where the next request's targets first took part in the history that the one before left."""
    return _met(task, p, state.theta)


def done(state: Resumed) -> bool:
    """Whether all rounds are there again."""
    return not state.left


def step(task: Task, p: Params, state: Resumed, round: int) -> Resumed:
    """Compute the next round again."""
    assert task.kept is not None
    theta, found = state.theta, history(task, p)
    number = found.shape.rounds - state.left
    if task.kept.writable:
        task.kept.write(number, theta)
    assert found.restart is not None
    replayed = max(0, found.restart.time - number * found.shape.steps)
    return Resumed(trained(task, found, theta, number, replayed), state.left - 1)


def history(task: Task, p: Params) -> History:
    """Return the sampling history once the requests so far are met."""
    assert task.kept is not None
    data = task.federation.data
    asked = data.request or Request(data.partition.attacked)
    found: History | None = None
    for number, wave in enumerate(asked.waves):
        if number not in task.memory:
            if found is None:
                found = drawn(task, task.kept.length, task.clients, data.partition.train, "training")
            samples = data.partition.holders(wave.samples)
            task.memory[number] = found.without(wave.clients.tolist(), samples, full=p.full)
        found = task.memory[number]
    assert found is not None
    return found


def _met(task: Task, p: Params, theta: Tensor) -> Resumed:
    """Return the model at the start of the round from which on it is computed anew, and how many rounds are left."""
    found = history(task, p)
    if found.restart is None:
        return Resumed(theta, 0)
    assert task.kept is not None
    round = found.restart.time // found.shape.steps
    first = task.kept.nearest(round)
    theta = task.kept.read(first).to(task.federation.device)
    for number in range(first, round):
        theta = trained(task, found, theta, number, found.shape.steps)
    return Resumed(theta, found.shape.rounds - round)
