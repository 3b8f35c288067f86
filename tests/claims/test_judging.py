"""Verdicts on numbers worked out by hand; quantiles of t with 4 degrees: 2.776 (2.5%), 3.495 (1.25%), 3.961 (.83%)."""

from math import inf, isnan, nan, sqrt

import numpy as np
import pandas as pd
import pytest

from fu.claims.correction import levels
from fu.claims.judging import FEW, LEVEL, Verdict, judge, overall, stands

ABOVE, BELOW, WITHIN = (0.0, inf), (-inf, 0.0), (-1.0, 1.0)
LOPSIDED = (-1.0, 2.0, -1.0, 1.0, -1.0)  # mean 0, variance 2, so that intervals are ± 2.776 sqrt(2 / 5) = 1.756


def seeds(mean: float, scale: float = 1.0) -> list[float]:
    return [mean + scale * one for one in LOPSIDED]


def frame(
    units: dict[str, list[float]], against: str = "", seed: int | None = None, error: float = nan
) -> pd.DataFrame:
    rows = [
        (name, against, k if seed is None else seed, x, error)
        for name, values in units.items()
        for k, x in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["unit", "against", "seed", "value", "error"])


def rivals(seed: int | None = None, **values: list[float]) -> pd.DataFrame:
    """Return the numbers of one unit against several rivals."""
    return pd.concat([frame({"a": numbers}, against, seed) for against, numbers in values.items()])


def verdict(values: list[float], region: tuple[float, float], exact: bool = False, error: float = nan) -> Verdict:
    [one] = judge(frame({"a": values}, error=error), region, exact)
    return one.verdict


@pytest.mark.parametrize(
    ("values", "region", "expected"),
    [
        (seeds(3), ABOVE, "holds"),
        (seeds(3), (1.25, inf), "undecided"),
        (seeds(3), (1.24, inf), "holds"),
        (seeds(-3), ABOVE, "does not hold"),
        (seeds(-3), BELOW, "holds"),
        (seeds(-3), (-inf, -1.25), "undecided"),
        (seeds(1.7), ABOVE, "undecided"),
        (seeds(0, 0.1), WITHIN, "holds"),
        (seeds(0, 0.1), (-0.17, 0.17), "undecided"),
        (seeds(0, 0.1), (-0.17, inf), "undecided"),
        # equivalence: no difference found is not enough
        (seeds(0), WITHIN, "undecided"),
        # outside of two bounds half of the level is left: ± .221 for ± .176
        (seeds(1.23, 0.1), WITHIN, "does not hold"),
        (seeds(1.21, 0.1), WITHIN, "undecided"),
        (seeds(-1.23, 0.1), WITHIN, "does not hold"),
        # equal seeds are no certainty
        ([1.0] * 6, ABOVE, "undecided"),
        ([-1.0] * 6, ABOVE, "undecided"),
        # .1 + .2 is no different from .3
        ([0.1 + 0.2, 0.3, 0.3, 0.3, 0.3], (0.2, inf), "undecided"),
        # of fewer than five seeds, however clear they are
        ([-9.9, -10.0, -10.1, -10.3], ABOVE, "undecided"),
        ([5.0], ABOVE, "undecided"),
    ],
)
def test_a_claim_holds_where_the_interval_lies_inside(
    values: list[float], region: tuple[float, float], expected: Verdict
) -> None:
    assert verdict(values, region) == expected


def test_a_mean_rests_on_five_seeds_and_says_where_it_does_not() -> None:
    [few] = judge(frame({"a": [9.9, 10.0, 10.1, 10.3]}), ABOVE)
    assert (few.note, few.n, few.needed) == (FEW, 4, 5)
    [enough] = judge(frame({"a": [9.9, 10.0, 10.1, 10.3, 10.4]}), ABOVE)
    assert (enough.verdict, enough.note) == ("holds", "")


