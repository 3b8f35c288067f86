"""Groups: sizes, shares and labels of two groups of clients that are alike inside."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fu.data.partition import Indices
from fu.partitions import groups
from fu.partitions.groups import Params

LABELS = np.random.default_rng(3).permutation(
    np.repeat(np.arange(10), [500, 700, 600, 600, 550, 500, 600, 650, 600, 590])
)


def dealt(alpha: float = 0.4, seed: int = 0, labels: NDArray[np.int64] = LABELS, clients: int = 10) -> list[Indices]:
    return groups.deal(labels, 10, clients, Params(alpha=alpha), np.random.default_rng(seed))


def counts(pools: list[Indices], labels: NDArray[np.int64] = LABELS) -> NDArray[np.int64]:
    return np.stack([np.bincount(labels[pool], minlength=10) for pool in pools])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.1, 0.4, 0.7, 100.0])
def test_the_groups_hold_their_shares_and_clients_of_a_group_are_alike(alpha: float, seed: int) -> None:
    pools = dealt(alpha, seed)
    rows, held = np.concatenate(pools), counts(pools)
    assert len(np.unique(rows)) == len(rows)
    assert held[:4].sum() / held.sum() == pytest.approx(0.38, abs=0.01)
    assert (held[:4] == held[0]).all()
    assert (held[4:] == held[4]).all()


@pytest.mark.parametrize("seed", range(5))
def test_each_group_has_its_own_proportions_and_one_class_is_used_up(seed: int) -> None:
    held = counts(dealt(0.4, seed))
    drawn = np.random.default_rng(seed).dirichlet(np.full(10, 0.4), 2)
    for group, proportions in zip((held[:4], held[4:]), drawn, strict=True):
        assert group.sum(0) / group.sum() == pytest.approx(proportions, abs=0.03)
    left = np.bincount(LABELS, minlength=10) - held.sum(0)
    assert 0 <= left.min() <= 10  # less than one a client


def test_the_sizes_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 and 60 samples: .38 (1, 0) + .62 (.5, .5) is (.69, .31), so 100 / .69 = 144.9 in all: 55 and 44 + 44."""
    labels = np.repeat([0, 1], [100, 60])

    class Drawn:
        def dirichlet(self, alpha: NDArray[np.float64], number: int) -> NDArray[np.float64]:
            assert alpha.tolist() == [0.4, 0.4]
            return np.array([[1.0, 0.0], [0.5, 0.5]])

        def permutation(self, rows: Indices) -> Indices:
            return rows[::-1]

    p = Params(alpha=0.4, first=1)
    found = groups.deal(labels, 2, 3, p, Drawn())  # type: ignore[arg-type]
    assert found[0].tolist() == list(range(99, 44, -1))
    assert [len(pool) for pool in found] == [55, 44, 44]
    assert sorted(np.concatenate(found[1:]).tolist()) == [*range(1, 45), *range(116, 160)]


def test_the_smaller_alpha_the_less_alike_are_the_groups() -> None:
    def apart(alpha: float) -> float:
        each = [counts(dealt(alpha, seed)) for seed in range(20)]
        shares = [(one[0] / one[0].sum(), one[4] / one[4].sum()) for one in each]
        return float(np.mean([np.abs(first - second).sum() for first, second in shares]))

    assert apart(0.1) > apart(0.4) > apart(0.7) > apart(100) > 0


def test_a_group_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="first: 4 of 4 clients leave none for the second group"):
        groups.check(4, 10, Params())
