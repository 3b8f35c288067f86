"""What the run of a model cost: client-rounds, steps, samples, bytes (FedOSD appendix B.4 counts client time)."""

from fu.evaluation.context import Context

METRICS = ("client_rounds", "steps", "samples", "bytes_up", "bytes_down")


def evaluate(context: Context) -> dict[str, float]:
    """Return the counts at the end of the run; the recovered model's are those of post-training alone."""
    last = context.trace[-1]
    return {name: float(last[name]) for name in METRICS}
