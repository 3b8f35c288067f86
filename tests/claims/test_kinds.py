"""Each kind of claim on numbers worked out by hand."""

from math import inf, isnan, nan
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from fu import plugins
from fu.claims import best
from fu.claims.rows import Operand, values
from fu.plugins import Choice

COLUMNS = ["scenario", "method", "point", "stage", "seed", "round", "metric", "value", "k", "params.q"]
# Two scenarios, k = 1 and 4, two seeds. `ours` is a grid of q: at .5 it has what is below, at .1 a tenth less.
ASR = {("a", "ours"): (0.2, 0.4), ("b", "ours"): (0.3, 0.5), ("a", "scratch"): (0.1, 0.1), ("b", "scratch"): (0.5, 0.4)}


def rows() -> pd.DataFrame:
    found = []
    for (scenario, method), numbers in ASR.items():
        k = {"a": 1, "b": 4}[scenario]
        for seed, value in enumerate(numbers):
            for q in (0.5, 0.1) if method == "ours" else (None,):
                less = 0.1 if q == 0.1 else 0.0
                point = f"{method}+q{q}" if q else method
                found.append((scenario, method, point, "unlearned", seed, -1, "asr", value - less, k, q))
    for scenario, k in (("a", 1), ("b", 4)):
        found.append((scenario, "original", "original", "original", 0, -1, "asr", 0.9, k, None))
    return pd.DataFrame(found, columns=COLUMNS)


