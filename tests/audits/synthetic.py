"""Models that are made up: logits with given margins, and Gaussian margins with a known part of the client left."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fu.audits.models import FORGOTTEN, FRESH, HELD_OUT, TEST, TRAIN, WEIGHTS, Floats, Models

CLASSES = 3
PROBES = (FORGOTTEN, HELD_OUT, TRAIN, TEST)
Given = ArrayLike | Mapping[str, ArrayLike]


def labels_of(number: int) -> NDArray[np.int64]:
    return np.arange(number) % CLASSES


def logits_of(margins: ArrayLike) -> NDArray[np.float32]:
    """Return logits [N, n, 3] of labels 0, 1, 2, 0, ... with these margins [N, n]: the other two classes are alike."""
    values = np.asarray(margins, float)
    logits = np.zeros((*values.shape, CLASSES), np.float32)
    index = np.broadcast_to(labels_of(values.shape[1])[:, None], (*values.shape, 1))
    np.put_along_axis(logits, index, (values + np.log(CLASSES - 1))[..., None].astype(np.float32), -1)
    return logits


def models_of(unlearned: Given, retrained: Given, original: Given, *, probes: Sequence[str] = PROBES) -> Models:
    """Return models with these margins by probe; those of an array are the same on all probes.

    In the place of `WEIGHTS`, if it is among them, they are the weights.
    """
    kinds = []
    for values in (unlearned, retrained, original):
        of = {probe: np.asarray(values[probe] if isinstance(values, Mapping) else values) for probe in probes}
        kinds.append({probe: one[..., None] if probe == WEIGHTS else logits_of(one) for probe, one in of.items()})
    return Models({probe: labels_of(of.shape[1]) for probe, of in kinds[0].items() if probe != WEIGHTS}, *kinds)


def relabelled(unlearned: Floats, retrained: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield both kinds of models [4, n] under each of 36 relabellings within their halves, the true one first."""
    pools = [np.concatenate([unlearned[k::2], retrained[k::2]]) for k in (0, 1)]
    for chosen in product(combinations(range(4), 2), repeat=2):
        one, other = np.empty_like(unlearned), np.empty_like(retrained)
        for k, pool in enumerate(pools):
            called = np.isin(range(4), chosen[k])
            one[k::2], other[k::2] = pool[called], pool[~called]
        yield one, other


class World:
    """Gaussian margins of n samples, which vary together by a share of .2; the original's mean is `shift` higher."""

    def __init__(self, seed: int, samples: int = 30, shift: float = 3.0, probes: Sequence[str] = PROBES) -> None:
        self.probes = probes
        self.random, self.weights = np.random.default_rng(seed), np.random.default_rng(seed + 1)
        self.spread = np.exp(self.random.normal(0, 0.3, samples))
        gap = shift * self.random.uniform(0.5, 1.5, samples) * self.spread
        self.gap = dict.fromkeys((FORGOTTEN, *FRESH), gap)

    def margins(self, number: int, probe: str, share: float) -> Floats:
        random = self.weights if probe == WEIGHTS else self.random
        common, own = random.normal(size=(number, 1)), random.normal(size=(number, len(self.spread)))
        noise = np.sqrt(0.2) * common + np.sqrt(0.8) * own
        return 1 + self.spread * noise + share * self.gap.get(probe, 0)

    def models(self, number: int, share: float) -> Models:
        """Return N models of each kind, of which the unlearned ones are left a share of the distance."""
        return models_of(
            *({probe: self.margins(number, probe, left) for probe in self.probes} for left in (share, 0.0, 1.0)),
            probes=self.probes,
        )
