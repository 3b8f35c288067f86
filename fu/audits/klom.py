"""KLoM (Gaussian): divergence between the margins of unlearned and of retrained models, sample by sample.

Georgiev et al. 2024 (Attribute-to-Delete, arXiv 2410.23232) compute, for each sample, the KL divergence between its
margins over unlearned and over retrained models, in this direction, as in the authors' benchmark. They bin the margins,
which takes more models than are available here; we fit Gaussians, with variances shrunk towards a common one
(`models.moderated`), so that the divergence has a closed form and no ceiling. With few models it is never 0. It is
therefore reported beside the divergence between two halves of the retrained models (from N / 2 models, so about
twice what N would give), and tested by permutation: the models are relabelled in every possible way if there are at
most 20,000, else at random 49,999 times from a fixed seed, and p is the share of labellings, including the true one,
whose 95th percentile over forgotten samples is at least as large.

Their variant is reported as well (`klom_binned_*`; RoyRin/data-unlearning-bench, `compute_binned_KL_div`): 20 bins of
equal width over the range of both kinds' margins, which are cut off at -100 and 100, and a share of retrained models of
at least 1e-5, so that it cannot exceed log(1e5) = 11.5 nats. Two details are ours: the largest margin counts in the
last bin, where their code drops it, and shares are not normalised again after 1e-5 takes the place of 0 (less than .001
nats). With few models it is coarse: most of the 20 bins are empty, and each unlearned model alone in its bin adds (11.5
- log N) / N nats.

Attacker model: can train both kinds of models and observes predictions.

Limitations: the audit does not distinguish residual information from excessive forgetting, and it misses joint
differences of several samples, as each is fitted separately. P considers the forgotten samples only; the other samples
show what unlearning changed elsewhere.
"""

import numpy as np
from numpy.typing import NDArray

from fu.audits.models import (
    FORGOTTEN,
    HELD_OUT,
    TRAIN,
    Fit,
    Floats,
    Models,
    check_repeats,
    fitted,
    halves,
    labellings,
    permutation_p,
    refitted,
)

LABEL = "KLoM (Gaussian)"
CAVEAT = (
    "KLoM (Gaussian): divergence between a sample's margins over unlearned and over retrained models, tested by "
    "permutation of the models."
)
LEAST = 4  # of 8 models 70 labellings
SCORE = "klom_forgotten_95"
CHUNK = 2**17  # numbers of one step of the permutation test: 1 MB an array
BINS, CLIP, RAREST = 20, 100, 1e-5  # of the binned variant, as in the authors' benchmark
P = "klom_p"
SEES = ("untouched", "noise")  # controls that it must find
PERCENTILE = 95

