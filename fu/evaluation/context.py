"""What an evaluator is given: a model in its role, the run's trace, and the task."""

from dataclasses import dataclass

from torch import Tensor

from fu.federation.task import Task


@dataclass(frozen=True)
class Context:
    """`role`: original, unlearned or recovered. `theta` [d]: its model. `trace`: a row of text per round of its run."""

    task: Task
    role: str
    theta: Tensor
    trace: list[dict[str, str]]
