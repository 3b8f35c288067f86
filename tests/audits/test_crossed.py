"""Inference over clients and over runs: by hand, and how often the intervals cover."""

from math import isnan, sqrt

import numpy as np
import pytest

from fu.audits.crossed import Cell, crossed
from fu.audits.models import Floats

ZERO = np.array([0.0, 0])


def test_two_clients_on_two_partitions_by_hand() -> None:
    # Cells have means 1, 3 and 5, 7, so clients 2 and 6: 4 on average, standard deviation sqrt 8.
    # The mean runs of the two seeds are 3 and 5, of retrained models -2 and 2, of variances 2 and 8: 2 / 2 + 8 / 2 = 5,
    # with one degree of freedom each: 5^2 / (1^2 + 4^2) = 25 / 17 degrees, of which t is 6.1881.
    cells: list[list[Cell]] = [
        [(np.array([mean - 1.0, mean + 1]), np.array([-2.0, 2])) for mean in means] for means in ((1, 3), (5, 7))
    ]
    found = crossed(cells, 2)
    assert found.mean == 4
    assert (found.between, found.within) == pytest.approx((sqrt(8), sqrt(2)))
    assert found.over_clients == pytest.approx((4 - 12.7062 * 2, 4 + 12.7062 * 2), abs=1e-3)  # t of one degree
    assert found.over_runs == pytest.approx((4 - 6.1881 * sqrt(5), 4 + 6.1881 * sqrt(5)), abs=1e-3)


def test_runs_of_a_seed_that_deviate_in_opposite_ways_cancel() -> None:
    up, down = np.array([0.0, 2]), np.array([2.0, 0])
    assert crossed([[(up, ZERO)], [(down, ZERO)]], 2).over_runs == (1, 1)


def test_where_some_runs_diverged_the_deviations_of_all_cells_add_up() -> None:
    # Errors sqrt(2 / 2) = 1 and sqrt(1 / 3) are .7887 on average, with one degree; retrained runs do not vary.
    found = crossed([[(np.array([0.0, 2]), ZERO)], [(np.array([0.0, 1, 2]), ZERO)]], 3)
    assert found.over_runs == pytest.approx((1 - 12.7062 * 0.78868, 1 + 12.7062 * 0.78868), abs=1e-3)


def test_where_as_many_runs_diverged_everywhere_they_may_be_of_other_seeds() -> None:
    up, down = np.array([0.0, 2]), np.array([2.0, 0])
    assert crossed([[(up, ZERO)], [(down, ZERO)]], 3).over_runs == pytest.approx((1 - 12.7062, 1 + 12.7062), abs=1e-3)


def test_of_one_client_nothing_follows_for_others() -> None:
    found = crossed([[(np.array([1.0, 3]), ZERO)]], 2)
    assert isnan(found.between)
    assert all(map(isnan, found.over_clients))
    assert found.over_runs == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-3)  # error 1, one degree: ZERO has none


def test_runs_that_are_all_alike_leave_no_doubt_about_these_clients() -> None:
    assert crossed([[(ZERO + 1, ZERO)]], 2).over_runs == (1, 1)


def test_the_interval_over_runs_covers_where_those_of_one_kind_vary_far_more() -> None:
    random = np.random.default_rng(0)
    drawn = [crossed([[(10 * random.normal(size=4), random.normal(size=4))]], 4).over_runs for _ in range(4000)]
    assert np.mean([low < 0 < high for low, high in drawn]) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(("clients", "partitions", "runs"), [(3, 2, 8), (4, 1, 4)])
def test_the_interval_over_clients_covers_and_that_over_runs_covers_only_these(
    clients: int, partitions: int, runs: int
) -> None:
    """Clients deviate by 1, partitions of a client by .5, runs by 1; partitions differ by 2 for all clients alike.

    The runs of a seed share half of their variance, which is why `over_runs` may not count them as several.
    """
    random, covered, further = np.random.default_rng(0), [], []

    def drawn(common: Floats) -> Floats:
        return (common + random.normal(size=runs)) / sqrt(2)

    for _ in range(2000):
        fixed = 2.0 * np.arange(partitions)
        true = random.normal(size=(clients, 1)) + 0.5 * random.normal(size=(clients, partitions)) + fixed
        common = random.normal(size=(2, runs))
        found = crossed([[(mean + drawn(common[0]), drawn(common[1])) for mean in means] for means in true], runs)
        low, high = found.over_runs
        here = fixed.mean() + (common[0] - common[1]).mean() / sqrt(2)  # the mean over clients with these seeds
        covered.append((found.over_clients[0] < here < found.over_clients[1], low < true.mean() < high))
        further.append(low < fixed.mean() < high)
    assert np.mean(covered, axis=0) == pytest.approx([0.95, 0.95], abs=0.02)
    assert np.mean(further) < 0.9  # draws alone say too much about further clients
