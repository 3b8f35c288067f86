"""Three-sample test: are unlearned models nearer to retrained models than to original ones?

The test follows the relative tests of Bounliphone et al. 2015 and of Ribero et al. 2026 (arXiv 2601.19755), which
compare distributions by kernels. Here an observation is a model, represented by its margins on the forgotten samples,
and there are too few models for a kernel. Half of the retrained and original models define the direction in which the
two kinds differ, w = (mean of the original - mean of the retrained) / variance. Along w, each unlearned model of the
other half is compared with the midpoint between one retrained and one original model of that half; then the halves are
exchanged. The unlearned model is nearer to the retrained one if (u - (r + o) / 2) w < 0. No model takes part in two
comparisons, and none contributes to the direction along which it is compared, so the exact binomial test of P(nearer to
retrained) <= 1/2 keeps its level even if unlearned models lie exactly midway: the rate is at most .05 if both kinds
have the same variance, and up to .061 was measured where original models vary three times as much as retrained ones and
hardly differ otherwise. (Comparing with the two means over all models would pass up to 99.7% of unlearned models
there.)

The burden of proof is on the method: `found` means that unlearned models are *not* shown to be nearer to retrained
ones. A method therefore cannot pass because there are few models, or because original and retrained models are alike;
retraining itself fails in that case.

Attacker model: can train retrained and original models, but needs no model of the method's.

Limitations: the test is coarse. A model nearer to retraining passes even if a third of the client remains, and so does
a model far from both, beyond retraining. `nearest_position` shows where a model lies.
"""

from collections.abc import Mapping

import numpy as np

from fu.audits.models import FORGOTTEN, Floats, Models, check_repeats, fitted, halves, margins

LABEL = "Three-sample test"
CAVEAT = (
    "Three-sample test: a method passes if its models are shown to be nearer to retrained than to original models (p "
    "below .05, not corrected for the number of methods); failing is no evidence that anything remains."
)
LEAST = 5  # with four, p = 1/16 at best, so that nobody could pass
SCORE = "nearest_position"
LEVEL = 0.05

METRICS = {
    "nearest_share": {
        "label": "Nearer to retrained",
        "unit": "fraction",
        "better": "higher",
        "formula": "share of unlearned models that are nearer to a retrained than to an original model, along the "
        "direction in which other retrained and original models differ",
        "source": "after Bounliphone et al. 2015",
    },
    "nearest_p": {
        "label": "Nearer to retrained, p",
        "unit": "probability",
        "better": "lower",
        "formula": "one-sided exact binomial test of P(nearer to retrained) <= 1/2",
        "source": "our choice",
    },
    "nearest_position": {
        "label": "Position",
        "unit": "fraction",
        "better": "neither",
        "formula": "position of the unlearned models' mean on the line from the retrained models' mean (0) to the "
        "original models' mean (1), with margins in units of their standard deviation; biased towards 1/2 where "
        "models are few and differ little, and 1/2 where they do not differ at all",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats.

    Where kinds have different numbers of models, the fewest are compared.
    """
    check_repeats(models, LEAST)
    unlearned, retrained, original = (
        margins(logits[FORGOTTEN], models.labels[FORGOTTEN])
        for logits in (models.unlearned, models.retrained, models.original)
    )
    nearer = compared(unlearned, retrained, original)
    return {
        "nearest_share": float(nearer.mean()),
        "nearest_p": p_value(int(nearer.sum()), len(nearer)),
        "nearest_position": position(unlearned, retrained, original),
    }


def found(values: Mapping[str, float]) -> bool:
    """Return whether unlearned models are not shown to be nearer to retrained ones: p of .05 or more."""
    return values["nearest_p"] >= LEVEL


def compared(unlearned: Floats, retrained: Floats, original: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return, for each unlearned model, whether it is nearer to its retrained than to its original model."""
    number = min(map(len, (unlearned, retrained, original)))
    kinds = [halves(values[:number]) for values in (unlearned, retrained, original)]
    nearer = []
    for k in (0, 1):
        w = direction(kinds[1][1 - k], kinds[2][1 - k])
        u, r, o = (kind[k] for kind in kinds)
        nearer.append((u - (r + o) / 2) @ w < 0)
    return np.concatenate(nearer)


def direction(retrained: Floats, original: Floats) -> Floats:
    """Return w [n]: the difference of the means of margins [N, n], over the mean of both kinds' variances."""
    (at, spread), (to, other) = fitted(retrained), fitted(original)
    return (to - at) / ((spread + other) / 2)


def position(unlearned: Floats, retrained: Floats, original: Floats) -> float:
    """Return where the unlearned models' mean lies from the retrained models' (0) to the original models' mean (1)."""
    w = direction(retrained, original)
    whole = (original.mean(0) - retrained.mean(0)) @ w
    return float((unlearned.mean(0) - retrained.mean(0)) @ w / whole) if whole else 0.5


def p_value(nearer: int, number: int) -> float:
    """Return the chance that so many of `number` or more are nearer, were it 1/2 for each."""
    from scipy.special import bdtrc  # half a second that others need not pay

    return float(bdtrc(nearer - 1, number, 0.5)) if nearer else 1.0
