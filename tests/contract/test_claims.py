"""A kind of claim: from rows to numbers by scenario and seed, and the interval that must contain them."""

from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu import plugins
from fu.claims.rows import STATISTIC, Operand
from tests.artefacts.factories import number
from tests.contract.names import plugins_of
from tests.factories import default_params

SCENARIOS, SEEDS = {"small-p1": 1, "small-p10": 10}, (0, 1, 2)  # of one coordinate, p


def params(name: str) -> Any:
    return default_params(plugins.load("claims", name).Params)


def rows(operands: list[Operand]) -> pd.DataFrame:
    """Return what operands name in two scenarios, on three seeds."""
    found = [
        {
            **{"scenario": scenario, "method": one.method, "point": one.method, "stage": one.stage or "unlearned"},
            **{
                "seed": seed,
                "round": -1,
                "metric": one.metric,
                "value": number(scenario, one.method, one.metric, seed),
            },
            **{"p": p, **one.at},
        }
        for one in operands
        for scenario, p in SCENARIOS.items()
        for seed in SEEDS
    ]
    return pd.DataFrame(found).drop_duplicates()


@pytest.mark.parametrize("name", plugins_of("claims"))
def test_a_claim_has_a_finite_number_for_each_unit_and_seed(name: str) -> None:
    """`statistics` is deterministic, does not modify the rows, and returns unit, against, seed and a finite value.

    It returns one row for each unit, rival and seed, or with `INTERVAL` three: the number and both ends.
    """
    module, p = plugins.load("claims", name), params(name)
    given = rows(module.operands(p))
    copy = given.copy(deep=True)
    found = module.statistics(given, p)
    assert list(found.columns) == STATISTIC
    assert len(found) > 0
    assert set(found["seed"]) == set(SEEDS)
    number = 3 if getattr(module, "INTERVAL", False) else 1
    assert set(found.groupby(["unit", "against", "seed"]).size()) == {number}
    assert np.isfinite(found["value"].to_numpy(float)).all()
    pd.testing.assert_frame_equal(found, module.statistics(given, p))
    pd.testing.assert_frame_equal(given, copy)


@pytest.mark.parametrize("name", plugins_of("claims"))
def test_a_claim_reads_the_rows_of_its_operands_alone(name: str) -> None:
    """Every operand affects the result, and rows that no operand names do not."""
    module, p = plugins.load("claims", name), params(name)
    operands = module.operands(p)
    given = rows(operands)
    found = module.statistics(given, p)
    others = [{"method": "nobody"}, {"metric": "nothing"}, {"stage": "nowhere"}]
    with_others = pd.concat([given, *(given.assign(value=2 * given["value"], **other) for other in others)])
    pd.testing.assert_frame_equal(module.statistics(with_others, p), found)
    for one in operands:
        own = (given["method"] == one.method) & (given["metric"] == one.metric)
        moved = given.assign(value=given["value"] + own * given["p"])
        assert not module.statistics(moved, p)["value"].equals(found["value"]), one


@pytest.mark.parametrize("name", plugins_of("claims"))
def test_a_claim_of_which_there_are_no_rows_has_no_number(name: str) -> None:
    """Without rows (a paper that prints no such number), `statistics` returns its columns and no rows."""
    module, p = plugins.load("claims", name), params(name)
    found = module.statistics(rows(module.operands(p)).iloc[:0], p)
    assert list(found.columns) == STATISTIC
    assert len(found) == 0


@pytest.mark.parametrize("name", plugins_of("claims"))
def test_a_region_is_an_interval_that_leaves_something_out(name: str) -> None:
    """`region` returns a lower and an upper bound, in this order, at least one of them finite."""
    low, high = plugins.load("claims", name).region(params(name))
    assert low <= high
    assert isfinite(low) or isfinite(high)