def test_equal_seeds_have_the_error_of_measuring() -> None:
    # .01 / sqrt(5) = .00447, times 2.776: .01241
    assert verdict([0.0] * 5, (-inf, 0.0125), error=0.01) == "holds"
    assert verdict([0.0] * 5, (-inf, 0.0123), error=0.01) == "undecided"
    # in quadrature: sqrt(2 + 2) for sqrt(2), ± 2.483
    assert verdict(seeds(2.5), ABOVE, error=sqrt(2)) == "holds"
    assert verdict(seeds(2.4), ABOVE, error=sqrt(2)) == "undecided"


def test_interval_and_number_of_seeds_are_given() -> None:
    [one] = judge(frame({"a": seeds(3)}), (2, inf))
    assert (one.verdict, one.mean, one.n) == ("undecided", 3.0, 5)
    assert (one.low, one.high) == pytest.approx((1.244, 4.756), abs=1e-3)
    [alone] = judge(frame({"a": [5.0]}), ABOVE)
    assert alone.mean == 5
    assert isnan(alone.low)
    assert isnan(alone.needed)


def test_the_interval_is_at_the_level_that_decides() -> None:
    # of two scenarios the clearer one has half of the level, ± 3.495 sqrt(2 / 5) = 2.210, the other all of it
    clear, close = judge(frame({"a": seeds(3), "b": seeds(1.9)}), ABOVE)
    assert (clear.verdict, close.verdict) == ("holds", "holds")
    assert (clear.low, close.low) == pytest.approx((0.790, 0.144), abs=1e-3)
    # where the clearer one is undecided, both have that level, and the interval of neither says more
    clear, close = judge(frame({"a": seeds(2.1), "b": seeds(1.9)}), ABOVE)
    assert (clear.verdict, close.verdict) == ("undecided", "undecided")
    assert (clear.low, close.low) == pytest.approx((-0.110, -0.310), abs=1e-3)
    # that it fails with one of two rivals is at half of the level, at a quarter outside of two bounds (4.315)
    [one] = judge(rivals(weak=seeds(5), strong=seeds(-3)), ABOVE)
    assert (one.verdict, one.against, one.mean, one.n) == ("does not hold", "strong", -3.0, 5)
    assert one.high == pytest.approx(-0.790, abs=1e-3)
    [one] = judge(rivals(x=seeds(5), y=seeds(0, 0.1)), WITHIN)
    assert (one.verdict, one.against) == ("does not hold", "x")
    assert one.low == pytest.approx(5 - 4.315 * sqrt(2 / 5), abs=1e-3)
    # so is that it is undecided whether it fails: -2 ± 2.210 of two rivals (alone it fails: -2 ± 1.756)
    [one] = judge(rivals(weak=seeds(5), strong=seeds(-2)), ABOVE)
    assert (one.verdict, one.against) == ("undecided", "strong")
    assert (one.low, one.high) == pytest.approx((-4.210, 0.210), abs=1e-3)
    # of two rivals that it is behind, the one with the smaller p-value: -1.9 ± 2.210, not -2 ± 4.421
    [one] = judge(rivals(wide=seeds(-2, 2), narrow=seeds(-1.9)), ABOVE)
    assert one.against == "narrow"
    assert one.high == pytest.approx(0.310, abs=1e-3)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("mean", "region"), [(0.9, ABOVE), (-0.7, ABOVE), (0.5, WITHIN), (1.5, WITHIN)], ids=["holds", "not", "in", "out"]
)
def test_it_is_said_how_many_seeds_would_decide(mean: float, region: tuple[float, float]) -> None:
    """Of so many normal seeds of this mean and deviation half, or nine tenths, decide; of one less fewer do."""
    [one] = judge(frame({"a": seeds(mean)}), region)
    assert one.verdict == "undecided"
    assert 5 < one.needed < one.needed_90
    rng, wanted = np.random.default_rng(11), "does not hold" if mean < 0 or mean > 1 else "holds"

    def share(n: float) -> float:
        draws = [rng.normal(mean, sqrt(2), int(n)).tolist() for _ in range(250)]
        return float(np.mean([verdict(draw, region) == wanted for draw in draws]))

    for needed, chance in ((one.needed, 0.5), (one.needed_90, 0.9)):
        assert share(needed) == pytest.approx(chance, abs=0.1)
    assert share(one.needed / 1.5) < 0.45


