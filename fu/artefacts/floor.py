"""The noise floor of retraining: how far a model may lie from repeats of retraining and still be like one of them.

The repeats differ in their draws alone. A value is compared with the mean of its own seed's repeats, and differences
are averaged over S seeds. Were it one more repeat, their mean would have variance s² (1 + 1/n) / S, n repeats a seed.

A pairwise value (disagreement, variation) is a mean over a repeat's pairs with the others, and every pair is shared by
two of them, which draws their values together. So s is that of the jackknife's pseudo-values, (n - 1) / (n - 2) times
as large. With effects of models and of pairs that are normal, d_ij = mu + a_i + a_j + e_ij, 95% of further repeats lie
inside, or more: (1 + 1/n) (Var a + Var e / (n - 2)) is estimated where (1 + 1/n) (Var a + Var e / (n - 1)) is due. Two
repeats have one value between them, which says nothing of s.
Of effects that are far from normal (heavy tails, one direction) up to 10% of further repeats lie outside.
"""

from collections.abc import Mapping, Sequence
from math import nan, sqrt
from statistics import fmean
from typing import NamedTuple

LEVEL = 0.95  # of further repeats lie inside
DIGITS = 12  # what differs less is rounding


class Floor(NamedTuple):
    """By seed the mean of the repeats and their number n; s, pooled within seeds, with its degrees of freedom."""

    means: Mapping[int, float]
    numbers: Mapping[int, int]
    deviation: float
    freedom: int


class Gap(NamedTuple):
    """How far a mean over seeds lies from the repeats' mean `floor` of these seeds, and how far it may: `half_width`.

    `half_width` is NaN where nothing says how much repeats differ: no seed has two (of a pairwise value: three).
    """

    difference: float
    floor: float
    half_width: float

    @property
    def inside(self) -> bool:
        """Whether the model is like retraining; what repeats share to the last digit it must share, too."""
        return round(abs(self.difference) - self.half_width, DIGITS) <= 0


def noise_floor(repeats: Mapping[int, Sequence[float]], pairwise: bool = False) -> Floor:
    """Return the noise floor of the repeats' values by seed; pairwise values need seeds with three repeats."""
    judged = {seed: values for seed, values in repeats.items() if len(values) > 2} if pairwise else repeats
    kept = judged or repeats
    means = {seed: fmean(values) for seed, values in kept.items()}
    numbers = {seed: len(values) for seed, values in kept.items()}
    scales = {seed: (numbers[seed] - 1) / (numbers[seed] - 2) if pairwise else 1 for seed in judged}
    freedom = sum(len(values) - 1 for values in judged.values())
    squares = sum(scales[seed] ** 2 * (value - means[seed]) ** 2 for seed in judged for value in judged[seed])
    deviation = round(sqrt(squares / freedom), DIGITS) if freedom else nan
    return Floor(means, numbers, deviation, freedom)


def gap(floor: Floor, values: Mapping[int, float]) -> Gap:
    """Return how far a model's values, one for each of S seeds with repeats, lie from the floor.

    The half-width is t(S(n - 1)) s sqrt((1 + 1/n) / S); where numbers of repeats differ, 1 + 1/n is a mean over seeds.
    """
    from scipy.special import stdtrit  # half a second that other kinds need not pay

    at = fmean(floor.means[seed] for seed in values)
    spread = fmean(1 + 1 / floor.numbers[seed] for seed in values) / len(values)
    reach = float(stdtrit(floor.freedom, (1 + LEVEL) / 2)) if floor.freedom else nan
    return Gap(fmean(values.values()) - at, at, reach * floor.deviation * sqrt(spread))
