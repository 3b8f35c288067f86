"""What training records on the way for the methods that need it: kind -> what to keep after a round.

A recorder asks the federation for updates that the round has just computed, which costs nothing.
"""

from collections.abc import Callable

from torch import Tensor

from fu.federation.task import Task

Record = dict[str, Tensor]


def target_model(task: Task, record: Record, theta: Tensor, round: int) -> Record:
    """Keep the forgotten clients' latest local models [k, d] (w_u of Halimi et al. 2022)."""
    updates = task.federation.local_updates(theta, task.forgotten, round, counted=False)
    return {"theta": theta + updates.delta}


KINDS: dict[str, Callable[[Task, Record, Tensor, int], Record]] = {"target_model": target_model}
