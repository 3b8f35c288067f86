"""Input of an audit, and functions that several share: margins, Gaussian fits to few models, areas under ROC curves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

FORGOTTEN, HELD_OUT, TRAIN, TEST = "forgotten", "held_out", "retained_train", "retained_test"
AUGMENTED, TRIGGERED, ALTERED = "augmented", "triggered", "triggered_altered"
SEARCHED = (FORGOTTEN, AUGMENTED, HELD_OUT, TRIGGERED, ALTERED)  # probes on which something of the client may remain
FRESH = ("head_held_out", "head_triggered", "members")  # probes of fresh heads on a hidden layer
WEIGHTS = "weights"  # key of sketches of the models' weights, beside the probes
PRIOR = 10  # models that the spread over all samples counts as, beside each sample's own spread
FLOOR = 1e-4  # the least variance of a margin: what differs by less than .01 tells nobody anything
NEAR_ZERO = 1e-12
ENUMERATED = 20_000  # labellings at most that are all listed: of 8 models against 8 there are 12,870
DRAWN, SEED = 49_999, 0  # labellings that are drawn where there are more
CHUNK = 500  # relabellings at a time, to limit memory
TIED = 1e-9  # smaller differences are rounding errors

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Logits = Mapping[str, NDArray[np.float32]]
Fit = tuple[Floats, Floats]  # mean and variance [n]


@dataclass(frozen=True)
class Models:
    """What repeats of three kinds of models of one scenario say of fixed probes.

    `labels`: probe -> [n], of exactly the probes that there are; the others: probe -> logits [N, n, C]. Models of the
    same number belong to one repeat: an unlearned model started from the original model of its number. Four probes are
    always there: `FORGOTTEN` (training samples of the forgotten clients, as these trained on them, backdoor included),
    `HELD_OUT` (the forgotten clients' own test samples, or test samples of the same classes), `TRAIN` and `TEST` (of
    the retained clients). `AUGMENTED`, the forgotten samples shifted and with noise, is absent for text. `TRIGGERED`
    (test samples as in `TEST`, with trigger and flipped labels) and `ALTERED` (the same, shifted and with noise) are
    absent without a backdoor. No method gets a sample of `HELD_OUT`, `TEST`, `TRIGGERED` or `ALTERED`. `FRESH`: not the
    models' own outputs, but those of fresh heads on a hidden layer, if there is one. `WEIGHTS`, which has no labels:
    sketches of the weights [N, K, 1], as far apart as these are; absent where only logits are known.
    """

    labels: Mapping[str, NDArray[np.int64]]
    unlearned: Logits
    retrained: Logits
    original: Logits

    @property
    def repeats(self) -> dict[str, int]:
        """How many models there are of each kind: none of one whose repeats have all diverged."""
        kinds = {"unlearned": self.unlearned, "retrained": self.retrained, "original": self.original}
        return {kind: len(logits[FORGOTTEN]) if logits else 0 for kind, logits in kinds.items()}

    def margins(self, probe: str) -> tuple[Floats, Floats, Floats]:
        """Return the margins [N, n] of unlearned, of retrained and of original models on a probe."""
        kinds = self.unlearned[probe], self.retrained[probe], self.original[probe]
        unlearned, retrained, original = (margins(logits, self.labels[probe]) for logits in kinds)
        return unlearned, retrained, original

    def first(self, number: int) -> "Models":
        """Return the same of so many of the first models of each kind; all of a kind that has fewer."""
        kinds = (self.unlearned, self.retrained, self.original)
        return Models(self.labels, *({probe: of[:number] for probe, of in kind.items()} for kind in kinds))


def paired(labels: Mapping[str, NDArray[np.int64]], unlearned: Logits, retrained: Logits, original: Logits) -> Models:
    """Return the repeats of which all three models have finite logits on all probes; the others have diverged.

    Finite weights may give infinite logits. A repeat is left out whole, so that the others keep their numbers.
    """
    kinds = unlearned, retrained, original
    if not all(kinds):  # all models of a kind have diverged
        return Models(labels, {}, {}, {})
    whole = np.logical_and.reduce([np.isfinite(of).all((1, 2)) for logits in kinds for of in logits.values()])
    return Models(labels, *({probe: of[whole] for probe, of in logits.items()} for logits in kinds))


def check_repeats(models: Models, least: int) -> None:
    """Raise `ValueError` where there are fewer than `least` repeats of one of the kinds."""
    for kind, number in models.repeats.items():
        if number < least:
            raise ValueError(f"needs at least {least} {kind} models, got {number}")


def margins(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Floats:
    """Return log p_y - log(1 - p_y) [N, n] of logits [N, n, C], p_y the probability of a sample's own label.

    Raises `ValueError` where a logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError("logits must be finite: repeats that diverged are to be left out")
    others = logits.astype(np.float64)
    index = np.broadcast_to(labels[:, None], (*logits.shape[:-1], 1))
    own = np.take_along_axis(others, index, -1)[..., 0]
    np.put_along_axis(others, index, -np.inf, -1)
    top = others.max(-1)
    others -= top[..., None]
    return own - top - np.log(np.exp(others, out=others).sum(-1))


def fitted(values: Floats) -> Fit:
    """Return mean and variance over models of margins [N, n], for each sample; N is 2 at least."""
    mean = values.mean(0)
    return mean, moderated(((values - mean) ** 2).sum(0), len(values))


