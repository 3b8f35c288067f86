"""Accuracy on the forget set, i.e. on the samples that the forgotten clients trained on.

A retrained model classifies many of them correctly where other clients hold similar samples: the reference is its
accuracy, not 0.
"""

import numpy as np

from fu.evaluation.context import Context

TRACE = ("forget_set_accuracy",)
METRICS = {
    "forget_set_accuracy": {
        "label": "Forget-set accuracy",
        "unit": "fraction",
        "better": "neither",
        "formula": "accuracy on all training samples of the forgotten clients, without the trigger",
        "source": "Siddiqui et al. 2025 (arXiv 2505.22310)",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the accuracy on the training samples of the forgotten clients; nothing where there are none."""
    data = context.data
    if not data.forgotten:
        return {}
    x, y = data.clean(np.concatenate([data.partition.train[client] for client in data.forgotten]))
    return {"forget_set_accuracy": context.accuracy(x, y)}


trace = evaluate
