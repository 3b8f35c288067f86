"""Latest local models [k, d] of the clients to be forgotten: w_u of Halimi et al. 2022 (FUPGA).

During training only an attack identifies these clients; without one, the models of all clients are stored.
"""

from torch import Tensor

from fu.federation.task import Record, Task


def record(task: Task, so_far: Record, theta: Tensor, round: int) -> Record:
    """Return what to keep after a round that began at theta [d]; its updates are known and cost nothing."""
    updates = task.federation.local_updates(theta, task.forgotten or task.clients, round, counted=False)
    return {"theta": theta + updates.delta}