def curve(*lines: tuple[float, int, int, float]) -> pd.DataFrame:
    """Return rows with k, seed, round and value."""
    found = [
        (f"x-k{k}", "ours", "ours", "unlearned", seed, round, "asr", value, k, None) for k, seed, round, value in lines
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def made(
    kind: str, given: pd.DataFrame | None = None, **params: Any
) -> tuple[dict[Any, list[float]], tuple[float, float]]:
    """Return what a claim makes of the rows: by unit and rival its numbers, seed by seed; and its region."""
    module = plugins.load("claims", kind)
    p = plugins.params("claims", Choice(name=kind, params=params), "here")
    found = module.statistics(rows() if given is None else given, p)
    each = {key: [round(value, 9) for value in part["value"]] for key, part in found.groupby(["unit", "against"])}
    return each, module.region(p)


OURS = {"method": "ours", "metric": "asr", "at": {"params.q": 0.5}}
SCRATCH = {"method": "scratch", "metric": "asr"}


OURS_BY_SEED = {("a", ""): [0.2, 0.4], ("b", ""): [0.3, 0.5]}
DIFFERENCES = {("a", ""): [0.1, 0.3], ("b", ""): [-0.2, 0.1]}


@pytest.mark.parametrize(
    ("kind", "params", "expected", "region"),
    [
        ("order", {"than": SCRATCH, "side": "above", "margin": 0.05}, DIFFERENCES, (0.05, inf)),
        ("order", {"than": SCRATCH, "side": "below", "margin": 0.05}, DIFFERENCES, (-inf, -0.05)),
        ("at_least", {"than": SCRATCH, "side": "above", "margin": 0.05}, DIFFERENCES, (-0.05, inf)),
        ("at_least", {"than": SCRATCH, "side": "below", "margin": 0.05}, DIFFERENCES, (-inf, 0.05)),
        ("equal", {"than": SCRATCH, "margin": 0.05}, DIFFERENCES, (-0.05, 0.05)),
        ("limit", {"side": "below", "limit": 0.3}, OURS_BY_SEED, (-inf, 0.3)),
        ("limit", {"side": "above", "limit": 0.3}, OURS_BY_SEED, (0.3, inf)),
        (
            "exact",
            {"of": SCRATCH, "value": 0.1, "tolerance": 0.01},
            {("a", ""): [0.0, 0.0], ("b", ""): [0.4, 0.3]},
            (-0.01, 0.01),
        ),
    ],
)
def test_numbers_seed_by_seed_and_where_they_must_lie(
    kind: str, params: dict[str, Any], expected: dict[Any, list[float]], region: tuple[float, float]
) -> None:
    assert made(kind, **{"of": OURS, **params}) == (expected, region)


@pytest.mark.parametrize("kind", ["order", "best"])
def test_where_nothing_is_known_of_one_operand_there_is_no_difference(kind: str) -> None:
    params: dict[str, Any] = {"of": OURS, "side": "above"}
    params |= {"than": {**SCRATCH, "method": "absent"}} if kind == "order" else {"among": ["absent"]}
    assert made(kind, **params)[0] == {}


def test_a_seed_in_which_both_diverged_is_kept_and_one_without_a_partner_is_not() -> None:
    given = rows()
    given.loc[(given["scenario"] == "a") & (given["seed"] == 1), "value"] = inf
    given = given[~((given["scenario"] == "b") & (given["seed"] == 1) & (given["method"] == "scratch"))]
    each, _ = made("order", given, of=OURS, than=SCRATCH, side="above")
    assert each["b", ""] == [-0.2]
    assert each["a", ""][0] == 0.1
    assert isnan(each["a", ""][1])


def test_best_is_a_difference_for_each_rival_but_itself() -> None:
    single = rows()
    single = single[single["params.q"] != 0.1]
    each, region = made("best", single, of=SCRATCH, among=["scratch", "ours"], side="below", margin=0.1)
    assert region == (-inf, -0.1)
    assert each.keys() == {("a", "ours"), ("b", "ours")}
    each, _ = made("best", of={**OURS, "at": {"params.q": 0.5, "k": 4}}, among=["scratch"], side="above")
    assert each == {("b", "scratch"): [-0.2, 0.1]}  # scratch has no q, and is asked for none


@pytest.mark.parametrize(
    ("among", "sentence"),
    [(["ours", "ours"], "must differ from each other"), (["scratch"], "among: must name another method than scratch")],
)
def test_best_has_rivals_each_once(among: list[str], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        best.Params(of=Operand(method="scratch", metric="asr"), among=among, side="below")


@pytest.mark.parametrize(
    ("round", "expected"), [("last", 3.0), ("first", 1.0), ("highest", 5.0), ("lowest", 1.0), ("mean", 3.0)]
)
def test_of_curves_a_claim_reads_one_round_or_what_is_made_of_all(round: str, expected: float) -> None:
    given = curve((1, 0, 2, 5.0), (1, 0, 3, 3.0), (1, 0, 1, 1.0))
    operand = Operand(method="ours", metric="asr", round=round)  # type: ignore[arg-type]
    assert list(values(given, operand)) == [expected]


def test_the_mean_is_over_all_rounds_also_those_that_were_not_measured() -> None:
    given = curve((1, 0, 4, 3.0), (1, 0, 5, 5.0), (1, 0, 1, 0.0), (1, 1, -1, -inf))  # 0, 1, 2, 3, 5; and one diverged
    assert [*values(given, Operand(method="ours", metric="asr", round="mean")).sort_index()] == [2.2, -inf]


def test_of_several_points_no_number_is_taken() -> None:
    assert made("limit", of={"method": "ours", "metric": "asr"}, side="above", limit=0)[0] == {}


def test_rows_are_those_of_method_metric_stage_and_place() -> None:
    def number(**changes: Any) -> int:
        return len(Operand(**{**OURS, **changes}).pick(rows()))

    assert number() == 4
    assert number(at={"params.q": 0.5, "k": 4}) == 2
    assert number(at={"params.q": 0.3}) == number(at={"nothing": 1}) == number(metric="r_acc") == 0
    assert number(stage="recovered") == 0
    assert len(Operand(method="original", metric="asr").pick(rows())) == 2


def test_interval_is_a_number_with_its_ends_where_there_are_all_three() -> None:
    about = {"method": "ours", "point": "ours", "stage": "unlearned", "seed": -1, "round": -1}
    numbers = {"epsilon": 0.4, "epsilon_low": 0.1, "epsilon_high": 0.9}
    given = [{**about, "scenario": "a", "metric": metric, "value": value} for metric, value in numbers.items()]
    given += [{**about, "scenario": "b", "metric": "epsilon", "value": 0.5}]
    of = {"method": "ours", "metric": "epsilon"}
    each, region = made("interval", pd.DataFrame(given), of=of, side="below", limit=1)
    assert each == {("a", ""): [0.4, 0.1, 0.9]}
    assert region == (-inf, 1)


def errors(kind: str, **params: Any) -> dict[Any, list[float]]:
    p = plugins.params("claims", Choice(name=kind, params=params), "here")
    found = plugins.load("claims", kind).statistics(rows(), p)
    return {key: [round(one, 9) for one in part["error"]] for key, part in found.groupby("unit")}


def test_a_rate_has_the_error_of_its_samples_pooled_over_seeds() -> None:
    # a: (20 * .3 + 2) / (20 + 4) = 1/3 of 10 samples; b: (20 * .4 + 2) / 24 = 5/12
    a, b = (2 / 9 / 10) ** 0.5, (35 / 144 / 10) ** 0.5
    ours = {**OURS, "samples": 10}
    found = errors("limit", of=ours, side="below", limit=1)
    assert found["a"] == pytest.approx([a] * 2)
    assert found["b"] == pytest.approx([b] * 2)
    # scratch in a: (40 * .1 + 2) / 44 = 3/22 of 20 samples; in quadrature
    theirs = {**SCRATCH, "samples": 20}
    for kind in ("order", "equal", "at_least"):
        more = {} if kind == "equal" else {"side": "above"}
        found = errors(kind, of=ours, than=theirs, margin=0.1, **more)
        assert found["a"] == pytest.approx([(2 / 90 + 57 / 484 / 20) ** 0.5] * 2)
    assert errors("order", of=ours, than=SCRATCH, side="above")["a"] == pytest.approx([a] * 2)  # the one that is known
    assert all(one != one for one in errors("limit", of=OURS, side="below", limit=1)["a"])


def test_a_trend_runs_along_a_coordinate_of_scenarios_as_one_unit() -> None:
    each, region = made("trend", of=SCRATCH, along="k", way="rising", margin=0.1)
    assert each == {("a, b", ""): [0.4, 0.3]}  # .5 - .1 and .4 - .1
    assert region == (0.1, inf)


def test_a_trend_runs_along_a_setting_within_each_scenario() -> None:
    each, region = made("trend", of={"method": "ours", "metric": "asr"}, along="params.q", way="falling")
    assert each == {("a", ""): [0.1, 0.1], ("b", ""): [0.1, 0.1]}
    assert region == (-inf, 0.0)


TREND: dict[str, Any] = {"of": {"method": "ours", "metric": "asr"}, "along": "k", "way": "rising"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([(1, 0, -1, 0.0), (10, 0, -1, 1.0), (100, 0, -1, 5.0)], [5.0]),
        (
            [(1, 0, 4, 9.0), (1, 0, 5, 1.0), (2, 0, 3, 7.0), (2, 0, 2, 9.0), (1, 1, 6, 2.0), (2, 1, 6, 5.0)],
            [6.0, 3.0],
        ),
        ([(1, 0, -1, 1.0), (2, 0, -1, 3.0), (3, 0, -1, 8.0), (1, 1, -1, 5.0), (3, 1, -1, 2.0)], [7.0]),
    ],
    ids=[
        "a line is fitted, slope 2.5 a step, whatever the distance of 10 and 100",
        "the last round is that of each seed and scenario",
        "a seed without all values of the coordinate has none",
    ],
)
def test_a_trend_is_the_change_from_end_to_end(lines: list[tuple[int, int, int, float]], expected: list[float]) -> None:
    assert made("trend", curve(*lines), **TREND)[0] == {("x", ""): expected}


def test_trends_with_another_coordinate_are_units_of_their_own() -> None:
    rising, falling = (curve(*((k, 0, -1, slope * k) for k in (1, 2, 3))) for slope in (1.0, -2.0))
    parts = [part.assign(n=n, scenario=part["scenario"] + f"-n{n}") for n, part in ((5, rising), (6, falling))]
    assert made("trend", pd.concat(parts), **TREND)[0] == {("x-n5", ""): [2.0], ("x-n6", ""): [-4.0]}


@pytest.mark.parametrize(
    ("values_", "changes"),
    [
        ((1.0, 2.0, inf), [inf]),
        ((inf, 2.0, 5.0), [-inf]),
        ((1.0, inf, 4.0), [nan]),  # the one in the middle moves no line, but no line passes through it
        ((inf, 2.0, inf), [nan]),  # which of the two is larger, nobody knows
        ((-inf, 2.0, 3.0), [inf]),
    ],
)
def test_a_trend_keeps_its_infinite_ends(values_: tuple[float, ...], changes: list[float]) -> None:
    given = curve(*((k + 1, 0, -1, value) for k, value in enumerate(values_)))
    assert made("trend", given, **TREND)[0]["x", ""] == pytest.approx(changes, nan_ok=True)