METRICS = {
    "klom_forgotten": {
        "label": "KLoM (Gaussian), forgotten",
        "unit": "nats",
        "better": "lower",
        "formula": "KL divergence between Gaussians fitted to a sample's margins over unlearned and over retrained "
        "models, mean over the forgotten samples",
        "source": "Georgiev et al. 2024; Gaussian: our choice",
    },
    "klom_forgotten_95": {
        "label": "KLoM (Gaussian), forgotten, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over the forgotten samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_train": {
        "label": "KLoM (Gaussian), retained",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM (Gaussian), forgotten, on training samples of the retained clients",
        "source": "Georgiev et al. 2024",
    },
    "klom_train_95": {
        "label": "KLoM (Gaussian), retained, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out": {
        "label": "KLoM (Gaussian), held out",
        "unit": "nats",
        "better": "lower",
        "formula": "as KLoM (Gaussian), forgotten, on samples of the same classes that no model was trained on",
        "source": "Georgiev et al. 2024",
    },
    "klom_held_out_95": {
        "label": "KLoM (Gaussian), held out, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over these samples",
        "source": "Georgiev et al. 2024",
    },
    "klom_forgotten_halves": {
        "label": "KLoM (Gaussian), forgotten, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM (Gaussian), forgotten, between the even-numbered and the odd-numbered retrained models: "
        "about twice the value when there is no difference, as there are half as many models",
        "source": "our choice",
    },
    "klom_forgotten_halves_95": {
        "label": "KLoM (Gaussian), forgotten, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over the forgotten samples",
        "source": "our choice",
    },
    "klom_train_halves": {
        "label": "KLoM (Gaussian), retained, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM (Gaussian), retained, between the even-numbered and the odd-numbered retrained models",
        "source": "our choice",
    },
    "klom_train_halves_95": {
        "label": "KLoM (Gaussian), retained, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over these samples",
        "source": "our choice",
    },
    "klom_held_out_halves": {
        "label": "KLoM (Gaussian), held out, between halves",
        "unit": "nats",
        "better": "neither",
        "formula": "as KLoM (Gaussian), held out, between the even-numbered and the odd-numbered retrained models",
        "source": "our choice",
    },
    "klom_held_out_halves_95": {
        "label": "KLoM (Gaussian), held out, between halves, 95th percentile",
        "unit": "nats",
        "better": "neither",
        "formula": "95th percentile of this divergence over these samples",
        "source": "our choice",
    },
    "klom_p": {
        "label": "KLoM (Gaussian), p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of labellings of unlearned and retrained models, the true one included, whose 95th "
        "percentile over the forgotten samples is at least as large; all labellings if there are at most 20,000, else "
        "49,999 random ones",
        "source": "our choice",
    },
    "klom_binned_forgotten": {
        "label": "KLoM (binned), forgotten",
        "unit": "nats",
        "better": "lower",
        "formula": "KL divergence between histograms of a sample's margins over unlearned and over retrained models, "
        "in 20 bins over the range of both, with shares of retrained models of at least 1e-5: 11.5 at most; mean over "
        "the forgotten samples",
        "source": "Georgiev et al. 2024, authors' code",
    },
    "klom_binned_forgotten_95": {
        "label": "KLoM (binned), forgotten, 95th percentile",
        "unit": "nats",
        "better": "lower",
        "formula": "95th percentile of this divergence over the forgotten samples",
        "source": "Georgiev et al. 2024, authors' code",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    values = {}
    for name, probe in (("forgotten", FORGOTTEN), ("train", TRAIN), ("held_out", HELD_OUT)):
        unlearned, retrained, _ = models.margins(probe)
        even, odd = halves(retrained)
        for suffix, one, other in (("", unlearned, retrained), ("_halves", even, odd)):
            divergences = divergence(fitted(one), fitted(other))
            values[f"klom_{name}{suffix}"] = float(divergences.mean())
            values[f"klom_{name}{suffix}_95"] = float(np.percentile(divergences, PERCENTILE))
        if probe == FORGOTTEN:
            values["klom_p"] = p_value(unlearned, retrained)
            divergences = binned(unlearned, retrained)
            values["klom_binned_forgotten"] = float(divergences.mean())
            values["klom_binned_forgotten_95"] = float(np.percentile(divergences, PERCENTILE))
    return values


def divergence(one: Fit, other: Fit) -> Floats:
    """Return KL(one || other) of Gaussians, in nats."""
    ratio = one[1] / other[1]
    return (ratio - 1 - np.log(ratio) + (one[0] - other[0]) ** 2 / other[1]) / 2


def binned(unlearned: Floats, retrained: Floats) -> Floats:
    """Return the KL divergence [n] between histograms of margins [N, n], in nats."""
    values = np.clip(np.concatenate([unlearned, retrained]), -CLIP, CLIP)
    low, width = values.min(0), np.ptp(values, 0) / BINS
    places = np.minimum((values - low) / np.where(width > 0, width, 1), BINS - 1).astype(int)
    inside = places[..., None] == np.arange(BINS)
    one, other = inside[: len(unlearned)].mean(0), inside[len(unlearned) :].mean(0)
    return (one * np.log(np.where(one > 0, one, 1) / np.maximum(other, RAREST))).sum(-1)


def p_value(unlearned: Floats, retrained: Floats) -> float:
    """Return the p-value of the 95th percentile of the divergence of margins [N, n], by permutation of the models."""
    values = np.concatenate([unlearned, retrained])
    values -= values.mean(0)  # so that sums of squares lose no digits
    every = labellings(len(unlearned), len(retrained))
    parts = np.array_split(every, -(-len(every) * values.shape[1] // CHUNK))
    statistics = np.concatenate([_statistics(values, part) for part in parts])
    return permutation_p(statistics)


def _statistics(values: Floats, members: NDArray[np.bool_]) -> Floats:
    """Return the 95th percentile [P] over samples of the divergence of those models that each row names from others."""
    divergences = divergence(refitted(values, members), refitted(values, ~members))
    return np.percentile(divergences, PERCENTILE, axis=1)