def test_that_many_are_more_than_there_are_and_count_scenarios_and_rivals() -> None:
    alone, several = (judge(frame(dict.fromkeys(names, seeds(1.7))), ABOVE)[0] for names in (("a",), ("a", "b", "c")))
    assert 5 < alone.needed < several.needed
    [near] = judge(frame({"a": seeds(1.75)}), ABOVE)  # five more such seeds and it would
    assert near.needed == 6
    [fails], [beside] = judge(rivals(one=seeds(-1.5)), ABOVE), judge(rivals(one=seeds(-1.5), two=seeds(9)), ABOVE)
    assert (beside.against, beside.verdict) == ("one", "undecided")
    assert beside.needed > fails.needed
    [far] = judge(frame({"a": seeds(0.001)}), ABOVE)
    assert far.needed == far.needed_90 == inf
    [decided] = judge(frame({"a": seeds(3)}), ABOVE)
    assert isnan(decided.needed)
    [on] = judge(frame({"a": seeds(0)}), ABOVE)
    assert isnan(on.needed)


def test_several_scenarios_are_corrected_by_holm() -> None:
    # .02 > .05 / 3 stops at once; else .01 <= .05 / 3, .02 <= .05 / 2, .04 <= .05
    assert levels([0.04, 0.02, 0.03], 0.05) == pytest.approx([0.05 / 3] * 3)
    assert levels([0.04, 0.02, 0.01], 0.05) == pytest.approx([0.05, 0.05 / 2, 0.05 / 3])
    assert levels([0.02, 0.03, 0.01], 0.05) == pytest.approx([0.05 / 2, 0.05, 0.05 / 3])
    assert levels([0.04, 0.03, 0.01], 0.05) == pytest.approx([0.05 / 2, 0.05 / 2, 0.05 / 3])
    clear, close = seeds(9, 0.1), seeds(1.8)  # 1.8 - 1.756 holds alone, and not beside two others
    assert verdict(close, ABOVE) == "holds"
    found = judge(frame({"a": clear, "b": close, "c": close}), ABOVE)
    assert [one.verdict for one in found] == ["holds", "undecided", "undecided"]
    found = judge(frame({"a": clear, "b": close}), ABOVE)  # the last one that is left needs no more than the level
    assert [one.verdict for one in found] == ["holds", "holds"]


def test_it_must_hold_against_every_rival_and_fails_with_one() -> None:
    for mean, expected in ((1.5, "undecided"), (1.8, "holds"), (-1.8, "undecided")):
        [one] = judge(rivals(weak=seeds(3), strong=seeds(mean)), ABOVE)
        assert (one.verdict, one.against, one.mean) == (expected, "strong", mean)
    assert verdict(seeds(-1.8), ABOVE) == "does not hold"  # alone it fails, as one of two it is undecided


def test_the_rival_that_decides_is_shown_not_the_nearest() -> None:
    [one] = judge(rivals(near=seeds(1, 0.1), wide=seeds(2, 2)), ABOVE)  # 1 ± .18, 2 ± 3.5
    assert (one.verdict, one.against, one.mean) == ("undecided", "wide", 2.0)
    # .2 below nothing is sure, 1 below is not
    [one] = judge(rivals(sure=seeds(-0.2, 0.01), far=seeds(-1)), ABOVE)
    assert (one.verdict, one.against, one.mean) == ("does not hold", "sure", -0.2)


def test_what_is_exact_is_judged_number_by_number() -> None:
    assert verdict([0.0], (0.0, 0.0), exact=True) == "holds"
    assert verdict([0.0, 0.2, -0.2], (-0.1, 0.1), exact=True) == "does not hold"
    assert verdict([0.1], (-0.1, 0.1), exact=True) == "holds"  # the bound counts
    [one] = judge(frame({"a": [0.1, -0.1, 0.6]}), (-0.5, 1.0), exact=True)
    assert (one.verdict, one.n, isnan(one.low)) == ("does not hold" if one.mean > 1 else "holds", 3, True)


