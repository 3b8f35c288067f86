"""KLoM: how far margins over unlearned models lie from margins over retrained ones, sample by sample.

Georgiev et al. 2024 (Attribute-to-Delete, arXiv 2410.23232): the KL divergence, from unlearned to retrained as in the
authors' benchmark, of a sample's margins over models. That bins the margins, which takes more models than there
are here, so Gaussians are fitted, with variances drawn towards one for all samples (`models.moderated`), and the
divergence has a closed form. Few models never have a divergence of 0, so it stands beside that of two halves of the
retrained models (of N / 2 models, so somewhat above what N would give), and is tested by permutation: the unlearned and
retrained models are relabelled 999 times at random, from a fixed seed, and p is the share of labellings, the true one
included, whose 95th percentile over forgotten samples is at least as large.

It takes an attacker who can train both kinds of models; he sees predictions.

It does not show whether a difference is a remnant or too much forgotten, nor joint differences of several samples: each
is fitted alone. `found` looks at forgotten samples alone; the others show what unlearning did elsewhere.
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
    "KLoM: how far an example's margins over unlearned models lie from those over retrained ones, tested by "
    "permutation of the models."
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
        "formula": "KL divergence of Gaussians fitted to margins over unlearned and over retrained models, mean over "
        "the forgotten samples",
        "source": "Georgiev et al. 2024; Gaussian: our choice",
    },
    "klom_forgotten_95": {
        "label": "KLoM, forgotten, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "its 95th percentile over the forgotten samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_train": {
        "label": "KLoM, retained",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM, forgotten, over training samples of retained clients",
        "source": "Georgiev et al. 2024",
    },
    "klom_train_95": {
        "label": "KLoM, retained, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "its 95th percentile over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out": {
        "label": "KLoM, held out",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM, forgotten, over samples of the same classes that no model trained on",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out_95": {
        "label": "KLoM, held out, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "its 95th percentile over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_forgotten_halves": {
        "label": "KLoM, forgotten, of halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, forgotten, between retrained models of even and of odd number: what no difference gives",
        "source": "our choice",
    },
    "klom_forgotten_halves_95": {
        "label": "KLoM, forgotten, of halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "its 95th percentile over the forgotten samples",
        "source": "our choice",
    },
    "klom_train_halves": {
        "label": "KLoM, retained, of halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, retained, between retrained models of even and of odd number",
        "source": "our choice",
    },
    "klom_train_halves_95": {
        "label": "KLoM, retained, of halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "its 95th percentile over these samples",
        "source": "our choice",
    },
    "klom_held_out_halves": {
        "label": "KLoM, held out, of halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM, held out, between retrained models of even and of odd number",
        "source": "our choice",
    },
    "klom_held_out_halves_95": {
        "label": "KLoM, held out, of halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "its 95th percentile over these samples",
        "source": "our choice",
    },
    "klom_p": {
        "label": "KLoM, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of 999 random labellings of unlearned and retrained models, and the true one, with at least "
        "so large a 95th percentile over the forgotten samples",
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
