"""Most exposed: U-LiRA on the tenth of the forgotten samples that the original models expose most.

Naderloui et al. 2025 (RULI, arXiv 2506.13009) show that averages over random samples hide the few that a model leaks.
The exposure of a sample is |mean margin over the original models - mean margin over the retrained models|, in units of
their standard deviation. The most exposed tenth is selected on the half of the models that U-LiRA is fitted to, and
evaluated on the other half: if both were done on the same models, samples would seem exposed by chance.

Attacker model: as for U-LiRA; the attacker also trains original models to select the samples.

Limitation: samples that only unlearning exposes are missed, since the original models select the samples.
"""

import numpy as np
from numpy.typing import NDArray

from fu.audits.models import FORGOTTEN, Floats, Models, check_repeats, fitted, halves, tenth
from fu.audits.ulira import attacked, folds

LABEL = "Most exposed"
CAVEAT = (
    "Most exposed: U-LiRA on the tenth of the forgotten samples that the original models expose most; averages over "
    "all samples hide them."
)
LEAST = 4  # two a half
SCORE = "exposed_auc"

METRICS = {
    "exposed_auc": {
        "label": "Most exposed: AUC",
        "unit": "fraction",
        "better": "lower",
        "formula": "U-LiRA AUC on the tenth of the forgotten samples that the original models expose most, selected "
        "on the other half of the models",
        "source": "after Naderloui et al. 2025 (RULI)",
    },
    "exposed_tpr_1": {
        "label": "Most exposed: TPR at 1%",
        "unit": "fraction",
        "better": "lower",
        "formula": "U-LiRA TPR at 1% on these samples; omitted if there are fewer than 100 pairs of a sample and a "
        "retrained model",
        "source": "after Naderloui et al. 2025 (RULI)",
    },
    "exposed_epsilon": {
        "label": "Most exposed: epsilon",
        "unit": "nats",
        "better": "lower",
        "formula": "epsilon of the sum over these samples; below 0: worse than chance",
        "source": "Zanella-Béguelin et al. 2023, Jeffreys prior",
    },
    "exposed_epsilon_low": {
        "label": "Most exposed: epsilon, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "lower end of its interval, computed as for epsilon; the ceiling of epsilon applies, too",
        "source": "Zanella-Béguelin et al. 2023",
    },
    "exposed_epsilon_high": {
        "label": "Most exposed: epsilon, upper limit",
        "unit": "nats",
        "better": "lower",
        "formula": "upper end of its interval, computed as for epsilon",
        "source": "Zanella-Béguelin et al. 2023",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    _, retrained, original = map(halves, models.margins(FORGOTTEN))
    chosen = [ranked(*half)[: tenth(half[0].shape[1])] for half in zip(original, retrained, strict=True)]
    judged = [(one[:, best], other[:, best]) for best, (one, other) in zip(chosen, folds(models), strict=True)]
    return {name: value for name, value in attacked("exposed", judged).items() if name in METRICS}


def indices(models: Models) -> NDArray[np.int64]:
    """Return the forgotten samples in the order in which all original models expose them, the most exposed first."""
    _, retrained, original = models.margins(FORGOTTEN)
    return ranked(original, retrained)


def ranked(original: Floats, retrained: Floats) -> NDArray[np.int64]:
    """Return samples in the order in which their margins [N, n] differ, most first; of equal ones the earlier first."""
    (mean, spread), (other, its) = fitted(original), fitted(retrained)
    distance = np.abs(mean - other) / np.sqrt((spread + its) / 2)
    return np.argsort(-distance, kind="stable")
