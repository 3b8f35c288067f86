"""Accuracy on the forgotten clients' test data (our choice: complements R-Acc).

If other clients hold the same classes, a model that never saw a client's data still classifies it well; retraining
shows how well.
"""

from statistics import fmean

from fu.evaluation.context import Context

METRICS = {
    "forgotten_accuracy": {
        "label": "F-Acc",
        "unit": "fraction",
        "better": "neither",
        "formula": "mean over forgotten clients of the accuracy on the client's own test set, without the trigger",
        "source": "our choice: complements R-Acc",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the accuracy of the forgotten clients; nothing where there are none or they have no test sets."""
    data = context.data
    held = [data.held_out(client, "test") for client in data.forgotten]
    if not held or not all(len(y) for _, y in held):
        return {}
    return {"forgotten_accuracy": fmean(context.accuracy(x, y) for x, y in held)}
