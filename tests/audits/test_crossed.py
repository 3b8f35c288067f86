"""Inference over clients and over runs: by hand, and how often the intervals cover."""

from math import isnan, sqrt

import numpy as np
import pytest

from fu.audits.crossed import Cell, crossed

ZERO = np.array([0.0, 0])


def test_two_clients_on_two_partitions_by_hand() -> None:
    # Cells have means 1, 3 and 5, 7, so clients 2 and 6: 4 on average, standard deviation sqrt 8.
    # Unlearned runs have variance 2, retrained ones 8: (2 / 2 + 8 / 2) x 4 cells / 4^2 = 5 / 4, of which the means have
    # one degree of freedom each: (4 x 5)^2 / (4 x (1^2 + 4^2)) = 100 / 17 degrees, of which t is 2.4590.
    cells: list[list[Cell]] = [
        [(np.array([mean - 1.0, mean + 1]), np.array([-2.0, 2])) for mean in means] for means in ((1, 3), (5, 7))
    ]
    found = crossed(cells)
    assert found.mean == 4
    assert (found.between, found.within) == pytest.approx((sqrt(8), sqrt(2)))
    assert found.over_clients == pytest.approx((4 - 12.7062 * 2, 4 + 12.7062 * 2), abs=1e-3)  # t of one degree
    assert found.over_runs == pytest.approx((4 - 2.4590 * sqrt(5 / 4), 4 + 2.4590 * sqrt(5 / 4)), abs=1e-3)


def test_of_one_client_nothing_follows_for_others() -> None:
    found = crossed([[(np.array([1.0, 3]), ZERO)]])
    assert isnan(found.between)
    assert all(map(isnan, found.over_clients))
    assert found.over_runs == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-3)  # error 1, one degree: ZERO has none


def test_runs_that_are_all_alike_leave_no_doubt_about_these_clients() -> None:
    assert crossed([[(ZERO + 1, ZERO)]]).over_runs == (1, 1)


def test_the_interval_over_runs_covers_where_those_of_one_kind_vary_far_more() -> None:
    random = np.random.default_rng(0)
    drawn = [crossed([[(10 * random.normal(size=4), random.normal(size=4))]]).over_runs for _ in range(4000)]
    assert np.mean([low < 0 < high for low, high in drawn]) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("clients", "partitions", "runs"), [(3, 2, 8), (4, 1, 4)])
def test_the_interval_over_clients_covers_and_that_over_runs_covers_only_these(
    clients: int, partitions: int, runs: int
) -> None:
    """Clients deviate by 1, partitions of a client by .5, runs by 1; partitions differ by 2 for all clients alike."""
    random, covered, further = np.random.default_rng(0), [], []
    for _ in range(2000):
        fixed = 2.0 * np.arange(partitions)
        true = random.normal(size=(clients, 1)) + 0.5 * random.normal(size=(clients, partitions)) + fixed
        found = crossed(
            [[(mean + random.normal(size=runs), random.normal(size=runs)) for mean in means] for means in true]
        )
        low, high = found.over_runs
        covered.append((found.over_clients[0] < fixed.mean() < found.over_clients[1], low < true.mean() < high))
        further.append(low < fixed.mean() < high)
    assert np.mean(covered, axis=0) == pytest.approx([0.95, 0.95], abs=0.02)
    assert np.mean(further) < 0.75  # draws alone say too much about further clients
