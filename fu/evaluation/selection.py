"""Choose the best trial of a grid on validation data, never on a number that a table shows."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

RULE = (
    "fewest diverged seeds, then highest mean R-Acc minus ASR on validation data after unlearning, then the same after "
    "post-training, then the first; if all diverged, the last to do so"
)
Evaluation = Mapping[str, Mapping[str, float]]  # role -> metric -> value


def score(evaluations: Sequence[Evaluation], role: str) -> float | None:
    """Return the mean over seeds of R-Acc minus ASR on validation data; None if a seed has no such model.

    A scenario without a backdoor has no ASR: R-Acc decides.
    """
    found = [evaluation.get(role, {}) for evaluation in evaluations]
    if not all("r_acc_validation" in metrics for metrics in found):
        return None
    return fmean(metrics["r_acc_validation"] - metrics.get("asr_validation", 0.0) for metrics in found)


def rounds_of_divergence(evaluations: Sequence[Evaluation]) -> list[float]:
    """Return the rounds in which seeds diverged, in unlearning or post-training; one for each diverged seed."""
    rounds = [
        [metrics["diverged_round"] for metrics in evaluation.values() if "diverged_round" in metrics]
        for evaluation in evaluations
    ]
    return [min(found) for found in rounds if found]


def choose(trials: Mapping[str, Sequence[Evaluation]]) -> str:
    """Return the name of the best trial by `RULE`; `trials`: name -> an evaluation per seed."""

    def key(name: str) -> tuple[float, ...]:
        lost = rounds_of_divergence(trials[name])
        scores = [score(trials[name], role) for role in ("unlearned", "recovered")]
        best = [-math.inf if found is None else round(found, 9) for found in scores]
        return (-len(lost), *best, fmean(lost) if lost else math.inf)

    return max(trials, key=key)  # the first of a tie
