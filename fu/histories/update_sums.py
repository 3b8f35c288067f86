"""Sum over rounds of every client's update, weighted by the squared norm of the round's gradient (FedRecovery).

FedRecovery needs sum_t p_t D_t^i with p_t = ||grad F(w_t)||^2 / sum_s ||grad F(w_s)||^2. The numerators are known in
each round, their sum only at the end, so `sums` [m, d] and `weight` [1] give the same result as all m d T numbers.
"""

import torch
from torch import Tensor

from fu.federation.task import Record, Task


def record(task: Task, so_far: Record, theta: Tensor, round: int) -> Record:
    """Return what to keep after a round that began at theta [d]; its updates are known and cost nothing.

    grad F(w_t) is taken as -D_t / lr, with D_t the mean update.
    """
    delta = task.federation.local_updates(theta, task.clients, round, counted=False).delta
    weight = (delta.mean(0).double().norm() / task.federation.rate(round)).square()
    sums = delta * weight.float()
    if so_far:
        return {"sums": so_far["sums"] + sums, "weight": so_far["weight"] + weight}
    return {"sums": sums, "weight": torch.atleast_1d(weight)}
