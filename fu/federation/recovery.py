"""Post-training: the retained clients train on, and what they send may be projected (FedOSD section 3.3)."""

from collections.abc import Callable

from torch import Tensor

from fu.federation.local import Updates, aggregate
from fu.federation.task import State, Task


def step(
    task: Task, state: State, round: int, client_weights: str, project: Callable[[Tensor, Tensor], Tensor] | None
) -> State:
    """One round; `project(theta, delta)` returns the updates [m, d] that are averaged."""
    theta = state.theta
    updates = task.federation.local_updates(theta, task.participants(round), round)
    delta = project(theta, updates.delta) if project else updates.delta
    return State(theta + aggregate(Updates(delta, updates.sizes, updates.losses), client_weights))
