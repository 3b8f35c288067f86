"""Retraining that keeps a share of the forgotten clients' samples (our choice: a control that has forgotten in part).

An audit must rank these controls by the share: 0 is an independent retraining, 1 a training with 100% of the client.
Every run draws anew, by its seed, which samples are kept; within a run a larger share contains a smaller one. Stores
nothing; communicates what the training does.
"""

import math
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, Field

from fu.federation.task import State, Task
from fu.seeds import derive_integer

needs: set[str] = set()
FIDELITY = {"source": "ours", "citation": "a control"}
RETRAINS = True  # it is handed the scenario's training
LEFT = "share"  # the hyper-parameter that says how much of the forgotten clients is left
STATISTICS = True  # as the training that it runs
ESTIMATE = {"forgotten": 1, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept
DRAWS = 1_000  # names its draws, so that they are those of no other repeat of retraining


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters beside those of the training."""

    share: float = Field(
        ge=0,
        le=1,
        examples=[0.5],
        description="share of each forgotten client's samples that is kept (our choice: 0 to 1)",
    )
    noise_std: float = Field(
        0,
        ge=0,
        description="standard deviation of the noise on all weights after the last round (our choice: none; with that "
        "of FedRecovery a control for it)",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's and retraining's."""
    assert task.training is not None
    return task.training.start(_partly(task, p.share))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients and what is left of the forgotten ones; after the last one, add the noise."""
    assert task.training is not None
    again = _partly(task, p.share)
    found = task.training.step(again, state, round)
    return again.noisy(found, p.noise_std) if p.noise_std and round == task.rounds - 1 else found


def _partly(task: Task, share: float) -> Task:
    """Return the task of a training in which forgotten clients take part with a share of their samples, rounded up."""
    again = task.repeated(DRAWS)
    if "partly" not in again.memory:
        data = task.federation.data
        rows = list(data.partition.train)
        for client in task.forgotten:
            random = np.random.default_rng(derive_integer(task.seed, "left in", client))
            first = random.permutation(len(rows[client]))[: math.ceil(share * len(rows[client]))]
            rows[client] = rows[client][np.sort(first)]
        again.memory["partly"] = data.dealt(rows)
    there = task.forgotten if share else []
    federation = again.federation.holding(again.memory["partly"])
    return replace(again, federation=federation, forgotten=there, original=None)
