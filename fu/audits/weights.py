"""With the weights: does a model's hidden layer still hold the client, whatever its own head answers?

As `line`, on the answers of fresh linear heads that were fitted to each model's last hidden layer: heads that learn the
forgotten samples again, measured on held-out samples of the client and, with a backdoor, on others' test samples with
the trigger; and a classifier that tells the client's training samples from its held-out ones. What the model's head
unlearned but its hidden layer did not comes back so; what retrained models show, too, is not counted.

Attacker model: has the weights of the model, the client's samples, and can train retrained and original models.

Limitations: reads the last hidden layer alone, linearly. What is hidden elsewhere in the weights, as by the control
`stego`, is not seen. Distances of weights are no evidence: a method that starts from the original model ends nearer to
it than retraining does, whatever it forgot.
"""

from fu.audits import line
from fu.audits.models import FRESH, Models, check_repeats

LABEL = "With the weights"
CAVEAT = (
    "With the weights: as along the line, by the answers of fresh linear heads on each model's last hidden layer; what "
    "is hidden elsewhere in the weights is not seen."
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
        "formula": "as Position, by the answers of fresh linear heads on each model's last hidden layer",
        "source": "our choice, with linear probes as of Alain and Bengio 2016",
    },
    "weights_p": {
        "label": "Position, fresh heads, p",
        "unit": "probability",
        "better": "neither",
        "formula": "as Position, p, by the answers of these heads; omitted for a model without a linear layer",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics, none without a fresh head; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    found = [probe for probe in FRESH if probe in models.labels]
    return line.measured(models, found, "weights") if found else {}