def moderated(squares: Floats, number: int) -> Floats:
    """Return the variances that sums of squares [..., n] over `number` models tell, drawn towards their mean over n.

    s2 = ((N - 1) s_i2 + 10 mean_i s_i2) / (N - 1 + 10), at least .0001. Of few models that is nearly the one variance
    for all samples of LiRA's variant for few shadows (Carlini et al. 2022, section VI-B), of many each sample's own.
    """
    freedom = number - 1
    pooled = squares.mean(-1, keepdims=True) / freedom
    return np.maximum((squares + PRIOR * pooled) / (freedom + PRIOR), FLOOR)


def halves(values: Floats) -> tuple[Floats, Floats]:
    """Return the models of even and of odd number."""
    return values[::2], values[1::2]


def searched(models: Models) -> list[str]:
    """Return the probes on which something of the client may remain, in order: those that the models were given."""
    return [probe for probe in SEARCHED if probe in models.labels]


def permutation_p(statistics: Floats) -> float:
    """Return the share of relabellings whose statistic [P] is at least that of the first, the true one."""
    return float((statistics >= statistics[0] - NEAR_ZERO * max(1.0, abs(statistics[0]))).mean())


def refitted(values: Floats, members: Booleans) -> Fit:
    """Return the fits [P, n] to those models of values [N, n] that each row of `members` [P, N] names.

    Centre the values first, so that sums of squares lose no digits.
    """
    number, chosen = int(members[0].sum()), members.astype(np.float64)
    mean = chosen @ values / number
    return mean, moderated(np.maximum(chosen @ values**2 - number * mean**2, 0), number)


def tenth(number: int) -> int:
    """Return how many a tenth of `number` are: one at least."""
    return -(-number // 10)


def area(positives: Floats, negatives: Floats) -> float:
    """Return the share of pairs in which the positive scores higher, a tie counting half, of scores of any shape."""
    ordered = np.sort(negatives, axis=None)
    below, upto = (np.searchsorted(ordered, positives, side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * ordered.size))


def caught(positives: Floats, negatives: Floats, share: float) -> float:
    """Return the largest share of positives above a threshold that at most `share` of the negatives exceed."""
    allowed = int(share * negatives.size + 1e-9)
    return float((positives > np.sort(negatives, axis=None)[-1 - allowed]).mean())


@cache
def labellings(n_unlearned: int, n_retrained: int) -> NDArray[np.bool_]:
    """Return which of N models, unlearned ones first, each labelling calls unlearned [P, N]; the true one comes first.

    All distinct labellings if there are at most `ENUMERATED`, otherwise the true one and `DRAWN` random ones. The share
    of labellings whose statistic is at least the true one's is a permutation p-value, exact or Monte-Carlo (Phipson and
    Smyth 2010), and never 0. The array is shared, so nobody can write to it.
    """
    number = n_unlearned + n_retrained
    if comb(number, n_unlearned) <= ENUMERATED:
        every = np.zeros((comb(number, n_unlearned), number), bool)
        np.put_along_axis(every, np.array([*combinations(range(number), n_unlearned)]), True, 1)
    else:
        true = np.arange(number) < n_unlearned
        drawn = np.random.default_rng(SEED).permuted(np.tile(true, (DRAWN, 1)), axis=1)
        every = np.concatenate([true[None], drawn])
    every.setflags(write=False)
    return every


def smallest_p(number: int) -> float:
    """Return the smallest p-value of a permutation within halves (`labellings_by_half`) of N models of each kind."""
    every = comb(number + number % 2, (number + 1) // 2) * comb(number - number % 2, number // 2)
    return 1 / (every if every <= ENUMERATED else DRAWN + 1)


@cache
def labellings_by_half(n_unlearned: int, n_retrained: int) -> tuple[Booleans, Booleans]:
    """Return relabellings within each half of the models (`halves`), bool [P, N / 2] each, as `labellings` does."""
    sizes = [(n_unlearned + 1) // 2, (n_retrained + 1) // 2], [n_unlearned // 2, n_retrained // 2]
    each = [labellings(*size) for size in sizes]
    number = len(each[0]) * len(each[1])
    if number <= ENUMERATED:
        one, other = np.divmod(np.arange(number), len(each[1]))
    else:
        random = np.random.default_rng(SEED)
        one, other = (np.append(0, random.integers(len(several), size=DRAWN)) for several in each)
    return each[0][one], each[1][other]


def further(one: Floats, other: Floats) -> float:
    """Return the one-sided p-value of a permutation test: is the mean of [N] models above that of [M] others?

    It is the share of labellings whose difference of means is at least the observed one.
    """
    sums = labellings(len(one), len(other)) @ np.concatenate([one, other])  # as their total is fixed
    return float((sums >= sums[0] - TIED).mean())


def apart_by_half(
    unlearned: Floats, retrained: Floats, scored: Callable[[int, list[Floats], Booleans], Floats]
) -> Floats:
    """Return the mean score of unlearned minus that of retrained models under each relabelling [P], over both halves.

    `scored(k, pools, members)`: the scores [N, P] of the models `pools[k]` [N, n] of a half, unlearned ones first, by
    fits to the other half `pools[1 - k]` [M, n], of which `members` [P, M] are called unlearned.
    """
    pools = [np.concatenate(both) for both in zip(halves(unlearned), halves(retrained), strict=True)]
    members = labellings_by_half(len(unlearned), len(retrained))
    apart = np.zeros(len(members[0]))
    for at in range(0, len(apart), CHUNK):
        chunk = [several[at : at + CHUNK] for several in members]
        for k in (0, 1):
            scores, called = scored(k, pools, chunk[1 - k]), chunk[k].T
            number = int(called[:, 0].sum())
            means = (scores * called).sum(0) / number, (scores * ~called).sum(0) / (len(called) - number)
            apart[at : at + CHUNK] += (means[0] - means[1]) / 2
    return apart
