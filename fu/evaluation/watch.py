"""What is watched in every unlearning round: the conflicts of the update with the retained clients."""

import torch
from torch import Tensor

from fu.federation.task import Task


def conflicts(task: Task, before: Tensor, after: Tensor, round: int) -> dict[str, float]:
    """Return NC: how many retained clients' gradients conflict with the round's update (FedOSD Definition 1, Table 3).

    Client i's gradient is g_i = -delta_i / lr, so the update d conflicts with it where delta_i . d < 0. The update is
    the difference of two float32 models; what their rounding alone can make of the cosine (eps ||after|| / ||d||) is
    no conflict. FedOSD's updates are orthogonal to every g_i, and the paper prints 0.00 for them.
    """
    update = after.double() - before.double()
    delta = task.federation.local_updates(before, task.retained, round, counted=False).delta.double()
    rounding = torch.finfo(after.dtype).eps * after.double().norm()
    return {"conflicts": float((delta @ update < -rounding * delta.norm(dim=1)).sum())}
