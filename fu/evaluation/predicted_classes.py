"""Predicted classes of the forgotten clients' triggered images (our choice: FedOSD's ASR counts flipped labels only).

An ASR between 0 and 1 can also come from a model that predicts a single class, which is the flipped label of some of
the images.
"""

from fu.evaluation.context import Context
from fu.evaluation.measure import triggered_samples

TRACE = ()  # as many columns as the data have classes
METRICS = {
    "one_class": {
        "label": "Largest class share",
        "unit": "fraction",
        "better": "neither",
        "tells": {"broken": "higher"},
        "formula": "largest share of the forgotten clients' triggered training images that is assigned to a single "
        "class",
        "source": "our choice: distinguishes a backdoor from a model that predicts a single class",
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the share of the most frequent class; nothing if the scenario has no backdoor."""
    return {"one_class": max(found)} if (found := list(trace(context).values())) else {}


def trace(context: Context) -> dict[str, float]:
    """Return the share of each class, `predicted_0` to `predicted_{C - 1}`, in a round; nothing without a backdoor."""
    if context.data.mark is None:
        return {}
    predicted = context.network.logits(context.theta, triggered_samples(context)[0]).argmax(1)
    counts = predicted.cpu().bincount(minlength=context.data.classes).double()
    return {f"predicted_{label}": share for label, share in enumerate((counts / counts.sum()).tolist())}
