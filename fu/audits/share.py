"""How much of the client is left: the power of a test, and an upper bound, from controls with a known share.

All models are given by their projections on the line from retrained to original models (`line.runs`), probe by probe.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

import numpy as np

from fu.audits.models import SEED, Floats, further

SIMULATIONS = 2_000
POWER = 0.95  # from which on a share counts as detectable
LEVEL = 0.05


def power(control: Floats, retrained: Floats, level: float) -> float:
    """Return how often models like the control's [N] are found among ones like retrained models [M], by simulation.

    Samples of both, drawn by `resampled`, are compared by a one-sided t-test.
    """
    from scipy.special import stdtrit  # half a second that others need not pay

    random = np.random.default_rng(SEED)
    one, other = (resampled(of, random) for of in (control, retrained))
    error = np.sqrt(one.var(1, ddof=1) / one.shape[1] + other.var(1, ddof=1) / other.shape[1])
    limit = stdtrit(len(control) + len(retrained) - 2, 1 - level)
    return float((one.mean(1) - other.mean(1) > limit * error).mean())


def resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Return bootstrap samples [S, N] of values [N], rescaled to the unbiased variance (N - 1).

    Otherwise their variance would be too small by (N - 1) / N, and the power too large.
    """
    number, mean = len(values), values.mean()
    spread = mean + (values - mean) * np.sqrt(number / (number - 1))
    return np.asarray(spread[random.integers(number, size=(SIMULATIONS, number))])


def resolution(powers: Mapping[float, float]) -> float | None:
    """Return the least share whose power, as that of all larger ones, is 95% or more; None: not even the largest."""
    return _least(powers, lambda share: powers[share] >= POWER)


def bound(models: Floats, controls: Mapping[float, Floats]) -> float | None:
    """Return the least share that is rejected, as all larger ones are, at a level of 5%; None: not even the largest.

    A share is rejected if the control's models lie further towards the original ones than these models [N], by a
    permutation of their mean difference. As the shares are tested in a fixed order, from the largest down to the first
    that is not rejected, the bound holds with a confidence of 95% without a correction.
    """
    return _least(controls, lambda share: further(controls[share], models) < LEVEL)


def _least(shares: Iterable[float], passes: Callable[[float], bool]) -> float | None:
    """Return the least share down to which all shares pass, from the largest on; None if the largest fails."""
    return min(takewhile(passes, sorted(shares, reverse=True)), default=None)
