"""Members: does unlearning expose the training data of the retained clients?

The loss-threshold attack (Yeom et al. 2018) takes samples with a low loss for training samples. Hayes et al. 2024
(arXiv 2403.01218) find that unlearning can worsen the privacy of retained samples. The advantage is 2 AUC - 1 of the
loss, between the retained clients' training and test samples; TPR - FPR at the best threshold would be above 0 merely
because the threshold is searched for. It is averaged over the original models, the unlearned models and the retrained
models; the gap between retrained and original models is due to the removed data. The gap between unlearned and
retrained models has an interval, a chance and a p-value over models (`differences`). The audit is descriptive and
decides nothing about the forgotten clients: it declares no `P`.

Attacker model: observes one model's losses on samples and knows no other model.

Limitations: the attack is weak, so an advantage of 0 does not show that no sample is exposed. If training and test data
differ in distribution (other classes or clients), there is an advantage even without training.
"""

import numpy as np

from fu.audits.differences import compared
from fu.audits.models import TEST, TRAIN, Floats, Logits, Models, area, check_repeats, margins

LABEL = "Members"
CAVEAT = (
    "Members: advantage of a loss-threshold attack on the retained clients' training samples against their test "
    "samples."
)
LEAST = 2  # a spread over models
SCORE = "members_unlearned"  # of the picture

METRICS = {
    "members_original": {
        "label": "Membership advantage, original",
        "unit": "fraction",
        "better": "neither",
        "formula": "2 AUC - 1 of a low loss, retained clients' training against test samples, mean over original "
        "models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_unlearned": {
        "label": "Membership advantage, unlearned",
        "unit": "fraction",
        "better": "lower",
        "formula": "the same, mean over unlearned models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_retrained": {
        "label": "Membership advantage, retrained",
        "unit": "fraction",
        "better": "neither",
        "formula": "the same, mean over retrained models",
        "source": "Yeom et al. 2018; AUC: our choice",
    },
    "members_gap": {
        "label": "Membership advantage, gap",
        "unit": "fraction",
        "better": "lower",
        "formula": "advantage, mean over unlearned models minus mean over retrained models",
        "source": "our choice",
    },
    "members_gap_low": {
        "label": "Membership advantage, gap, lower limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "lower end of the 95% bootstrap interval of this gap over models of both kinds",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "members_gap_high": {
        "label": "Membership advantage, gap, upper limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "upper end of this interval",
        "source": "Hesterberg 2015: expanded percentile interval",
    },
    "members_gap_worse": {
        "label": "Membership advantage, gap, chance",
        "unit": "probability",
        "better": "lower",
        "formula": "share of pairs of an unlearned and a retrained model in which the unlearned one has the larger "
        "advantage, a tie counting half",
        "source": "Mann and Whitney 1947",
    },
    "members_gap_p": {
        "label": "Membership advantage, gap, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of labellings of unlearned and retrained models, the true one included, under which the gap "
        "is as large; all labellings if there are at most 20,000, else 49,999 random ones",
        "source": "Phipson and Smyth 2010",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    original, unlearned, retrained = (
        advantages(models, logits) for logits in (models.original, models.unlearned, models.retrained)
    )
    return {
        "members_original": float(original.mean()),
        "members_unlearned": float(unlearned.mean()),
        "members_retrained": float(retrained.mean()),
        **compared("members_gap", unlearned, retrained),
    }


def advantages(models: Models, logits: Logits) -> Floats:
    """Return 2 AUC - 1 [N] of each model: a loss is low where a margin is high."""
    inside, outside = (margins(logits[probe], models.labels[probe]) for probe in (TRAIN, TEST))
    return np.array([2 * area(*pair) - 1 for pair in zip(inside, outside, strict=True)])
