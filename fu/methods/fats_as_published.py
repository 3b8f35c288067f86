"""FATS's unlearning as in its authors' code (FATS_supplement), which is not exact; Algorithms 2 and 3 are in `fats.py`.

At the request, the model is reset to the start of the first round in which a forgotten client took part, or by one
round if none did. The rounds that remained at the request follow, with draws from the retained clients. The rounds in
between are not made up for, so the model has been trained for fewer rounds than a retrained one. When samples are
forgotten, the clients that hold them first train one round on their remaining samples; the mean of their models,
weighted by numbers of samples, is the starting point of the other rounds, in which these clients take no part.

Stores the models that training stores; communicates one model up and down per client and round.
"""

from collections.abc import Iterable

from pydantic import BaseModel

from fu.data.request import Request
from fu.federation.local import aggregate
from fu.federation.sampled import drawn, places_of, trained
from fu.federation.sampling import History
from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "code", "citation": "Tao et al. 2024: authors' code"}
SAMPLES = True  # it can forget samples, too
CONTINUES = "fats_as_published"  # it continues this training: reads the models that it kept, has its settings
STATISTICS = True  # as the training that it continues
ESTIMATE = {"forgotten": 0, "retained": 1}  # for the plan: how often they train


class Params(BaseModel, extra="forbid"):
    """The method has no hyper-parameters."""


def start(task: Task, p: Params) -> State:
    """Begin at the start of the first round with a client of the request, after their own round if it names samples."""
    assert task.kept is not None
    data, asked, federation = task.federation.data, concerned(task), task.federation
    history = drawn(task, task.kept.length, task.clients, data.partition.train, "training")
    first = restart(history, asked)
    kept = task.kept.nearest(first)
    theta = task.kept.read(kept).to(federation.device)
    for round in range(kept, first):
        theta = trained(task, history, theta, round, history.shape.steps, distinct=True)
    if len(data.forgotten_samples):
        own = drawn(task, 1, asked, data.rows, f"{federation.stream} of samples")
        places = places_of(task, own, asked, 0)
        updates = federation.local_updates(theta, asked, 0, rows=lambda client, step: places[client][step])
        theta = theta + aggregate(updates, "samples")
    return State(theta)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on the clients that the request does not concern."""
    if "rest" not in task.memory:
        rest = sorted({*task.clients}.difference(concerned(task)))
        task.memory["rest"] = drawn(task, task.rounds, rest, task.federation.data.rows, task.federation.stream)
    return State(trained(task, task.memory["rest"], state.theta, round, distinct=True))


def restart(history: History, clients: Iterable[int]) -> int:
    """Return the first round in which any of these clients took part; where none did, the last round."""
    rounds = [found for client in clients if (found := history.first_round(client)) is not None]
    return min(rounds, default=history.shape.rounds - 1)


def concerned(task: Task) -> list[int]:
    """Return the clients that are to be forgotten, or hold samples that are."""
    data = task.federation.data
    asked = data.request or Request(data.partition.attacked)
    return sorted({*asked.clients.tolist(), *data.partition.holders(asked.samples)})
