"""U-LiRA for a client: can an attacker distinguish models that unlearned the client from models that never had it?

Hayes et al. 2024 (arXiv 2403.01218): for each sample of the client, the log-likelihood ratio of its margin under a
Gaussian fitted to unlearned models and one fitted to retrained models. The Gaussians are fitted to the even-numbered
models and the odd-numbered models are classified, and vice versa. Ours: the client as a whole is the sum over its
samples, and a model is classified as unlearned if the sum is above 0, a threshold that is not searched for. The false
positive and false negative rates show which (epsilon, 0) guarantees the unlearning does not satisfy.

Attacker model: knows the samples, the training and the method, since it must train models of both kinds; observes the
predictions of one model.

Limitations: the audit does not show what distinguishes the models: excessive forgetting exposes the forgotten client,
too. It does not prove that epsilon is small, as a better attack may exist, nor that it exceeds `ulira_epsilon_ceiling`.

P is by permutation: unlearned and retrained models are relabelled within the halves, everything is fitted anew, and the
statistic is the mean sum of unlearned models minus that of retrained ones.

Both halves are classified by the same difference between the halves' means, so their errors are correlated: the rates
are those of all N models, but count as those of N / 2. (Counted as N, 5% to 8% of repeated retrainings would be found
at N = 8, where 2.5% are intended.)

The intervals of true positive rates are expanded percentiles, as in `differences`. In simulations of a rate of .2, at
1% false positives and with half of the variance common to a model's samples, they cover it in 85% (N = 8), 89% (16) and
94% (32) of cases; elsewhere they lie too high, as the threshold is that of the same few models.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from fu.audits.differences import ends
from fu.audits.models import (
    FORGOTTEN,
    SEED,
    Booleans,
    Fit,
    Floats,
    Models,
    apart_by_half,
    area,
    caught,
    check_repeats,
    fitted,
    halves,
    permutation_p,
    refitted,
)

LABEL = "U-LiRA"
CAVEAT = (
    "U-LiRA: an attack that decides from the likelihood ratios of the client's samples whether a model has unlearned "
    "the client or never had it; it also detects excessive forgetting. In simulations the intervals of its TPR cover "
    "it in 85% of cases with 8 models and in 94% with 32."
)
LEAST = 4  # two a half
SCORE = "ulira_auc"
P = "ulira_p"
SEES = ("untouched", "noise")  # controls that it must find
DELTAS = (1, 5, 10, 20, 50)  # percent
LEAST_RATE = 1e-12  # of true decisions, where delta leaves none
RESAMPLES = 200
GRID = 256  # quantiles of each posterior: ends of intervals to two digits
ENDS = (0.025, 0.5, 0.975)

METRICS = {
    "ulira_auc": {
        "label": "U-LiRA AUC",
        "unit": "fraction",
        "better": "lower",
        "formula": "area under the ROC curve of the log-likelihood ratio, unlearned against retrained, over all pairs "
        "of a sample and a model; 0.5 is chance",
        "source": "Hayes et al. 2024",
    },
    "ulira_tpr_1": {
        "label": "U-LiRA TPR at 1%",
        "unit": "fraction",
        "better": "lower",
        "formula": "true positive rate over pairs of a sample and an unlearned model, at a false positive rate of at "
        "most 1%; omitted if there are fewer than 100 pairs of a sample and a retrained model",
        "source": "Hayes et al. 2024",
    },
    "ulira_tpr_01": {
        "label": "U-LiRA TPR at 0.1%",
        "unit": "fraction",
        "better": "lower",
        "formula": "true positive rate over pairs of a sample and an unlearned model, at a false positive rate of at "
        "most 0.1%; omitted if there are fewer than 1,000 pairs of a sample and a retrained model",
        "source": "Carlini et al. 2022",
    },
    "ulira_tpr_1_low": {
        "label": "U-LiRA TPR at 1%, lower limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "lower end of the nominal 95% bootstrap interval of this rate over models, not pairs",
        "source": "our choice",
    },
    "ulira_tpr_1_high": {
        "label": "U-LiRA TPR at 1%, upper limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "upper end of the nominal 95% bootstrap interval of this rate over models, not pairs",
        "source": "our choice",
    },
    "ulira_tpr_01_low": {
        "label": "U-LiRA TPR at 0.1%, lower limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "lower end of the nominal 95% bootstrap interval of this rate over models, not pairs",
        "source": "our choice",
    },
    "ulira_tpr_01_high": {
        "label": "U-LiRA TPR at 0.1%, upper limit",
        "unit": "fraction",
        "better": "neither",
        "formula": "upper end of the nominal 95% bootstrap interval of this rate over models, not pairs",
        "source": "our choice",
    },
    "ulira_epsilon": {
        "label": "epsilon",
        "unit": "nats",
        "better": "lower",
        "formula": "max(log((1 - FPR) / FNR), log((1 - FNR) / FPR)) of the classification by the sum over samples, "
        "each ratio at its posterior median; below 0: worse than chance",
        "source": "Zanella-Béguelin et al. 2023, Jeffreys prior",
    },
    "ulira_epsilon_low": {
        "label": "epsilon, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "the larger of the two ratios' lower ends, each at 2.5%",
        "source": "Zanella-Béguelin et al. 2023; an interval for each ratio: our choice",
    },
    "ulira_epsilon_high": {
        "label": "epsilon, upper limit",
        "unit": "nats",
        "better": "lower",
        "formula": "the larger of the two ratios' upper ends, each at 97.5%; for this attack, not for the best "
        "possible one",
        "source": "Zanella-Béguelin et al. 2023; an interval for each ratio: our choice",
    },
    "ulira_epsilon_ceiling": {
        "label": "epsilon, ceiling",
        "unit": "nats",
        "better": "neither",
        "formula": "the lower limit if no model is misclassified: the largest epsilon that this number of models can "
        "prove. A lower limit at the ceiling is compatible with any larger epsilon",
        "source": "our choice",
    },
    "ulira_epsilon_low_delta_1": {
        "label": "epsilon at delta = .01, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "as epsilon, lower limit, of an (epsilon, .01) guarantee: true decisions count less .01",
        "source": "Kairouz et al. 2015, Theorem 2.1; interval: as for epsilon",
    },
    "ulira_epsilon_low_delta_5": {
        "label": "epsilon at delta = .05, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "as epsilon, lower limit, of an (epsilon, .05) guarantee: true decisions count less .05",
        "source": "Kairouz et al. 2015, Theorem 2.1; interval: as for epsilon",
    },
    "ulira_epsilon_low_delta_10": {
        "label": "epsilon at delta = .1, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "as epsilon, lower limit, of an (epsilon, .1) guarantee: true decisions count less .1",
        "source": "Kairouz et al. 2015, Theorem 2.1; interval: as for epsilon",
    },
    "ulira_epsilon_low_delta_20": {
        "label": "epsilon at delta = .2, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "as epsilon, lower limit, of an (epsilon, .2) guarantee: true decisions count less .2",
        "source": "Kairouz et al. 2015, Theorem 2.1; interval: as for epsilon",
    },
    "ulira_epsilon_low_delta_50": {
        "label": "epsilon at delta = .5, lower limit",
        "unit": "nats",
        "better": "lower",
        "formula": "as epsilon, lower limit, of an (epsilon, .5) guarantee: true decisions count less .5",
        "source": "Kairouz et al. 2015, Theorem 2.1; interval: as for epsilon",
    },
    "ulira_p": {
        "label": "U-LiRA, p",
        "unit": "probability",
        "better": "neither",
        "formula": "share of relabellings of unlearned and retrained models, the true one included, under which the "
        "sums of log-likelihood ratios of both kinds are as far apart",
        "source": "our choice",
    },
}

Fold = tuple[Floats, Floats]  # log likelihood ratios of the judged half: unlearned [*, n], retrained [*, n]


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    return attacked("ulira", folds(models)) | {"ulira_p": permutation_p(_apart(models))}


def folds(models: Models) -> list[Fold]:
    """Return the ratios of the odd models as fitted to the even ones, and of the even as fitted to the odd ones."""
    unlearned, retrained, _ = map(halves, models.margins(FORGOTTEN))
    found = []
    for k in (0, 1):
        fits = fitted(unlearned[k]), fitted(retrained[k])
        found.append((log_ratio(unlearned[1 - k], *fits), log_ratio(retrained[1 - k], *fits)))
    return found


def _apart(models: Models) -> Floats:
    """Return the mean sum of ratios of unlearned minus that of retrained models under each relabelling [P]."""

    def sums(k: int, pools: list[Floats], members: Booleans) -> Floats:
        """Return the sums of ratios [N, P], but for a constant, the same for every model."""
        inside, outside = (refitted(pools[1 - k], of) for of in (members, ~members))
        square, linear = 1 / outside[1] - 1 / inside[1], inside[0] / inside[1] - outside[0] / outside[1]
        return np.asarray(pools[k] ** 2 @ square.T / 2 + pools[k] @ linear.T)

    unlearned, retrained, _ = models.margins(FORGOTTEN)
    centre = np.concatenate([unlearned, retrained]).mean(0)
    return apart_by_half(unlearned - centre, retrained - centre, sums)


def log_ratio(values: Floats, inside: Fit, outside: Fit) -> Floats:
    """Return the log of the density of margins [N, n] under one Gaussian over that under another, in nats."""
    return (
        (values - outside[0]) ** 2 / outside[1] - (values - inside[0]) ** 2 / inside[1] + np.log(outside[1] / inside[1])
    ) / 2


def attacked(name: str, judged: Sequence[Fold]) -> dict[str, float]:
    """Return AUC, true positives at few false ones, and epsilon with its ends and ceiling, of ratios by fold."""
    unlearned, retrained = (np.concatenate([fold[k].ravel() for fold in judged]) for k in (0, 1))
    values = {f"{name}_auc": area(unlearned, retrained)}
    for label, share in (("1", 0.01), ("01", 0.001)):
        if share * retrained.size >= 1:
            values[f"{name}_tpr_{label}"] = caught(unlearned, retrained, share)
            number = min(sum(len(fold[k]) for fold in judged) for k in (0, 1))
            interval = ends(np.array(_resampled(judged, share)), number)
            values |= dict(zip((f"{name}_tpr_{label}_low", f"{name}_tpr_{label}_high"), interval, strict=True))
    called = [[fold[k].sum(1) > 0 for fold in judged] for k in (0, 1)]
    positives, negatives = (np.concatenate(several) for several in called)
    n1, n0 = len(positives) / 2, len(negatives) / 2  # see the top
    errors = negatives.sum() / 2, n0, (~positives).sum() / 2, n1
    low, median, high = epsilon(*errors)
    return {
        **values,
        **{f"{name}_epsilon_low_delta_{delta}": epsilon(*errors, delta / 100)[0] for delta in DELTAS},
        f"{name}_epsilon": median,
        f"{name}_epsilon_low": low,
        f"{name}_epsilon_high": high,
        f"{name}_epsilon_ceiling": epsilon(0, n0, 0, n1)[0],
    }


def _resampled(judged: Sequence[Fold], share: float) -> list[float]:
    """Return the true positive rates at a share of false ones for models drawn again with replacement, by fold."""
    random, rates = np.random.default_rng(SEED), list[float]()
    for _ in range(RESAMPLES):
        drawn = [[of[random.integers(len(of), size=len(of))] for of in fold] for fold in judged]
        unlearned, retrained = (np.concatenate([fold[k].ravel() for fold in drawn]) for k in (0, 1))
        rates.append(caught(unlearned, retrained, share))
    return rates


@cache
def epsilon(
    false_positives: float, negatives: float, false_negatives: float, positives: float, delta: float = 0
) -> tuple[float, float, float]:
    """Return lower end, median and upper end (95%) of epsilon, in nats, from the errors on models of both kinds.

    Of an (epsilon, delta) guarantee the rate of true decisions counts less delta (Kairouz et al. 2015, Theorem 2.1).

    Both rates have Beta posteriors with Jeffreys prior (Zanella-Béguelin et al. 2023, arXiv 2206.05199), and each of
    the two ratios its equal-tailed interval. Epsilon is the larger ratio; its ends are the larger ends. The posterior
    of the larger ratio itself lies too high where both are equal, as with a threshold midway between two Gaussians: of
    32 to 256 models its interval covers the truth in 90% to 94%, this one in 94% to 95%. Numbers of models need not be
    whole.
    """
    from scipy.special import betaincinv  # half a second that others need not pay

    at = (np.arange(GRID) + 0.5) / GRID
    wrong = [(false_positives, negatives), (false_negatives, positives)]
    error = [np.log(betaincinv(k + 0.5, n - k + 0.5, at)) for k, n in wrong]
    right = [np.log(np.maximum(betaincinv(n - k + 0.5, k + 0.5, at) - delta, LEAST_RATE)) for k, n in wrong]
    ends = [np.quantile(np.subtract.outer(right[k], error[1 - k]), ENDS) for k in (0, 1)]
    low, median, high = np.maximum(*ends).tolist()
    return low, median, high
