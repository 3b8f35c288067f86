"""Choose the best point of a grid on validation data, never on a number that a table shows."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

RULE = (
    "highest R-Acc minus ASR on validation data after unlearning (mean over seeds) of the points that did not diverge; "
    "among equals the same after post-training, then the first; where all diverged, the one that lasted longest"
)
Evaluation = Mapping[str, Mapping[str, float]]  # role -> metric -> value


def score(evaluations: Sequence[Evaluation], role: str) -> float | None:
    """Return the mean over seeds of R-Acc minus ASR on validation data; None where a seed has no such model.

    A scenario without a backdoor has no ASR: R-Acc decides.
    """
    found = [evaluation.get(role, {}) for evaluation in evaluations]
    if not all("r_acc_validation" in metrics for metrics in found):
        return None
    return fmean(metrics["r_acc_validation"] - metrics.get("asr_validation", 0.0) for metrics in found)


def lasted(evaluations: Sequence[Evaluation]) -> float:
    """Return the mean round in which the seeds diverged; infinity for one that did not."""
    return fmean(evaluation.get("unlearned", {}).get("diverged_round", math.inf) for evaluation in evaluations)


def choose(points: Mapping[str, Sequence[Evaluation]]) -> str:
    """Return the name of the best point by `RULE`; `points`: name -> an evaluation per seed."""

    def key(name: str) -> tuple[float, float, float]:
        unlearned, recovered = (score(points[name], role) for role in ("unlearned", "recovered"))
        lowest = -math.inf
        return (
            lowest if unlearned is None else round(unlearned, 9),
            lowest if recovered is None else round(recovered, 9),
            lasted(points[name]),
        )

    return max(points, key=key)  # the first of equals
