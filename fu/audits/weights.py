"""With the weights: does a model's hidden layer still hold the client, even where its head does not?

The test of `line`, on the outputs of fresh linear heads that are fitted to each model's last hidden layer
(`fu/evaluation/fresh_heads.py`): one relearns the forgotten samples and is evaluated on held-out samples of the client
and, with a backdoor, on others' test samples with the trigger; another separates the client's training samples from its
held-out ones. Retrained models get fresh heads, too, so that only what exceeds theirs counts.

Attacker model: has the weights of the model, the client's samples, and can train retrained and original models.

Limitations: reads only the last hidden layer, and only linearly. Anything hidden elsewhere in the weights, as by the
control `stego`, is missed. Distances between weights are given, but no verdict rests on them: a method that starts from
the original model ends nearer to it than retraining does, whatever it forgot.
"""

import numpy as np

from fu.audits import line
from fu.audits.models import FRESH, WEIGHTS, Floats, Models, check_repeats

LABEL = "With the weights"
CAVEAT = (
    "With the weights: the same test on the outputs of fresh linear heads on each model's last hidden layer; anything "
    "hidden elsewhere in the weights is missed."
)
LEAST = 4
SCORE = "weights_position"
P = "weights_p"
SEES = ("untouched",)  # controls that it must find

METRICS = {
    "weights_position": {
        "label": "Position, fresh heads",
        "unit": "fraction",
        "better": "lower",
        "formula": "as Position, on the outputs of fresh linear heads on each model's last hidden layer",
        "source": "our choice, with linear probes as of Alain and Bengio 2016",
    },
    "weights_p": {
        "label": "Position, fresh heads, p",
        "unit": "probability",
        "better": "neither",
        "formula": "as Position, p, on the outputs of these heads; omitted for a model without a linear layer",
        "source": "our choice",
    },
    "weights_to_retrained": {
        "label": "Distance to retrained",
        "unit": "ratio",
        "better": "neither",
        "formula": "mean Euclidean distance of weights to retrained models of other repeats, over the mean distance "
        "among these",
        "source": "our choice, from sketches of the weights (Charikar et al. 2002)",
    },
    "weights_to_original": {
        "label": "Distance to original",
        "unit": "ratio",
        "better": "neither",
        "formula": "mean Euclidean distance of weights to the original model of the same repeat, over the mean "
        "distance among retrained models",
        "source": "our choice, from sketches of the weights (Charikar et al. 2002)",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics, as far as there are fresh heads and weights; `ValueError` for fewer repeats than `LEAST`."""
    check_repeats(models, LEAST)
    found = [probe for probe in FRESH if probe in models.labels]
    return (line.measured(models, found, "weights") if found else {}) | _distances(models)


def _distances(models: Models) -> dict[str, float]:
    """Return distances to retrained and original models; nothing without weights or among equal ones."""
    if WEIGHTS not in models.retrained:
        return {}
    unlearned, retrained, original = (
        of[WEIGHTS][..., 0].astype(float) for of in (models.unlearned, models.retrained, models.original)
    )
    if not (among := _apart(retrained, retrained)):
        return {}
    both = min(len(unlearned), len(original))
    moved = np.linalg.norm(unlearned[:both] - original[:both], axis=1).mean()
    return {"weights_to_retrained": _apart(unlearned, retrained) / among, "weights_to_original": float(moved / among)}


def _apart(one: Floats, other: Floats) -> float:
    """Return the mean Euclidean distance between models [N, K] of different repeats."""
    distances = np.linalg.norm(one[:, None] - other, axis=2)
    return float(distances[~np.eye(len(one), len(other), dtype=bool)].mean())
