"""Run by run: is there a single unlearned model, or are there a few, in which the client is still there?

Averages over models pass a method that does nothing in a few of its runs. Here each unlearned model is judged by
itself: by the log likelihood ratio of original against retrained models, summed over the samples of a probe as if they
were independent, with one variance for both kinds (linear discriminant analysis). It is compared with the ratios of the
retrained models, in units of their deviation. The models of a repeat are judged by fits to those of all others, as an
unlearned model resembles the original one that it started from, whatever it forgot. The largest, the second and the
fourth largest ratio are tested, as far as they exceed that of every retrained model. No permutation test can detect so
few runs, so their tails are assumed: the chance is that of so many runs as far out if all were retrained and their
ratios followed Student's t with three degrees of freedom, or an exponential distribution, whichever gives more, by
simulation. It is multiplied by the number of ratios that are tested and of probes (Bonferroni). In simulations of 8, 16
and 32 runs that are normal, t with three degrees of freedom, exponential or bimodal with equal modes, the level is
kept. A rare second mode that no retrained run shows would be mistaken for the client.

Attacker model: can train retrained and original models and observes the predictions of one model.

Limitations: a run in which little is left stays within the range of retrained ones; the mean of many such runs may not
(`line`).
"""

from functools import cache

import numpy as np

from fu.audits.models import NEAR_ZERO, SEED, Floats, Models, check_repeats, fitted, searched

LABEL = "Run by run"
CAVEAT = (
    "Run by run: unlearned models whose log likelihood ratio, original against retrained, exceeds that of every "
    "retrained model by more than chance explains, if tails are no heavier than those of Student's t with three "
    "degrees of freedom or of an exponential distribution."
)
LEAST = 4
SCORE = "runs_most"
P = "runs_p"
SEES = ("untouched", "lottery", "cheat")  # controls that it must find
LEVEL = 0.05
PLACES = (1, 2, 4)  # the largest ratios that are tested
SIMULATIONS, CHUNK = 12_500, 10_000  # simulations for each unlearned model, as larger tables have more tests

METRICS = {
    "runs_there": {
        "label": "Runs beyond retrained ones",
        "unit": "runs",
        "better": "lower",
        "formula": "number of unlearned models whose ratio, original against retrained, exceeds that of every "
        "retrained model and, on some probe, the value that the largest of as many retrained ones exceeds in 5% of "
        "simulations (corrected for the number of probes)",
        "source": "our choice",
    },
    "runs_p": {
        "label": "Runs, p",
        "unit": "probability",
        "better": "neither",
        "formula": "chance that the largest, second or fourth largest ratio of so many retrained models lies as far "
        "from those of others, corrected for the number of probes and of tests; 1 if no run exceeds every retrained "
        "model",
        "source": "Student t with three degrees of freedom or exponential, Bonferroni: our choice",
    },
    "runs_most": {
        "label": "Largest ratio of a run",
        "unit": "nats",
        "better": "lower",
        "formula": "largest log likelihood ratio, original against retrained, of an unlearned model, on the probe "
        "where it lies furthest from the retrained ones",
        "source": "our choice",
    },
    "runs_most_retrained": {
        "label": "Largest ratio of a retrained model",
        "unit": "nats",
        "better": "neither",
        "formula": "the largest such ratio of a retrained model on the same probe",
        "source": "our choice",
    },
}


def audit(models: Models) -> dict[str, float]:
    """Return the metrics; `ValueError` where there are fewer than `LEAST` repeats."""
    check_repeats(models, LEAST)
    ratios = [_ratios(models, probe) for probe in searched(models)]
    out = np.stack([outlying(*of) for of in ratios])  # [probes, N]
    known = simulated(*(len(kind) for kind in ratios[0]))
    p = min(1.0, len(out) * min(chance(one, known) for one in out))
    limit = np.quantile(known[:, 0], 1 - LEVEL / len(out), axis=1).max()
    unlearned, retrained = ratios[int(out.max(1).argmax())]
    return {
        "runs_there": float((out > limit).any(0).sum()),
        "runs_p": p,
        "runs_most": float(unlearned.max()),
        "runs_most_retrained": float(retrained.max()),
    }


def outlying(unlearned: Floats, retrained: Floats) -> Floats:
    """Return how many deviations [N] beyond the retrained models' mean each run lies; -inf: not beyond all of them."""
    spread = np.maximum(retrained.std(-1, ddof=1, keepdims=True), NEAR_ZERO)
    out = (unlearned - retrained.mean(-1, keepdims=True)) / spread
    return np.asarray(np.where(unlearned > retrained.max(-1, keepdims=True), out, -np.inf))


def chance(out: Floats, known: Floats) -> float:
    """Return the smallest chance of the tested places of runs [N], times their number; `known`: as simulated."""
    places = known.shape[1]
    largest = -np.sort(-out)[[place - 1 for place in PLACES[:places]]]
    each = ((known >= largest[:, None]).sum(-1) + 1) / (known.shape[-1] + 1)
    return float(min(1, places * np.where(np.isinf(largest), 1, each.max(0)).min()))


@cache
def simulated(unlearned: int, retrained: int) -> Floats:
    """Return the tested places [2, K, S] of so many runs among so many, all retrained, under either distribution."""
    random, places = np.random.default_rng(SEED), [place - 1 for place in PLACES if place <= unlearned]
    several = []
    for skewed in (False, True):
        parts = []
        for _ in range(unlearned * SIMULATIONS // CHUNK):
            size = CHUNK, unlearned + retrained
            drawn = random.standard_exponential(size) if skewed else random.standard_t(3, size)
            ordered = np.sort(np.partition(outlying(drawn[:, :unlearned], drawn[:, unlearned:]), -places[-1] - 1))
            parts.append(ordered[:, [-1 - place for place in places]])
        several.append(np.concatenate(parts).T)
    return np.stack(several)


def _ratios(models: Models, probe: str) -> tuple[Floats, Floats]:
    """Return the ratios of unlearned and of retrained models on a probe, in nats."""
    unlearned, retrained, original = models.margins(probe)

    def judged(values: Floats) -> Floats:
        fits = (  # without the repeat's own models
            [np.delete(of, k, 0) if k < len(of) else of for of in (retrained, original)] for k in range(len(values))
        )
        return np.array([log_ratio(one[None], *others)[0] for one, others in zip(values, fits, strict=True)])

    return judged(unlearned), judged(retrained)


def log_ratio(values: Floats, retrained: Floats, original: Floats) -> Floats:
    """Return the log likelihood ratio [N] of margins [N, n], original against retrained, with one variance for both."""
    (zero, spread), (one, other) = fitted(retrained), fitted(original)
    return np.asarray((values - (zero + one) / 2) @ ((one - zero) / ((spread + other) / 2)))
