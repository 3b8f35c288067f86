"""How much of the client is left: the power of a test, and an upper bound, from controls with a known share.

All models are given by their projections on the line from retrained to original models (`line.runs`), probe by probe.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

import numpy as np

from fu.audits.models import NEAR_ZERO, SEED, Floats, further

SIMULATIONS = 2_000
POWER = 0.95  # from which on a share counts as detectable
LEVEL = 0.05


def power(control: Floats, retrained: Floats, level: float) -> float:
    """Return how often, at least, models like the control's [N] are found among ones like retrained models [M].

    By simulation: samples of both, drawn by `resampled`, are compared by Welch's one-sided t-test. As the control's
    mean is known from N models only, it is taken at the lower end of its one-sided 95% interval.
    """
    random = np.random.default_rng(SEED)
    one, other = (resampled(of, random) for of in (control, retrained))
    own, limit = welch(control[None], retrained[None], LEVEL), welch(one, other, level)
    return float((one.mean(1) - other.mean(1) > limit + own).mean())


def welch(one: Floats, other: Floats, level: float) -> Floats:
    """Return the difference of means that samples [S, N] and [S, M] must exceed in Welch's one-sided t-test [S]."""
    from scipy.special import stdtrit  # half a second that others need not pay

    parts = [np.maximum(of.var(1, ddof=1), NEAR_ZERO) / of.shape[1] for of in (one, other)]
    freedom = sum(parts) ** 2 / sum(part**2 / (of.shape[1] - 1) for part, of in zip(parts, (one, other), strict=True))
    return np.asarray(stdtrit(freedom, 1 - level) * np.sqrt(sum(parts)))


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


def bound(models: Floats, controls: Mapping[float, Floats], level: float = LEVEL) -> float | None:
    """Return the least share that is rejected, as all larger ones are, at a level; None: not even the largest.

    A share is rejected if the control's models lie further towards the original ones than these models [N], by a
    permutation of their mean difference. As the shares are tested in a fixed order, from the largest down to the first
    that is not rejected, the bound holds with a confidence of 1 - `level` without a further correction, if models of
    both kinds are distributed alike but for their mean. (In simulations of 8 and 16 models that vary ten times less
    than a control's, it holds in 94% to 96% where the control's are normal, in 87% where they have an exponential tail
    towards retrained models, and in 60% to 85% where one or two in ten of them form a group of their own there.)
    """
    return _least(controls, lambda share: further(controls[share], models) < level)


def _least(shares: Iterable[float], passes: Callable[[float], bool]) -> float | None:
    """Return the least share down to which all shares pass, from the largest on; None if the largest fails."""
    return min(takewhile(passes, sorted(shares, reverse=True)), default=None)
