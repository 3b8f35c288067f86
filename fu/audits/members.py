"""Members: does unlearning expose the training data of those who stay?

The loss-threshold attack (Yeom et al. 2018): whoever has a low loss was trained on. Hayes et al. 2024 (arXiv
2403.01218) find that privacy of retained examples may worsen by unlearning. The advantage is 2 AUC - 1 of the loss,
retained clients' training against their test samples: TPR - FPR at the best threshold would be above 0 by the search
alone. It is a mean over models, before (original) and after unlearning, and for retrained models, whose gap over the
original's is due to the data that went. It describes, and decides nothing about the forgotten: it has no `found`.

The attacker sees one model's losses on samples and knows no other model.

It is a weak attack: an advantage of 0 does not show that nobody is exposed. Unequal training and test data (other
classes or clients) have an advantage without any training.
"""

import numpy as np

from fu.audits.models import NEAR_ZERO, TEST, TRAIN, Floats, Logits, Models, area, check_repeats, losses, margins

LABEL = "Members"
CAVEAT = "Members: advantage of a loss threshold between retained clients' training and test samples."
LEAST = 2  # a spread over retrained models
SCORE = "members_unlearned"  # of the picture

METRICS = {
    "members_original": {
        "label": "Members' advantage, original",
        "unit": "fraction",
        "better": "neither",
        "formula": "2 AUC - 1 of a low loss, retained training against test samples, mean over original models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_unlearned": {
        "label": "Members' advantage, unlearned",
        "unit": "fraction",
        "better": "lower",
        "formula": "the same, mean over unlearned models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_retrained": {
        "label": "Members' advantage, retrained",
        "unit": "fraction",
        "better": "neither",
        "formula": "the same, mean over retrained models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_stds": {
        "label": "Members' advantage, in deviations",
        "unit": "standard deviations",
        "better": "lower",
        "formula": "unlearned less retrained, over the standard deviation over retrained models; left out where this "
        "is 0",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    original, unlearned, retrained = (
        advantages(models, logits) for logits in (models.original, models.unlearned, models.retrained)
    )
    values = {
        "members_original": float(original.mean()),
        "members_unlearned": float(unlearned.mean()),
        "members_retrained": float(retrained.mean()),
    }
    if (spread := float(retrained.std(ddof=1))) > NEAR_ZERO:
        values["members_stds"] = (values["members_unlearned"] - values["members_retrained"]) / spread
    return values


def advantages(models: Models, logits: Logits) -> Floats:
    """Return 2 AUC - 1 [N] of each model."""
    inside, outside = (-losses(margins(logits[probe], models.labels[probe])) for probe in (TRAIN, TEST))
    return np.array([2 * area(*pair) - 1 for pair in zip(inside, outside, strict=True)])
