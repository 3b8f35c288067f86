"""Post-training: the retained clients continue training; their updates may be projected (FedOSD section 3.3)."""

from collections.abc import Callable

from torch import Tensor

from fu.federation.local import Updates, aggregate
from fu.federation.task import State, Task


def step(
    task: Task, state: State, round: int, client_weights: str, project: Callable[[Tensor, Tensor], Tensor] | None
) -> State:
    """One round; `project(theta, delta)` returns the updates [m, d] that are averaged."""
    theta, federation, clients = state.theta, task.federation, task.participants(round)
    if project is None:
        return State(theta + federation.mean_update(theta, clients, round, client_weights))
    updates = federation.local_updates(theta, clients, round)
    projected = Updates(project(theta, updates.delta), updates.sizes, updates.losses)
    return State(theta + aggregate(projected, client_weights))
