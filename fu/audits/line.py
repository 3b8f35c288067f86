"""Along the line: do unlearned models lie towards the original ones, seen from retrained models?

The direction is that of linear discriminant analysis with independent margins, w = (mean of the original - mean of the
retrained models' margins) / variance, for each probe on which something of the client may remain. Models are projected
on the direction that the other half of the retrained and original models gives, so that no model is measured along a
direction that it shaped. The statistic is the difference of the means of unlearned and retrained models. It is tested
by permutation: unlearned and retrained models are relabelled within the halves, and the directions are fitted anew. Of
several probes the largest counts, each in units of its standard deviation over relabellings, so that one p stands for
all of them.

Attacker model: can train retrained and original models and observes predictions on samples that the method was not
given, too: new images with the trigger, altered copies, held-out samples of the client.

Limitations: what an unlearned model keeps in another direction is missed, and so is what its predictions do not show.
An unlearned model resembles the original one that it started from, whatever it forgot, and each half gives the other
its direction: in simulations of 8 and of 32 models with a correlation of .9, p is at most .05 in 8% of cases where
original models do not differ from retrained ones, and in 5% to 6% where they do, by half a deviation or more on each of
three samples. Where they do not, the audit fails its controls and judges nobody.
"""

from collections.abc import Sequence

import numpy as np

from fu.audits.models import (
    NEAR_ZERO,
    Booleans,
    Fit,
    Floats,
    Models,
    apart_by_half,
    check_repeats,
    fitted,
    halves,
    permutation_p,
    refitted,
    searched,
)

LABEL = "Along the line"
CAVEAT = (
    "Along the line: position of unlearned models from retrained (0) to original ones (1), and a one-sided permutation "
    "test of it, on samples that the method was not given, too."
)
LEAST = 4  # two a half
SCORE = "line_position"
P = "line_p"
SEES = ("untouched", "retrain_mixed", "cheat")  # controls that it must find

METRICS = {
    "line_position": {
        "label": "Position",
        "unit": "fraction",
        "better": "lower",
        "formula": "mean position of unlearned models on the line from retrained (0) to original models (1), the "
        "largest over the probes on which original models lie beyond all retrained ones; omitted if there is none",
        "source": "our choice",
    },
    "line_p": {
        "label": "Position, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of relabellings of unlearned and retrained models, the true one included, in which the "
        "unlearned ones lie as far towards the original models, in standard deviations, on the probe where they do "
        "most",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    return measured(models, searched(models), "line")


def measured(models: Models, probes: Sequence[str], name: str) -> dict[str, float]:
    """Return `{name}_p` and, if original models lie beyond all retrained ones on any of the probes, `_position`."""
    kinds = [models.margins(probe) for probe in probes]
    statistics = np.stack([_differences(*of) for of in kinds])
    spread = np.maximum(statistics.std(1, keepdims=True), NEAR_ZERO)
    values = {f"{name}_p": permutation_p(((statistics - statistics.mean(1, keepdims=True)) / spread).max(0))}
    positions = [position for of in kinds if (position := _position(*of)) is not None]
    return {f"{name}_position": max(positions), **values} if positions else values


def runs(models: Models) -> dict[str, Floats]:
    """Return the projection of every model [N], by probe and kind: "triggered, retrained"."""
    kinds = ("unlearned", "retrained", "original")
    return {
        f"{probe}, {kind}": places
        for probe in searched(models)
        for kind, places in zip(kinds, projected(*models.margins(probe)), strict=True)
    }


def projected(unlearned: Floats, retrained: Floats, original: Floats) -> tuple[Floats, Floats, Floats]:
    """Return where the models of margins [N, n] lie: each projected on the direction of the other half.

    0: the mean of the half's own retrained models; 1: one standard deviation further, were margins independent.
    """
    parts: list[tuple[Floats, Floats, Floats]] = []
    kinds = [halves(values) for values in (unlearned, retrained, original)]
    for k in (0, 1):
        w = direction(fitted(kinds[1][1 - k]), fitted(kinds[2][1 - k]))
        zero = (kinds[1][k] @ w).mean()
        u, r, o = (kind[k] @ w - zero for kind in kinds)
        parts.append((u, r, o))
    one, two, three = (np.concatenate(several) for several in zip(*parts, strict=True))
    return one, two, three


def direction(retrained: Fit, original: Fit) -> Floats:
    """Return w [*, n] of fits [*, n]: along it models vary by 1, were their margins independent."""
    variance = (retrained[1] + original[1]) / 2
    w = (original[0] - retrained[0]) / variance
    return np.asarray(w / np.sqrt(np.maximum((w**2 * variance).sum(-1, keepdims=True), NEAR_ZERO)))


def _position(unlearned: Floats, retrained: Floats, original: Floats) -> float | None:
    """Return the mean position; None where original models do not lie beyond all retrained ones."""
    u, r, o = projected(unlearned, retrained, original)
    return float(u.mean() / o.mean()) if o.min() > r.max() else None


def _differences(unlearned: Floats, retrained: Floats, original: Floats) -> Floats:
    """Return the difference of means [P] under each relabelling, along the directions of the other half."""
    centre = np.concatenate([unlearned, retrained]).mean(0)
    ends = [fitted(half) for half in halves(original - centre)]

    def places(k: int, pools: list[Floats], members: Booleans) -> Floats:
        return np.asarray(pools[k] @ direction(refitted(pools[1 - k], ~members), ends[1 - k]).T)

    return apart_by_half(unlearned - centre, retrained - centre, places)
