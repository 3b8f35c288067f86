"""End to end: over many seeds, unlearned parameters cannot be told from retrained ones; those of wrong ways can be."""

from collections.abc import Callable, Collection

import numpy as np
import pytest
from numpy.typing import NDArray

from fu.federation.sampling import History, Shape, begin
from fu.seeds import derive_integer

Parameters = NDArray[np.float64]
SEEDS, PERMUTATIONS = 500, 2000
SHAPE = Shape(clients_per_round=2, rounds=3, steps=2, batch_size=2)
RANDOM = np.random.default_rng(4)
X, Y = RANDOM.normal(size=12), RANDOM.normal(size=12)
Y[0] += 8  # the sample to forget is an outlier, as is its client
ROWS = {client: np.arange(4) + 4 * client for client in range(3)}
LEFT = {"sample": {**ROWS, 0: ROWS[0][1:]}, "client": {1: ROWS[1], 2: ROWS[2]}}
Train = Callable[[str, int], Parameters]


def drawn(population: dict[int, NDArray[np.int64]], *name: int | str) -> History:
    return begin(population, SHAPE, lambda *what: np.random.default_rng(derive_integer(*name, *what)))


def fitted(history: History, struck: Collection[int] = ()) -> Parameters:
    """Return slope and intercept of a regression by FATS's rounds; struck samples count for nothing."""
    theta = np.zeros(2)
    for round in range(SHAPE.rounds):
        models = []
        for client in history.clients(round):
            local = theta.copy()
            for batch in history.batches(round, client):
                rows = np.array([row for row in batch if row not in struck], np.int64)
                wrong = local[0] * X[rows] + local[1] - Y[rows]
                local -= 0.1 * np.array([wrong @ X[rows], wrong.sum()]) / max(1, len(rows))
            models.append(local)
        theta = np.mean(models, axis=0)
    return theta


def retrained(level: str, seed: int) -> Parameters:
    return fitted(drawn(LEFT[level], "retrained", seed))


def unlearned(level: str, seed: int) -> Parameters:
    history = drawn(ROWS, "original", seed)
    return fitted(history.without(samples={0: [0]}) if level == "sample" else history.without([0]))


def untouched(level: str, seed: int) -> Parameters:
    return fitted(drawn(ROWS, "original", seed))


def struck(level: str, seed: int) -> Parameters:
    """Leave the draws as they are, and the target out of them."""
    return fitted(drawn(ROWS, "original", seed), [0] if level == "sample" else ROWS[0].tolist())


def p_value(one: Parameters, two: Parameters) -> float:
    """Return the p-value of the permutation test of the energy distance (Szekely and Rizzo 2013)."""
    both, n = np.concatenate([one, two]), len(one)
    both = both / both.std(axis=0)
    apart = np.linalg.norm(both[:, None] - both[None], axis=2)
    random = np.random.default_rng(0)
    signs = np.ones((PERMUTATIONS + 1, 2 * n))
    signs[:, n:] = -1
    signs[1:] = random.permuted(signs[1:], axis=1)
    energies = -((signs @ apart) * signs).sum(1)  # 2 E|x - y| - E|x - x'| - E|y - y'|, up to a factor
    return float((energies[1:] >= energies[0]).sum() + 1) / (PERMUTATIONS + 1)


@pytest.mark.parametrize("level", ["sample", "client"])
@pytest.mark.parametrize(
    ("train", "same"),
    [(unlearned, True), (untouched, False), (struck, False)],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_only_what_is_unlearned_is_as_if_it_were_retrained(level: str, train: Train, same: bool) -> None:
    found = [np.array([way(level, seed) for seed in range(SEEDS)]) for way in (train, retrained)]
    p = p_value(*found)
    assert p > 0.01 if same else p < 0.001
