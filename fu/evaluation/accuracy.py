"""Accuracy on a global test set: the data set's own, or the union of all clients' test sets (SAFARI section 5).

Accuracy fluctuates from round to round, so the mean over the last ten rounds is reported as well.
"""

from statistics import fmean

import torch
from torch import Tensor

from fu.evaluation.context import Context

TRACE = ("accuracy", "accuracy_held_out")
METRICS = {
    "accuracy": {
        "label": "Accuracy",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the global test set",
        "source": "SAFARI section 5; FATS section 6.1.3",
        "tells": {"broken": "lower"},
    },
    "accuracy_of_ten": {
        "label": "Accuracy over ten rounds",
        "unit": "fraction",
        "better": "higher",
        "formula": "mean accuracy over the last ten rounds in which it was measured",
        "source": "our choice: accuracy fluctuates from round to round",
        "tells": {"broken": "lower"},
    },
    "accuracy_held_out": {
        "label": "Accuracy (validation)",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on held-out samples of all classes",
        "source": "our choice: to select hyper-parameters",
        "tells": {"broken": "lower"},
    },
    "accuracy_held_out_of_ten": {
        "label": "Accuracy over ten rounds (validation)",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy over ten rounds, on held-out samples of all classes",
        "source": "our choice: to select hyper-parameters",
        "tells": {"broken": "lower"},
    },
    "accuracy_absent": {
        "label": "Accuracy on absent classes",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the test samples of classes that no participating client has in its training data",
        "source": "our choice: what the clients' data alone cannot teach",
    },
    "share_present": {
        "label": "Share of present classes",
        "unit": "fraction",
        "better": "neither",
        "formula": "share of the test samples in all other classes",
        "source": "our choice: bounds the accuracy from the clients' data alone",
    },
}
ROUNDS = 10


def evaluate(context: Context) -> dict[str, float]:
    """Return accuracy on test data and on held-out samples, if any, now and over ten rounds; and on absent classes."""
    x, y = context.data.global_test
    present = _held(context, y)
    out = {**trace(context), "share_present": present.double().mean().item()}
    if not present.all():
        out["accuracy_absent"] = context.accuracy(x[~present], y[~present])
    for name in TRACE:
        measured = [float(row[name]) for row in context.trace[1:] if row.get(name)]  # the first is before any round
        if measured:
            out[f"{name}_of_ten"] = fmean(measured[-ROUNDS:])
    return out


def trace(context: Context) -> dict[str, float]:
    """Return accuracy on the test set, and on the held-out samples where there are any."""
    out = {"accuracy": context.accuracy(*context.data.global_test)}
    if len(context.data.partition.held_out):
        out["accuracy_held_out"] = context.accuracy(*context.data.pool("held_out"))
    return out


def _held(context: Context, y: Tensor) -> Tensor:
    """Return which of the labels are of classes that a client which takes part holds, as it is without a trigger."""
    data = context.data
    held = torch.cat([data.y[data.partition.train[client]] for client in data.partition.present])
    return torch.isin(y, held.unique())
