"""Accuracy of the retained clients: mean, standard deviation, worst, best (FedOSD section 4.1, Tables 4, 6 to 10)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import client_accuracies

TRACE = ("r_acc", "r_acc_std", "r_acc_worst", "r_acc_best")
METRICS = {
    "r_acc": {
        "label": "R-Acc",
        "unit": "fraction",
        "better": "higher",
        "formula": "mean over retained clients of the accuracy on the client's own test set",
        "source": "FedOSD section 4.1",
        "spread": "r_acc_std",
        "tells": {"broken": "lower"},
    },
    "r_acc_std": {
        "label": "std",
        "unit": "fraction",
        "better": "lower",
        "formula": "population standard deviation of R-Acc over retained clients",
        "source": "FedOSD Table 1",
    },
    "r_acc_worst": {
        "label": "Worst",
        "unit": "fraction",
        "better": "higher",
        "formula": "lowest accuracy of a retained client",
        "source": "FedOSD Table 4",
        "tells": {"broken": "lower"},
    },
    "r_acc_best": {
        "label": "Best",
        "unit": "fraction",
        "better": "higher",
        "formula": "highest accuracy of a retained client",
        "source": "FedOSD Table 4",
        "tells": {"broken": "lower"},
    },
    "r_acc_validation": {
        "label": "R-Acc (validation)",
        "unit": "fraction",
        "better": "higher",
        "formula": "R-Acc on the validation samples",
        "source": "our choice: to tune learning rates",
        "tells": {"broken": "lower"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return R-Acc, and its mean on validation data if there are any; nothing where clients have no test sets."""
    out = trace(context)
    if out and all(len(rows) for rows in context.data.partition.validation):
        out["r_acc_validation"] = client_accuracies(context, "validation").mean().item()
    return out


def trace(context: Context) -> dict[str, float]:
    """Return mean, population standard deviation, worst and best over the retained clients."""
    if not all(len(rows) for rows in context.data.partition.test):
        return {}
    accuracies = client_accuracies(context)
    return {
        "r_acc": accuracies.mean().item(),
        "r_acc_std": accuracies.std(correction=0).item(),
        "r_acc_worst": accuracies.min().item(),
        "r_acc_best": accuracies.max().item(),
    }
