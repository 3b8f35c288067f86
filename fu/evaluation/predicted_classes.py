"""The classes predicted for the forgotten clients' triggered images (our choice: FedOSD's ASR counts flipped labels).

An ASR between 0 and 1 may come from a model that predicts one class for all of them: the flipped label of some.
"""

from fu.evaluation.context import Context
from fu.evaluation.measure import triggered_predictions

TRACE = ()  # as many columns as the data have classes
METRICS = {
    "one_class": {
        "label": "One class",
        "unit": "fraction",
        "better": "neither",
        "tells": {"broken": "higher"},
        "formula": "largest share of the forgotten clients' triggered training images that are assigned one class",
        "source": "our choice: tells a backdoor from a model that predicts one class",
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the share of the most frequent class; nothing if the scenario has no backdoor."""
    return {"one_class": max(found)} if (found := list(trace(context).values())) else {}


def trace(context: Context) -> dict[str, float]:
    """Return the share of each class, `predicted_0` to `predicted_{C - 1}`, in a round; nothing without a backdoor."""
    if context.data.mark is None:
        return {}
    counts = triggered_predictions(context)[0].cpu().bincount(minlength=context.data.classes).double()
    return {f"predicted_{label}": share for label, share in enumerate((counts / counts.sum()).tolist())}
