"""With the weights: does a model's hidden layer still hold the client, even where its head does not?

The test of `line`, on the outputs of fresh linear heads that are fitted to each model's last hidden layer
(`fu/evaluation/fresh_heads.py`): one relearns the forgotten samples and is evaluated on held-out samples of the client
and, with a backdoor, on others' test samples with the trigger; another separates the client's training samples from its
held-out ones. Retrained models get fresh heads, too, so that only what exceeds theirs counts.

Attacker model: has the weights of the model, the client's samples, and can train retrained and original models.

Limitations: reads only the last hidden layer, and only linearly. Anything hidden elsewhere in the weights, as by the
control `stego`, is missed. Distances between weights are no evidence: a method that starts from the original model ends
nearer to it than retraining does, whatever it forgot.
"""

from fu.audits import line
from fu.audits.models import FRESH, Models, check_repeats

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
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics, none without a fresh head; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    found = [probe for probe in FRESH if probe in models.labels]
    return line.measured(models, found, "weights") if found else {}
