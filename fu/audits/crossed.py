"""Inference over clients beside inference over draws, where several clients are forgotten on several partitions.

Every client (c) is forgotten on every partition (p), in N runs each, with the same N seeds. In the mixed model y_cpn =
mu + p + a_c + b_cp + s_n + e_cpn clients are random and partitions are fixed. The interval over clients is Student's t
over the means of the clients: exact in a balanced design with normal effects, whatever the variances of a, b and e are
(Searle, Casella and McCulloch 1992, section 4.3). It is about further clients with these seeds (s). The interval over
runs holds for these clients and partitions alone, and is about further seeds: the runs of a seed, which share initial
weights and many draws, count as one, their mean. As unlearned and retrained runs may vary differently, its degrees of
freedom are those of Welch (1947) and Satterthwaite (1946). Where some runs diverged, the others no longer share their
places, and the deviations of the cells are added up, as if the runs of a seed were all alike.
"""

from collections.abc import Sequence
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from fu.audits.models import Floats

OUTSIDE = 0.025  # of an interval, on each side
Cell = tuple[Floats, Floats]  # the unlearned [N] and the retrained [M] models of one client on one partition
Interval = tuple[float, float]


class Crossed(NamedTuple):
    """How far unlearned models differ from retrained ones on average, two 95% intervals, and two deviations.

    `over_clients` and `between` (standard deviation of the clients' means) are NaN with one client; `within`: pooled
    standard deviation of the unlearned runs of one client on one partition.
    """

    mean: float
    over_clients: Interval
    over_runs: Interval
    between: float
    within: float


def crossed(cells: Sequence[Sequence[Cell]], seeds: int) -> Crossed:
    """Return the inference from `cells[c][p]`, two models of a kind in each at least; all clients weigh the same.

    `seeds`: of how many each cell has a model of either kind, if none diverged.
    """
    means = [np.mean([u.mean() - r.mean() for u, r in client]) for client in cells]
    every = [cell for client in cells for cell in client]
    variances = [_variance([[cell[kind] for cell in client] for client in cells], seeds) for kind in (0, 1)]
    total = sum(variance for variance, _ in variances)
    freedom = total**2 / sum(variance**2 / df for variance, df in variances) if total else 1
    number, mean = len(cells), float(np.mean(means))
    between = float(np.std(means, ddof=1)) if number > 1 else nan
    return Crossed(
        mean,
        _interval(mean, between / sqrt(number), number - 1),
        _interval(mean, sqrt(total), freedom),
        between,
        float(np.sqrt(np.mean([u.var(ddof=1) for u, _ in every]))),
    )


def _variance(runs: Sequence[Sequence[Floats]], seeds: int) -> tuple[float, int]:
    """Return the variance of the mean over clients of models `runs[c][p]` of one kind [N], and its freedom."""
    if (sizes := {len(of) for client in runs for of in client}) == {seeds}:
        means = np.mean([np.mean(client, axis=0) for client in runs], axis=0)
        return float(means.var(ddof=1)) / seeds, seeds - 1
    errors = [np.mean([of.std(ddof=1) / sqrt(len(of)) for of in client]) for client in runs]
    return float(np.mean(errors)) ** 2, min(sizes) - 1


def _interval(mean: float, error: float, freedom: float) -> Interval:
    from scipy.special import stdtrit  # half a second that others need not pay

    half = float(-stdtrit(freedom, OUTSIDE)) * error if freedom else nan
    return mean - half, mean + half
