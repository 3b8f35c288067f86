"""Dirichlet: clients of equal size, as many classes as beta makes them hold, no sample twice."""

import numpy as np
import pytest

from fu.data.partition import Indices
from fu.partitions import dirichlet
from tests.data.draws import LABELS, SIZES

CLASSES, EACH = 10, 600
EVEN = np.random.default_rng(3).permutation(np.repeat(np.arange(CLASSES), EACH))


def dealt(beta: float, clients: int = 20, seed: int = 0, labels: Indices = EVEN) -> list[Indices]:
    return dirichlet.deal(labels, CLASSES, clients, dirichlet.Params(beta=beta), np.random.default_rng(seed))


def shares(pools: list[Indices], labels: Indices = EVEN) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.stack([np.bincount(labels[pool], minlength=CLASSES) / len(pool) for pool in pools])


@pytest.mark.parametrize("beta", [1e-3, 0.1, 0.5, 100.0])
@pytest.mark.parametrize("clients", [7, 20, 333])
def test_clients_are_equally_large_and_share_no_sample(beta: float, clients: int) -> None:
    pools = dealt(beta, clients, labels=LABELS)
    assert [len(pool) for pool in pools] == [sum(SIZES) // clients] * clients
    rows = np.concatenate(pools)
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < len(LABELS)


def test_a_large_beta_is_nearly_iid_and_a_small_one_leaves_few_classes() -> None:
    even = abs(shares(dealt(1e6)) - 1 / CLASSES)
    assert even[:10].max() < 0.09  # five standard deviations of 300 draws; the last get what is left
    assert even.mean() < 0.02
    held = [(shares(dealt(beta, 20)) > 0.01).sum(1).mean() for beta in (0.01, 0.1, 0.5, 5.0)]
    assert held[0] < 2.5
    assert held == sorted(held)
    assert held[-1] > 8


def test_the_first_client_s_proportions_have_the_moments_of_their_law() -> None:
    """Var p_k = (1/C)(1 - 1/C) / (C beta + 1), and that of 300 draws from p on top of it; standard error 4%."""
    found = np.stack([shares(dealt(0.5, 20, seed))[0] for seed in range(300)])
    law = 0.09 / (CLASSES * 0.5 + 1)
    assert found.mean(0) == pytest.approx(0.1, abs=0.035)
    assert found.var() == pytest.approx(law + (0.09 - law) / 300, rel=0.15)


def test_a_draw_is_that_of_its_generator_and_mixes_the_order_of_the_data_set() -> None:
    one, again, other = dealt(0.5, seed=0), dealt(0.5, seed=0), dealt(0.5, seed=1)
    assert all(map(np.array_equal, one, again))
    assert not any(map(np.array_equal, one, other))
    first = EVEN[one[0]][0]
    mine = one[0][EVEN[one[0]] == first]
    assert set(mine.tolist()) != set(np.flatnonzero(first == EVEN)[: len(mine)].tolist())


def test_a_test_set_dealt_by_the_same_generator_has_the_same_classes() -> None:
    train, test = shares(dealt(0.3, seed=4)), shares(dealt(0.3, seed=4, labels=EVEN[:3000]), EVEN[:3000])
    assert [np.corrcoef(a, b)[0, 1] > 0.9 for a, b in zip(train[:5], test[:5], strict=True)] == [True] * 5
