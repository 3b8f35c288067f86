"""FATS's training as in its authors' code (FATS_supplement), for `fu/methods/fats_as_published.py`.

A round's K clients are drawn with replacement and duplicates are dropped, so that a client drawn twice counts once,
where Algorithm 1 gives it weight 2 / K; clients are weighted by their numbers of batches. Everything else is as in
`fu/training/fats.py`.
"""

from fu.data.partition import Indices
from fu.federation.task import State, Task
from fu.training import fats

KEEPS = "keep_every"  # the hyper-parameter that says how many models are kept, for the plan and the stages
NEEDS = ("clients_per_round", "local_steps", "with_replacement")  # of settings.training
STATISTICS = True  # it averages running statistics, too


class Params(fats.Params):
    """Those of FATS."""


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model."""
    return fats.start(task, p)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on what the history says, each client once."""
    return fats.stepped(task, state, round, distinct=True)


def trained_on(task: Task, p: Params) -> Indices:
    """Return the rows of the data set that are in any batch of any round, as the history says."""
    return fats.trained_on(task, p)
