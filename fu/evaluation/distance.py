"""Euclidean distance to the original model (FedOSD Figure 5)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import distance

TRACE = ("distance",)
METRICS = {
    "distance": {
        "label": "Distance",
        "unit": "Euclidean norm",
        "better": "neither",
        "formula": "||w - w0||, w0 the original model",
        "source": "FedOSD section 4.2, Figure 5",
        "tells": {"original": "lower", "broken": "higher"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the distance; nothing while the original model is being trained."""
    return {} if context.original is None else {"distance": distance(context)}


trace = evaluate
