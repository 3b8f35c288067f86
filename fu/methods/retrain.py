"""Retraining from scratch: the scenario's own training, on the retained clients (FedOSD section 4.1, "Retraining").

Stores nothing; communicates what the training does. Reads no data of forgotten clients and no forgotten samples.
"""

from pydantic import BaseModel, Field

from fu.federation.task import State, Task

needs: set[str] = set()
FIDELITY = {"source": "paper", "citation": "FedOSD section 4.1; Tao et al. 2024 (FATS) section 6.1.4"}
SAMPLES = True  # it can forget samples, too
REQUESTS = True  # it can restart at every request: its steps do not depend on the number of rounds
RETRAINS = True  # it is handed the scenario's training, and shows what forgetting is
STATISTICS = True  # as the training that it runs
ESTIMATE = {"forgotten": 0, "retained": 1, "mean": 1}  # trainings of a client per round; only the mean update is kept


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters beside those of the training."""

    repeat: int = Field(
        0,
        ge=0,
        description="which of several independent retrainings, each with its own initial model and draws: our choice, "
        "as they show the spread of retraining over seeds; 0: the paper's",
    )
    noise_std: float = Field(
        0,
        ge=0,
        description="standard deviation of the noise on all weights after the last round: our choice, for the model to "
        "which FedRecovery's guarantee refers (Zhang et al. 2023); 0: none",
    )


def start(task: Task, p: Params) -> State:
    """Begin at a freshly initialised model, another one than the original training's."""
    assert task.training is not None
    return task.training.start(task.repeated(p.repeat))


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Train one round on retained clients; after the last one, add the noise."""
    assert task.training is not None
    again = task.repeated(p.repeat)
    found = task.training.step(again, state, round)
    return again.noisy(found, p.noise_std) if p.noise_std and round == task.rounds - 1 else found
