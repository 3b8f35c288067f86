"""Accuracy on the forget set: what a model says of the very samples that the forgotten clients trained on.

A retrained model says much of them, too, where other clients hold the like: compare with it, not with 0.
"""

import numpy as np

from fu.evaluation.context import Context

TRACE = ("forget_set_accuracy",)
METRICS = {
    "forget_set_accuracy": {
        "label": "Forget-set accuracy",
        "unit": "fraction",
        "better": "neither",
        "formula": "accuracy on the forgotten clients' training samples together, without the trigger",
        "source": "Siddiqui et al. 2025 (arXiv 2505.22310)",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the accuracy on the training samples of the forgotten clients; nothing where there are none."""
    return trace(context)


def trace(context: Context) -> dict[str, float]:
    """Return the same."""
    data = context.data
    if not data.forgotten:
        return {}
    x, y = data.clean(np.concatenate([data.partition.train[client] for client in data.forgotten]))
    right = context.network.logits(context.theta, x).argmax(1) == y
    return {"forget_set_accuracy": right.double().mean().item()}
