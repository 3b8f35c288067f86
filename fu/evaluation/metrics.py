"""The registry of metrics: name, unit, direction, formula, source."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric. Shares are fractions, not percent; `better` says which direction is good, if either is."""

    label: str
    unit: str
    better: Literal["lower", "higher", "neither"]
    formula: str
    source: str


# The metrics of a trace, in the order of its columns.
TRACED = ["asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts"]
TRACED += ["client_rounds", "steps", "samples", "bytes_up", "bytes_down"]
_DEFINITION = "FedOSD section 4.1"
METRICS = {
    "asr": Metric(
        "ASR",
        "fraction",
        "lower",
        "accuracy on all training samples of the forgotten clients, with trigger and flipped labels",
        _DEFINITION,
    ),
    "asr_validation": Metric(
        "ASR (validation)",
        "fraction",
        "lower",
        "as ASR, on the validation samples of the forgotten clients",
        "our choice: to choose rates",
    ),
    "r_acc": Metric(
        "R-Acc", "fraction", "higher", "mean over retained clients of the accuracy on the own test set", _DEFINITION
    ),
    "r_acc_std": Metric(
        "std", "fraction", "lower", "population standard deviation of R-Acc over retained clients", "FedOSD Table 1"
    ),
    "r_acc_worst": Metric("Worst", "fraction", "higher", "lowest accuracy of a retained client", "FedOSD Table 4"),
    "r_acc_best": Metric("Best", "fraction", "higher", "highest accuracy of a retained client", "FedOSD Table 4"),
    "r_acc_validation": Metric(
        "R-Acc (validation)", "fraction", "higher", "as R-Acc, on the validation samples", "our choice: to choose rates"
    ),
    "distance": Metric(
        "Distance", "Euclidean norm", "neither", "||w - w0||, w0 the original model", "FedOSD section 4.2, Figure 5"
    ),
    "conflicts": Metric(
        "NC",
        "clients",
        "lower",
        "mean over unlearning rounds of the number of retained clients with g_i . d > 0 beyond rounding, w <- w + lr d",
        "FedOSD Table 3",
    ),
    "client_rounds": Metric("Client-rounds", "rounds of one client", "lower", "local trainings run", "FedOSD B.4"),
    "steps": Metric("Gradient steps", "steps", "lower", "minibatch steps of all clients", "FedOSD B.4"),
    "samples": Metric("Samples", "samples", "lower", "training samples processed", "FedOSD B.4"),
    "seconds": Metric(
        "Seconds",
        "s per 200 rounds",
        "lower",
        "training time of all clients and the server, without evaluation",
        "FedOSD B.4",
    ),
    "bytes_up": Metric("Bytes up", "bytes", "lower", "updates sent to the server, 4 bytes a number", "our choice"),
    "bytes_down": Metric("Bytes down", "bytes", "lower", "models sent to clients, 4 bytes a number", "our choice"),
    "diverged_round": Metric(
        "Diverged", "round", "neither", "round whose parameters left the finite numbers", "our choice"
    ),
}