def test_what_has_no_seed_has_no_noise_and_without_rows_no_unit_is_judged() -> None:
    assert [one.verdict for one in judge(frame({"a": [2.0], "b": [0.0]}, seed=-1), ABOVE)] == ["holds", "does not hold"]
    assert judge(frame({}), ABOVE) == []


def test_in_all_one_that_fails_decides() -> None:
    assert overall(["holds", "not judged", "holds"]) == "holds"
    assert overall(["holds", "undecided"]) == "undecided"
    assert overall(["undecided", "does not hold", "holds"]) == "does not hold"
    assert overall(["not judged"]) == overall([]) == "not judged"


def test_the_papers_numbers_are_held_against_the_same_region() -> None:
    given = pd.concat([frame({"a": [1.0], "b": [-1.0], "c": [0.0]}, "one"), frame({"a": [-1.0]}, "other")])
    assert stands(given, ABOVE) == {"a": False, "b": False, "c": False}
    assert stands(frame({"a": [1.0], "c": [0.0]}), ABOVE) == {"a": True, "c": False}


@pytest.mark.parametrize("difference", [0.90 - 0.88, 0.70 - 0.68, 0.88 - 0.90, 0.68 - 0.70])
def test_at_a_margin_rounding_decides_nothing(difference: float) -> None:
    """.90 - .88 is .02 and a bit in binary, .70 - .68 a bit less."""
    assert stands(frame({"a": [difference]}), (-0.02, 0.02), ties=True) == {"a": True}
    assert stands(frame({"a": [difference]}), (-0.02, 0.02)) == {"a": False}
    for ties, expected in ((True, "holds"), (False, "does not hold")):
        [one] = judge(frame({"a": [difference]}, seed=-1), (-0.02, 0.02), ties=ties)
        assert one.verdict == expected


@pytest.mark.whole
@pytest.mark.parametrize("units", [1, 3])
def test_of_draws_without_an_effect_at_most_one_in_twenty_holds(units: int) -> None:
    rng, held, draws = np.random.default_rng(7), 0, 5_000
    values = rng.normal(size=(draws, units, 5))
    table = frame({str(unit): [0.0] * 5 for unit in range(units)})
    for each in values:
        table["value"] = each.ravel()
        held += any(one.verdict == "holds" for one in judge(table, ABOVE))
    assert held / draws <= 0.05
    assert held / draws == pytest.approx(LEVEL, abs=0.006)  # and it is no less than it claims


@pytest.mark.parametrize(
    ("values", "region", "expected"),
    [
        ([-0.5, 0.1, 0.9], (-inf, 1.0), "holds"),
        ([-0.5, 0.1, 1.0], (-inf, 1.0), "undecided"),
        ([0.9, 1.5, 2.0], (-inf, 1.0), "undecided"),
        ([1.0, 1.5, 2.0], (-inf, 1.0), "does not hold"),
        ([-2.0, 0.0, 2.0], WITHIN, "undecided"),  # both ends are outside, on different sides
        ([-0.5, 0.0, 0.5], WITHIN, "holds"),
    ],
)
def test_a_number_with_an_interval_of_its_own_is_decided_where_all_of_it_lies_on_one_side(
    values: list[float], region: tuple[float, float], expected: Verdict
) -> None:
    [one] = judge(frame({"a": values}, seed=-1), region)
    assert one.verdict == expected
    assert (one.mean, one.low, one.high, one.n) == (values[1], values[0], values[2], 1)
    assert isnan(one.needed)


def test_of_two_rivals_with_intervals_the_one_that_decides_is_shown() -> None:
    [one] = judge(rivals(-1, inside=[-0.9, -0.8, 0.9], across=[-0.5, 0.0, 1.5]), WITHIN)
    assert (one.verdict, one.against) == ("undecided", "across")
    [one] = judge(rivals(-1, across=[-0.5, 0.0, 1.5], further=[-1.7, 0.0, 0.5]), WITHIN)  # .7 outside, the other .5
    assert (one.verdict, one.against) == ("undecided", "further")
