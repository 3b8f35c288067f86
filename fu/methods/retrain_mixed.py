"""Weighted mean of the original and a retrained model (our choice: a control that has forgotten in part).

Retraining runs as usual (`retrain`); the weights are mixed after its last round. Stores nothing beyond what retraining
does; communicates what the training does.
"""

from dataclasses import replace

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
RETRAINS = True  # it is handed the scenario's training
LEFT = "weight"  # the hyper-parameter that says how much of the original model is left
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
DRAWS = 2_000  # names its draws, so that they are those of no other repeat of retraining


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters beside those of the training."""

    weight: float = Field(
        ge=0, le=1, examples=[0.5], description="weight of the original model in the mean (our choice: 0 to 1)"
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's and retraining's."""
    assert task.training is not None
    return task.training.start(task.repeated(DRAWS))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients; after the last return the mean with the original model."""
    assert task.training is not None
    found = task.training.step(task.repeated(DRAWS), state, round)
    if round < task.rounds - 1:
        return found
    return replace(found, theta=p.weight * task.original_model + (1 - p.weight) * found.theta)
