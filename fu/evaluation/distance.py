"""Euclidean distance to the original model (FedOSD Figure 5)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import distance

METRICS = ("distance",)


def evaluate(context: Context) -> dict[str, float]:
    """Return the distance."""
    return {"distance": distance(context.task, context.theta)}
