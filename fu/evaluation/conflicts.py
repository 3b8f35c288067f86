"""NC: number of retained clients whose gradients conflict with an unlearning update (FedOSD Definition 1, Table 3)."""

from statistics import fmean

import torch
from torch import Tensor

from fu.evaluation.context import Context
from fu.federation.task import Task

TRACE = ("conflicts",)
METRICS = {
    "conflicts": {
        "label": "NC",
        "unit": "clients",
        "better": "lower",
        "formula": "mean over unlearning rounds of the number of retained clients with g_i . d > 0 beyond rounding "
        "error, where w <- w + lr d",
        "source": "FedOSD Table 3",
        "tells": {"broken": "higher"},
    },
}


def count(task: Task, before: Tensor, after: Tensor, round: int) -> dict[str, float]:
    """Return how many retained clients' gradients conflict with the update of a round.

    Client i's gradient is g_i = -delta_i / lr, so the update d conflicts with it where delta_i . d < 0. The update is
    the difference of two float32 models; a cosine within their rounding error (eps ||after|| / ||d||) is not a
    conflict. FedOSD's updates are orthogonal to every g_i, and the paper prints 0.00 for them.
    """
    trained = slice(task.federation.layout.parameters)
    update = (after.double() - before.double())[trained]
    delta = task.federation.local_updates(before, task.retained, round, counted=False).delta.double()[:, trained]
    rounding = torch.finfo(after.dtype).eps * after[trained].double().norm()
    return {"conflicts": float((delta @ update < -rounding * delta.norm(dim=1)).sum())}


def evaluate(context: Context) -> dict[str, float]:
    """Return the mean over the rounds in which the trace counted conflicts; nothing if it has no counts."""
    counts = [float(row["conflicts"]) for row in context.trace if row.get("conflicts")]
    return {"conflicts": fmean(counts)} if counts else {}
