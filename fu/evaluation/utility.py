"""Accuracy of the retained clients: mean, spread, worst and best (FedOSD section 4.1, Tables 4 and 6 to 10)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import client_accuracies

METRICS = ("r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "r_acc_validation")


def evaluate(context: Context) -> dict[str, float]:
    """Return R-Acc on test data, and its mean on validation data where there are any."""
    accuracies = client_accuracies(context.task, context.theta)
    out = {
        "r_acc": accuracies.mean().item(),
        "r_acc_std": accuracies.std(correction=0).item(),
        "r_acc_worst": accuracies.min().item(),
        "r_acc_best": accuracies.max().item(),
    }
    if all(len(rows) for rows in context.task.federation.data.partition.validation):
        out["r_acc_validation"] = client_accuracies(context.task, context.theta, "validation").mean().item()
    return out
