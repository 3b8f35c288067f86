"""Retraining with the noise of FedRecovery: the retrained model to which its guarantee refers (Zhang et al. 2023).

w = w_retrained + N(0, s^2 I), after the last round. Stores nothing; communicates what the training does. Reads no data
of forgotten clients.
"""

from dataclasses import replace

import torch
from pydantic import BaseModel, ConfigDict, Field

from fu.federation.local import generator
from fu.federation.task import State, Task

needs: set[str] = set()
RETRAINS = True  # it is handed the scenario's training, and shows what forgetting is
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # for the plan: how often they train; their mean is enough
DRAWS = 6_000  # names its draws, so that they are those of no other repeat of retraining


class Params(BaseModel):
    """Hyper-parameters beside those of the training."""

    model_config = ConfigDict(extra="forbid")
    noise_std: float = Field(0.01, ge=0, description="s: our choice, as the default of FedRecovery's noise_std")


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's and retraining's."""
    assert task.training is not None
    return task.training.start(task.repeated(DRAWS))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients; after the last add the noise."""
    assert task.training is not None
    again = task.repeated(DRAWS)
    found = task.training.step(again, state, round)
    if round < task.rounds - 1:
        return found
    drawn = torch.randn(len(found.theta), generator=generator(again.seed, "noise")).to(found.theta.device)
    return replace(found, theta=found.theta + p.noise_std * drawn)
