"""NC: retained clients per unlearning round whose gradients conflict with the update (FedOSD Table 3)."""

from statistics import fmean

from fu.evaluation.context import Context

METRICS = ("conflicts",)


def evaluate(context: Context) -> dict[str, float]:
    """Return the mean over the rounds in which the trace counted conflicts; nothing where it counted none."""
    counts = [float(row["conflicts"]) for row in context.trace if row["conflicts"]]
    return {"conflicts": fmean(counts)} if counts else {}
