"""Latest local models [k, d] of the clients who will be forgotten: w_u of Halimi et al. 2022 (FUPGA).

During training only an attack tells who they are; without one, everybody's are kept.
"""

from torch import Tensor

from fu.federation.task import Record, Task


def record(task: Task, so_far: Record, theta: Tensor, round: int) -> Record:
    """Return what to keep after a round that began at theta [d]; its updates are known and cost nothing."""
    updates = task.federation.local_updates(theta, task.forgotten or task.clients, round, counted=False)
    return {"theta": theta + updates.delta}
