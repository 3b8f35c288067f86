"""Harm to neighbours: what unlearning does to retained samples that look to the model like the forgotten ones.

Our choice: of the retained clients' training samples the tenth whose logits, averaged over original models, lie
nearest (Euclidean) to those of a forgotten sample. Unlearned models' accuracy and loss on these, less those of
retrained models, which lost the same data and so say what harm is due. It describes, and decides nothing: it has no
`found`.

Nobody attacks; whoever holds the retained data can measure it.

It shows no harm elsewhere (`klom_train` does), and calls near what the original models' logits call near.
"""

import numpy as np
from numpy.typing import NDArray

from fu.audits.models import FORGOTTEN, NEAR_ZERO, TRAIN, Floats, Logits, Models, check_repeats, losses, margins, tenth

LABEL = "Neighbours"
CAVEAT = "Neighbours: retained examples nearest to forgotten ones; harm beyond what retraining does."
LEAST = 2  # a spread over retrained models
SCORE = "neighbours_loss"  # of the picture

METRICS = {
    "neighbours_accuracy": {
        "label": "Neighbours: accuracy",
        "unit": "fraction",
        "better": "higher",
        "formula": "accuracy on the tenth of retained training samples nearest to forgotten ones, mean over unlearned "
        "models less mean over retrained models",
        "source": "our choice",
    },
    "neighbours_accuracy_stds": {
        "label": "Neighbours: accuracy, in deviations",
        "unit": "standard deviations",
        "better": "higher",
        "formula": "that over the standard deviation over retrained models; left out where this is 0",
        "source": "our choice",
    },
    "neighbours_loss": {
        "label": "Neighbours: loss",
        "unit": "nats",
        "better": "lower",
        "formula": "cross-entropy on the same samples, mean over unlearned models less mean over retrained models",
        "source": "our choice",
    },
    "neighbours_loss_stds": {
        "label": "Neighbours: loss, in deviations",
        "unit": "standard deviations",
        "better": "lower",
        "formula": "that over the standard deviation over retrained models; left out where this is 0",
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
