"""Neighbours: does unlearning harm retained samples that resemble the forgotten ones?

Our choice: the neighbours are the tenth of the retained clients' training samples whose logits, averaged over original
models, are nearest (Euclidean distance) to those of a forgotten sample. The audit reports accuracy and loss of
unlearned models on the neighbours, minus those of retrained models, which lost the same data and so show what harm is
unavoidable. It is descriptive and decides nothing: it has no `found`.

Attacker model: none; anyone who holds the retained data can measure it.

Limitations: it shows no harm elsewhere (`klom_train` does), and the original models' logits define which samples are
near.
"""

import numpy as np
from numpy.typing import NDArray

from fu.audits.models import FORGOTTEN, NEAR_ZERO, TRAIN, Floats, Logits, Models, check_repeats, losses, margins, tenth

LABEL = "Neighbours"
CAVEAT = "Neighbours: harm to the retained samples nearest to the forgotten ones, beyond the harm that retraining does."
LEAST = 2  # a spread over retrained models
SCORE = "neighbours_loss"  # of the picture

METRICS = {
    "neighbours_accuracy": {
        "label": "Neighbours: accuracy",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the tenth of the retained training samples nearest to the forgotten ones, mean over "
        "unlearned models minus mean over retrained models",
        "source": "our choice",
    },
    "neighbours_accuracy_stds": {
        "label": "Neighbours: accuracy, in standard deviations",
        "unit": "standard deviations",
        "better": "higher",
        "formula": "the same difference divided by the standard deviation over retrained models; omitted if that is 0",
        "source": "our choice",
    },
    "neighbours_loss": {
        "label": "Neighbours: loss",
        "unit": "nats",
        "better": "lower",
        "formula": "cross-entropy on the same samples, mean over unlearned models minus mean over retrained models",
        "source": "our choice",
    },
    "neighbours_loss_stds": {
        "label": "Neighbours: loss, in standard deviations",
        "unit": "standard deviations",
        "better": "lower",
        "formula": "the same difference divided by the standard deviation over retrained models; omitted if that is 0",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    near = nearest(models.original)
    labels = models.labels[TRAIN][near]
    unlearned, retrained = (logits[TRAIN][:, near] for logits in (models.unlearned, models.retrained))
    values = {}
    for name, measure in (("accuracy", _accuracy), ("loss", _loss)):
        one, other = measure(unlearned, labels), measure(retrained, labels)
        spread = other.std(ddof=1)
        values[f"neighbours_{name}"] = float(one.mean() - other.mean())
        if spread > NEAR_ZERO:
            values[f"neighbours_{name}_stds"] = values[f"neighbours_{name}"] / float(spread)
    return values


def nearest(original: Logits) -> NDArray[np.int64]:
    """Return which tenth of the retained training samples is nearest to a forgotten one, the nearest first."""
    from scipy.spatial.distance import cdist  # half a second that others need not pay

    kept, gone = (original[probe].mean(0, dtype=np.float64) for probe in (TRAIN, FORGOTTEN))
    distance = cdist(kept, gone).min(1)
    return np.argsort(distance, kind="stable")[: tenth(distance.size)]


def _accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Floats:
    return (logits.argmax(-1) == labels).mean(1)


def _loss(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> Floats:
    return losses(margins(logits, labels)).mean(1)
