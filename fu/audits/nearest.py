"""The three-sample test: are unlearned models nearer to retrained ones than to original ones?

After the relative tests of Bounliphone et al. 2015 and of Ribero et al. 2026 (arXiv 2601.19755), which compare
distributions by kernels; here an observation is a model, given by its margins on the forgotten samples, and there are
too few for a kernel. Half of the retrained and original models give the direction in which these two differ, w = (mean
of the original - mean of the retrained) / variance; each unlearned model of the other half is compared with the
midpoint between a retrained and an original model of its own, along w, and the other way round. It is nearer to the
retrained one where (u - (r + o) / 2) w < 0. No model is in two comparisons, and none is in the direction along which it
is compared, so that the exact binomial test of P(nearer to the retrained) <= 1/2 keeps its level also where unlearned
models truly lie midway: at most .05 where both kinds vary alike, measured up to .061 where original models vary three
times as much as retrained ones and hardly differ otherwise. (The nearer of two means over all models passes up to 99.7%
of unlearned models there.)

The burden of proof is the method's: `found` is that unlearned models are *not* shown to be nearer to retrained ones.
So nobody passes by few repeats or where original and retrained models are alike; there retraining fails, too.

It takes an attacker who can train retrained and original models, but needs none of the method's.

It is coarse: what is nearer to retraining passes, though a third of the client may be left, and so does what is far
from both, beyond retraining. `nearest_position` says where.
"""

from collections.abc import Mapping

import numpy as np

from fu.audits.models import FORGOTTEN, Floats, Models, check_repeats, fitted, halves, margins

LABEL = "Three-sample test"
CAVEAT = (
    "Three-sample test: a method passes where its models are shown to be nearer to retrained than to original "
    "ones (p below .05, not corrected for the number of methods); a fail is no evidence that anything is left."
)
LEAST = 5  # with four, p = 1/16 at best, so that nobody could pass
SCORE = "nearest_position"
LEVEL = 0.05

METRICS = {
    "nearest_share": {
        "label": "Nearer to retrained",
        "unit": "fraction",
        "better": "higher",
        "formula": "share of unlearned models that are nearer to a retrained model than to an original one, along the "
        "direction in which others of these differ",
        "source": "after Bounliphone et al. 2015",
    },
    "nearest_p": {
        "label": "Nearer to retrained, p",
        "unit": "probability",
        "better": "lower",
        "formula": "exact binomial test, on one side, of a probability of at most 1/2",
        "source": "our choice",
    },
    "nearest_position": {
        "label": "Position",
        "unit": "fraction",
        "better": "neither",
        "formula": "of the unlearned models' mean on the line from the retrained models' mean (0) to the original "
        "models' (1), margins in units of their spread. Of few models that differ little it is drawn to 1/2, which it "
        "is where they do not differ at all",
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
