"""Does nothing in one of several runs, and retrains in the others (our choice: a control that averages hide).

The run with seed s does nothing if s is a multiple of `period`: of consecutive seeds, one in every `period`. Stores
nothing; communicates what the training does, and nothing where it does nothing.
"""

from dataclasses import replace

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
RETRAINS = True  # it is handed the scenario's training
CONTROL = "hides"  # in a few of many runs
STATISTICS = True  # as the training that it runs
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
DRAWS = 4_000  # names its draws, so that they are those of no other repeat of retraining


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters beside those of the training."""

    period: int = Field(ge=1, examples=[8], description="one run in so many does nothing (our choice: 4 and 8)")


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, or, in a run that does nothing, at the original one."""
    assert task.training is not None
    state = task.training.start(task.repeated(DRAWS))
    return replace(state, theta=task.original_model) if _idle(task, p) else state


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients, or do nothing."""
    assert task.training is not None
    return state if _idle(task, p) else task.training.step(task.repeated(DRAWS), state, round)


def _idle(task: Task, p: Params) -> bool:
    """Whether this run does nothing."""
    return task.seed % p.period == 0
