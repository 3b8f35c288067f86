"""Harm: does unlearning cost the retained clients accuracy?

Errors per 100 samples of unlearned models minus those of retrained models, which lost the same data and so show what
harm is unavoidable. They are counted on the retained clients' test samples, and on the tenth of their training samples
that resembles the forgotten ones most: those whose logits, averaged over original models, are nearest (Euclidean
distance) to those of a forgotten sample (our choice). Each difference has a bootstrap interval over models, the chance
that an unlearned model is worse than a retrained one, and a one-sided permutation p (`differences`). The audit decides
nothing about the forgotten clients: it declares no `P`. P-values are of one comparison; the kind `harm` adjusts them
for all that its table shows.

Attacker model: none; anyone who holds the retained data can measure it.

Limitations: samples that are still classified correctly, if less surely, are no errors (`klom_train` sees those), and
the original models' logits define which samples are near.
"""

import numpy as np
from numpy.typing import NDArray

from fu.audits.differences import compared
from fu.audits.models import FORGOTTEN, TEST, TRAIN, Logits, Models, check_repeats, tenth

LABEL = "Harm"
CAVEAT = (
    "Harm: errors per 100 samples beyond those of retrained models, on the retained clients' test samples and on their "
    "training samples nearest to the forgotten ones."
)
LEAST = 2  # a spread over models
SCORE = "harm_near"  # of the picture

METRICS = {
    "harm_near": {
        "label": "More errors, nearest",
        "unit": "errors per 100 samples",
        "better": "lower",
        "formula": "errors per 100 of the tenth of the retained training samples nearest to the forgotten ones, mean "
        "over unlearned models minus mean over retrained models",
        "source": "our choice",
    },
    "harm_near_low": {
        "label": "More errors, nearest, lower limit",
        "unit": "errors per 100 samples",
        "better": "neither",
        "formula": "lower end of the 95% bootstrap interval of this difference over models of both kinds",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "harm_near_high": {
        "label": "More errors, nearest, upper limit",
        "unit": "errors per 100 samples",
        "better": "neither",
        "formula": "upper end of this interval",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "harm_near_worse": {
        "label": "More errors, nearest, chance",
        "unit": "probability",
        "better": "lower",
        "formula": "share of pairs of an unlearned and a retrained model in which the unlearned one has more errors, a "
        "tie counting half",
        "source": "Mann and Whitney 1947",
    },
    "harm_near_p": {
        "label": "More errors, nearest, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of labellings of unlearned and retrained models, the true one included, under which the "
        "unlearned ones have as many more errors; all labellings if there are at most 20,000, else 49,999 random ones",
        "source": "Phipson and Smyth 2010",
    },
    "harm_test": {
        "label": "More errors, test",
        "unit": "errors per 100 samples",
        "better": "lower",
        "formula": "as More errors, nearest, on the retained clients' test samples",
        "source": "our choice",
    },
    "harm_test_low": {
        "label": "More errors, test, lower limit",
        "unit": "errors per 100 samples",
        "better": "neither",
        "formula": "lower end of the 95% bootstrap interval of this difference over models of both kinds",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "harm_test_high": {
        "label": "More errors, test, upper limit",
        "unit": "errors per 100 samples",
        "better": "neither",
        "formula": "upper end of this interval",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "harm_test_worse": {
        "label": "More errors, test, chance",
        "unit": "probability",
        "better": "lower",
        "formula": "as More errors, nearest, chance, on the retained clients' test samples",
        "source": "Mann and Whitney 1947",
    },
    "harm_test_p": {
        "label": "More errors, test, p",
        "unit": "probability",
        "better": "neither",
        "formula": "as More errors, nearest, p, on the retained clients' test samples",
        "source": "Phipson and Smyth 2010",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    values: dict[str, float] = {}
    near = nearest(models.original)
    for name, probe, chosen in (("harm_near", TRAIN, near), ("harm_test", TEST, np.arange(len(models.labels[TEST])))):
        unlearned, retrained = (
            100 * (logits[probe][:, chosen].argmax(-1) != models.labels[probe][chosen]).mean(1)
            for logits in (models.unlearned, models.retrained)
        )
        values |= compared(name, unlearned, retrained)
    return values


def nearest(original: Logits) -> NDArray[np.int64]:
    """Return which tenth of the retained training samples is nearest to a forgotten one, the nearest first."""
    from scipy.spatial.distance import cdist  # half a second that others need not pay

    kept, gone = (original[probe].mean(0, dtype=np.float64) for probe in (TRAIN, FORGOTTEN))
    distance = cdist(kept, gone).min(1)
    return np.argsort(distance, kind="stable")[: tenth(distance.size)]
