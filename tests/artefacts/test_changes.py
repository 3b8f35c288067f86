"""V, S and Q by hand: clients of unequal weight, in any proportion, negative values kept."""

import pandas as pd
import pytest

from fu.artefacts.changes import gap, spread


def series(*values: float) -> "pd.Series[float]":
    return pd.Series(values, index=[3, 5, 8])


@pytest.mark.parametrize(
    ("lost", "weights", "mean", "distance"),
    [
        ((0.0, 0.0, 1.0), (0.5, 0.3, 0.2), 0.2, 0.32),  # .8 * .2 + .2 * .8; were clients equal, .4
        ((0.0, 0.0, 1.0), (50, 30, 20), 0.2, 0.32),
        ((-1.0, -3.0, -1.0), (1, 1, 2), -1.5, 0.75),  # (.5 + 1.5 + 2 * .5) / 4
        ((2.0, 2.0, 2.0), (5, 1, 9), 2.0, 0.0),
        ((0.0, 0.0, 0.0), (5, 1, 9), 0.0, 0.0),  # what an optimum loses against itself
    ],
)
def test_the_mean_and_the_spread_of_losses_are_weighted(
    lost: tuple[float, ...], weights: tuple[float, ...], mean: float, distance: float
) -> None:
    assert gap(series(*lost), series(*weights)) == pytest.approx(mean)
    assert spread(series(*lost), series(*weights)) == pytest.approx(distance)


def test_clients_are_told_apart_by_their_number_not_by_their_place() -> None:
    weights = pd.Series({8: 0.2, 3: 0.5, 5: 0.3})
    assert spread(series(0.0, 0.0, 1.0), weights) == pytest.approx(0.32)
