"""Accuracy on a global test set: the data set's own, or the test sets of all clients together (SAFARI section 5)."""

from torch import Tensor

from fu.evaluation.context import Context

METRICS = {
    "accuracy": {
        "label": "Accuracy",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the global test set",
        "source": "SAFARI section 5",
        "tells": {"broken": "lower"},
    },
    "accuracy_held_out": {
        "label": "Accuracy (held out)",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on held-out samples of all classes",
        "source": "our choice: to choose hyper-parameters",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return accuracy on the test set, and on the held-out samples where there are any."""
    out = trace(context)
    if len(context.data.partition.held_out):
        out["accuracy_held_out"] = _accuracy(context, *context.data.pool("held_out"))
    return out


def trace(context: Context) -> dict[str, float]:
    """Return accuracy on the test set."""
    return {"accuracy": _accuracy(context, *context.data.global_test)}


def _accuracy(context: Context, x: Tensor, y: Tensor) -> float:
    return (context.network.logits(context.theta, x).argmax(1) == y).double().mean().item()
