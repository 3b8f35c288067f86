"""Selects the best trial of a grid on validation data, never on a number that a table reports."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

Evaluation = Mapping[str, Mapping[str, float]]  # role -> metric -> value
Terms = Mapping[str, int]  # metric -> 1, or -1 where lower is better; a model without the first has no score
ROLES = {"original": "", "unlearned": " after unlearning", "recovered": " after post-training"}


def rule(what: str, roles: Sequence[str], seeds: Sequence[int]) -> str:
    """Return the rule in words: what is highest, after which stages, on which seeds."""
    first, *later = [ROLES[role] for role in roles]
    then = "".join(f", then the same{place}" for place in later)
    few = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    best = f"highest {'mean ' * (len(seeds) > 1)}{what} on validation data{first}{then}, ties to the first"
    if len(seeds) == 1:
        return f"on {few}: {best}; if all diverged, the last to diverge"
    return f"on {few}: fewest diverged, then {best}; if all diverged, the last to diverge"


def score(evaluations: Sequence[Evaluation], role: str, terms: Terms) -> float | None:
    """Return the mean over seeds of the sum of the terms; None if a seed has no such model.

    A term that no evaluation has counts nothing: a scenario without a backdoor has no ASR.
    """
    found = [evaluation.get(role, {}) for evaluation in evaluations]
    (first, sign), *others = terms.items()
    if not all(first in metrics for metrics in found):
        return None
    return fmean(
        sign * metrics[first] + sum(sign * metrics.get(name, 0.0) for name, sign in others) for metrics in found
    )


def rounds_of_divergence(evaluations: Sequence[Evaluation]) -> list[float]:
    """Return the rounds in which seeds diverged, in unlearning or post-training; one for each diverged seed."""
    rounds = [
        [metrics["diverged_round"] for metrics in evaluation.values() if "diverged_round" in metrics]
        for evaluation in evaluations
    ]
    return [min(found) for found in rounds if found]


def choose(trials: Mapping[str, Sequence[Evaluation]], terms: Terms, roles: Sequence[str]) -> str:
    """Return the name of the best trial by `rule`; `trials`: name -> an evaluation per seed."""

    def key(name: str) -> tuple[float, ...]:
        lost = rounds_of_divergence(trials[name])
        scores = [score(trials[name], role, terms) for role in roles]
        best = [-math.inf if found is None else round(found, 9) for found in scores]
        return (-len(lost), *best, fmean(lost) if lost else math.inf)

    return max(trials, key=key)  # the first of a tie
