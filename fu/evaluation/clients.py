"""Accuracy, loss and number of samples of every client, from which V, S and Q follow (Shao et al. 2024, section 4)."""

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor

from fu.evaluation.context import Context

TRACE = ("all_accuracy", "retained_accuracy")
METRICS = {
    "all_accuracy": {
        "label": "Accuracy, all clients",
        "unit": "fraction",
        "better": "higher",
        "formula": "mean accuracy on each client's own test set, including forgotten clients, weighted by training "
        "samples",
        "source": "Shao et al. 2024, Definition 4.2",
        "tells": {"broken": "lower"},
    },
    "retained_accuracy": {
        "label": "Accuracy, retained clients",
        "unit": "fraction",
        "better": "higher",
        "formula": "mean accuracy on each retained client's own test set, weighted by training samples",
        "source": "Shao et al. 2024, Definition 4.1",
        "tells": {"broken": "lower"},
    },
    "all_moved": {
        "label": "Change in accuracy, all clients",
        "unit": "points",
        "better": "neither",
        "formula": "accuracy, all clients, minus its value ten rounds earlier, or in the first round measured if "
        "there are fewer",
        "source": "our choice: shows whether an optimum is reached",
    },
    "retained_moved": {
        "label": "Change in accuracy, retained clients",
        "unit": "points",
        "better": "neither",
        "formula": "accuracy, retained clients, minus its value ten rounds earlier, or in the first round measured if "
        "there are fewer",
        "source": "our choice: shows whether an optimum is reached",
    },
    "client_accuracy": {
        "label": "Accuracy of a client",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the client's own test set, for forgotten clients as well",
        "source": "Shao et al. 2024, section 7",
        "per": "client",
        "tells": {"broken": "lower"},
    },
    "client_loss": {
        "label": "Loss of a client",
        "unit": "nats",
        "better": "lower",
        "formula": "mean cross-entropy on the client's own test set",
        "source": "Shao et al. 2024, section 4",
        "per": "client",
        "tells": {"broken": "higher"},
    },
    "client_samples": {
        "label": "Samples of a client",
        "unit": "samples",
        "better": "neither",
        "formula": "training samples that the client held before the request",
        "source": "Shao et al. 2024, Definition 3.1: the weights of V, S and Q",
        "per": "client",
    },
    "client_forgotten": {
        "label": "Forgotten client",
        "unit": "0 or 1",
        "better": "neither",
        "formula": "1 if the request names the client, otherwise 0",
        "source": "Shao et al. 2024, section 3.2",
        "per": "client",
    },
}
TEN = 10  # rounds


def evaluate(context: Context) -> dict[str, float | dict[int, float]]:
    """Return each present client's numbers, their means, and how these moved; nothing where clients have no tests."""
    means, samples = trace(context), _samples(context)
    if not means:
        return {}
    theta, network = context.theta, context.network
    return {
        **means,
        **_moved(context),
        "client_accuracy": _accuracies(context),
        "client_loss": {
            client: F.cross_entropy(network.logits(theta, x).double(), y).item() for client, x, y in _tested(context)
        },
        "client_samples": samples,
        "client_forgotten": {client: float(client in context.data.forgotten) for client in samples},
    }


def trace(context: Context) -> dict[str, float]:
    """Return the mean accuracy of all clients and of the retained ones; nothing where clients have no test sets."""
    each, samples, kept = _accuracies(context), _samples(context), {*context.data.retained}
    if len(each) < len(samples):
        return {}
    return {
        "all_accuracy": _mean(each, samples),
        "retained_accuracy": _mean(each, {client: n for client, n in samples.items() if client in kept}),
    }


def _tested(context: Context) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield each present client that has test data, with its inputs and labels."""
    for client in context.data.partition.present:
        x, y = context.data.held_out(client, "test")
        if len(y):
            yield client, x, y


def _accuracies(context: Context) -> dict[int, float]:
    return {client: context.accuracy(x, y) for client, x, y in _tested(context)}


def _samples(context: Context) -> dict[int, float]:
    part = context.data.partition
    return {client: float(len(part.train[client])) for client in part.present}


def _mean(values: dict[int, float], weights: dict[int, float]) -> float:
    return sum(values[client] * weight for client, weight in weights.items()) / sum(weights.values())


def _moved(context: Context) -> dict[str, float]:
    """Return by how many points the means have moved in the last ten measured rounds, or in all of fewer."""
    rows = {int(row["round"]): row for row in context.trace if row.get(TRACE[0])}
    if not rows:
        return {}
    before = max((round for round in rows if round <= max(rows) - TEN), default=min(rows))
    moved = (100 * (float(rows[max(rows)][name]) - float(rows[before][name])) for name in TRACE)
    return dict(zip(("all_moved", "retained_moved"), moved, strict=True))
