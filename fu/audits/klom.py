"""KLoM: divergence between the margins of unlearned and of retrained models, sample by sample.

Georgiev et al. 2024 (Attribute-to-Delete, arXiv 2410.23232) compute, for each sample, the KL divergence between its
margins over unlearned and over retrained models, in this direction, as in the authors' benchmark. They bin the margins,
which takes more models than are available here; we fit Gaussians, with variances shrunk towards a common one
(`models.moderated`), so that the divergence has a closed form. With few models it is never 0. It is therefore reported
beside the divergence between two halves of the retrained models (from N / 2 models, so somewhat larger than N would
give), and tested by permutation: the unlearned and retrained models are relabelled at random 999 times, from a fixed
seed, and p is the share of labellings, including the true one, whose 95th percentile over forgotten samples is at least
as large.

Attacker model: can train both kinds of models and observes predictions.

Limitations: the audit does not distinguish residual information from excessive forgetting, and it misses joint
differences of several samples, as each is fitted separately. `found` considers the forgotten samples only; the other
samples show what unlearning changed elsewhere.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fu.audits.models import (
    FORGOTTEN,
    HELD_OUT,
    NEAR_ZERO,
    TRAIN,
    Fit,
    Floats,
    Models,
    check_repeats,
    fitted,
    halves,
    margins,
    moderated,
)

LABEL = "KLoM"
CAVEAT = (
    "KLoM: divergence between a sample's margins over unlearned and over retrained models, tested by permutation of "
    "the models."
)
LEAST = 4  # of 8 models 70 labellings
SCORE = "klom_forgotten_95"
PERMUTATIONS, SEED = 999, 0
LEVEL, PERCENTILE = 0.05, 95

METRICS = {
    "klom_forgotten": {
        "label": "KLoM, forgotten",
        "unit": "nats",
        "better": "lower",
        "formula": "KL divergence between Gaussians fitted to a sample's margins over unlearned and over retrained "
        "models, mean over the forgotten samples",
        "source": "Georgiev et al. 2024; Gaussian: our choice",
    },
    "klom_forgotten_95": {
        "label": "KLoM, forgotten, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over the forgotten samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_train": {
        "label": "KLoM, retained",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM, forgotten, on training samples of the retained clients",
        "source": "Georgiev et al. 2024",
    },
    "klom_train_95": {
        "label": "KLoM, retained, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out": {
        "label": "KLoM, held out",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM, forgotten, on samples of the same classes that no model was trained on",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out_95": {
        "label": "KLoM, held out, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_forgotten_halves": {
        "label": "KLoM, forgotten, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, forgotten, between the even-numbered and the odd-numbered retrained models: the value "
        "when there is no difference",
        "source": "our choice",
    },
    "klom_forgotten_halves_95": {
        "label": "KLoM, forgotten, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over the forgotten samples",
        "source": "our choice",
    },
    "klom_train_halves": {
        "label": "KLoM, retained, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, retained, between the even-numbered and the odd-numbered retrained models",
        "source": "our choice",
    },
    "klom_train_halves_95": {
        "label": "KLoM, retained, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over these samples",
        "source": "our choice",
    },
    "klom_held_out_halves": {
        "label": "KLoM, held out, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, held out, between the even-numbered and the odd-numbered retrained models",
        "source": "our choice",
    },
    "klom_held_out_halves_95": {
        "label": "KLoM, held out, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over these samples",
        "source": "our choice",
    },
    "klom_p": {
        "label": "KLoM, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of 999 random labellings of unlearned and retrained models and the true one whose 95th "
        "percentile over the forgotten samples is at least as large",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    values = {}
    for name, probe in (("forgotten", FORGOTTEN), ("train", TRAIN), ("held_out", HELD_OUT)):
        unlearned, retrained = (
            margins(logits[probe], models.labels[probe]) for logits in (models.unlearned, models.retrained)
        )
        even, odd = halves(retrained)
        for suffix, one, other in (("", unlearned, retrained), ("_halves", even, odd)):
            divergences = divergence(fitted(one), fitted(other))
            values[f"klom_{name}{suffix}"] = float(divergences.mean())
            values[f"klom_{name}{suffix}_95"] = float(np.percentile(divergences, PERCENTILE))
        if probe == FORGOTTEN:
            values["klom_p"] = p_value(unlearned, retrained)
    return values


def found(values: Mapping[str, float]) -> bool:
    """Return whether unlearned models differ from retrained ones on forgotten samples: p below .05."""
    return values["klom_p"] < LEVEL


def divergence(one: Fit, other: Fit) -> Floats:
    """Return KL(one || other) of Gaussians, in nats."""
    ratio = one[1] / other[1]
    return (ratio - 1 - np.log(ratio) + (one[0] - other[0]) ** 2 / other[1]) / 2


def p_value(unlearned: Floats, retrained: Floats) -> float:
    """Return the p-value of the 95th percentile of the divergence of margins [N, n], by permutation of the models."""
    values = np.concatenate([unlearned, retrained])
    values -= values.mean(0)  # so that sums of squares lose no digits
    labels = np.arange(len(values)) < len(unlearned)
    random = np.random.default_rng(SEED)
    drawn = random.permuted(np.tile(labels, (PERMUTATIONS, 1)), axis=1)
    labellings = np.concatenate([labels[None], drawn])
    divergences = divergence(*(_fitted(values, members) for members in (labellings, ~labellings)))
    statistics = np.percentile(divergences, PERCENTILE, axis=1)
    return float((statistics >= statistics[0] - NEAR_ZERO).mean())


def _fitted(values: Floats, members: NDArray[np.bool_]) -> Fit:
    """Return the fits [P, n] to those models of values [N, n] that each row of `members` [P, N] names."""
    number, chosen = int(members[0].sum()), members.astype(np.float64)
    mean = chosen @ values / number
    return mean, moderated(np.maximum(chosen @ values**2 - number * mean**2, 0), number)
