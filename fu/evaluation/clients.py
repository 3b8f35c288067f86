"""What a model is for every client, and how much that client trains on: V, S and Q (Shao et al. 2024, section 3)."""

import torch.nn.functional as F

from fu.evaluation.context import Context

METRICS = {
    "client_accuracy": {
        "label": "Accuracy of a client",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the client's own test set, forgotten or not",
        "source": "Shao et al. 2024, section 7",
        "per": "client",
        "tells": {"broken": "lower"},
    },
    "client_loss": {
        "label": "Loss of a client",
        "unit": "nats",
        "better": "lower",
        "formula": "mean cross-entropy on the client's own test set",
        "source": "Shao et al. 2024, section 3",
        "per": "client",
        "tells": {"broken": "higher"},
    },
    "client_samples": {
        "label": "Samples of a client",
        "unit": "samples",
        "better": "neither",
        "formula": "training samples that the client held before the request",
        "source": "Shao et al. 2024, section 3: the weights of V, S and Q",
        "per": "client",
    },
}


def evaluate(context: Context) -> dict[str, dict[int, float]]:
    """Return each present client's numbers; nothing where clients have no test sets."""
    data = context.data
    present = data.partition.present
    if not all(len(data.partition.test[client]) for client in present):
        return {}
    found: dict[str, dict[int, float]] = {name: {} for name in METRICS}
    for client in present:
        x, y = data.held_out(client, "test")
        logits = context.network.logits(context.theta, x).double()
        found["client_accuracy"][client] = (logits.argmax(1) == y).double().mean().item()
        found["client_loss"][client] = F.cross_entropy(logits, y).item()
        found["client_samples"][client] = float(len(data.partition.train[client]))
    return found
