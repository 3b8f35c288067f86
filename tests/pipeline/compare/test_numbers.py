"""Which numbers differ, by how many standard deviations over seeds, the worst first: worked out by hand."""

from pathlib import Path

import pytest

from fu.pipeline.certificate import Certificate
from fu.pipeline.compare.numbers import Difference, Numbers, compared
from fu.pipeline.page.made import Artefact
from tests.pipeline.compare.runs import Row, csv

SHOWN = "scenario,metric,mean,std,n\n"


def seeds(*values: float, **row: object) -> list[Row]:
    """Return a row of each seed."""
    return [{"seed": seed, "value": value, **row} for seed, value in enumerate(values)]


def artefact(name: str, rows: list[Row], shown: str = SHOWN) -> Artefact:
    """Return an artefact of which there is what is compared."""
    path = Path(name)
    path.with_name(f"{name}.rows.csv").write_text(csv(rows))
    path.with_name(f"{name}.csv").write_text(shown)
    return Artefact(path, Certificate("", "publish", {}, "", {}, {}))


def numbers(a: list[Row], b: list[Row], shown: tuple[str, str] = (SHOWN, SHOWN), kind: str = "table") -> Numbers:
    return compared("toy_thing", kind, artefact("a", a, shown[0]), artefact("b", b, shown[1]))


def said(found: Numbers) -> list[str]:
    return [str(one) for one in found.differences]


def test_equal_numbers_do_not_differ_however_they_are_written_and_ordered() -> None:
    rows = seeds(0.1, 0.25, method="x") + seeds(3, method="y")
    again = [{**row, "value": f"{row['value']:.6f}"} for row in reversed(rows)]
    assert numbers(rows, again) == Numbers([], 3, 0, 0)


def test_a_difference_is_told_in_deviations_over_seeds_pooled_over_both_runs() -> None:
    """Seed 2 differs by .3; the variances over seeds are .01 and .07, whose mean is .2 squared."""
    found = numbers(seeds(0.1, 0.2, 0.3), seeds(0.1, 0.2, 0.6))
    assert said(found) == [
        "toy_thing  small, ours, recovered, asr, seed 2: 0.3 -> 0.6 (+0.3, 1.5 standard deviations over seeds)"
    ]
    assert found.differences[0].spread == pytest.approx(0.2)
    assert found[1:] == (3, 0, 0)


def test_of_a_cell_the_seed_that_differs_most_is_told() -> None:
    [found] = numbers(seeds(0.1, 0.3), seeds(0.2, 0.0)).differences
    assert (found.first, found.second, found.seeds) == ("0.3", "0.0", 2)
    assert found.spread == pytest.approx(((0.02 + 0.02) / 2) ** 0.5)  # .2 apart on both sides: variances of .02
    assert str(found).endswith(" (-0.3, 2.1 standard deviations over seeds; 2 seeds differ)")


def test_with_one_seed_the_difference_alone_is_told_and_with_equal_seeds_that_they_have_no_spread() -> None:
    [single] = said(numbers(seeds(0.5), seeds(0.25)))
    assert single.endswith(", seed 0: 0.5 -> 0.25 (-0.25)")
    [constant] = said(numbers(seeds(2, 2), seeds(2, 2) and seeds(3, 3)))
    assert constant.endswith(": 2 -> 3 (+1, no variation over seeds; 2 seeds differ)")
    [one_sided] = numbers(seeds(1, 3), [seeds(2)[0]]).differences[:1]
    assert one_sided.spread == pytest.approx(2**0.5)  # of the run that has two seeds


def test_the_worst_difference_ranks_first() -> None:
    """Missing numbers, then deviations, then those that have no spread, in proportion to the numbers."""
    a = seeds(1, 2, method="near") + seeds(1, 2, method="far") + seeds(1, method="lone") + seeds(100, method="large")
    b = seeds(1, 2.1, method="near") + seeds(1, 4, method="far") + seeds(2, method="lone") + seeds(110, method="large")
    found = sorted(numbers(a + seeds(1, method="gone"), b).differences, key=lambda one: one.rank, reverse=True)
    assert [one.cell.split(", ")[1] for one in found] == ["gone", "far", "near", "lone", "large"]
    assert (found[0].first, found[0].second) == ("1", "")
    assert str(found[0]).endswith(", seed 0: 1 -> none")


@pytest.mark.parametrize(
    ("first", "second", "share"), [("8", "2", 0.75), ("1", "5", 0.8), ("-4", "2", 1.5), ("1", "-5", 1.2)]
)
def test_without_a_spread_a_difference_ranks_by_its_share_of_the_larger_number(
    first: str, second: str, share: float
) -> None:
    has_spread, far = Difference("toy_thing", "cell", first, second).rank
    assert not has_spread
    assert far == pytest.approx(share)


def test_rows_that_differ_in_anything_else_are_other_cells() -> None:
    for column, (one, other) in {"client": (1, 2), "round": (0, 1), "point": ("a", "b"), "K": (2, 4)}.items():
        rows = [{"seed": 0, "value": 1, column: one}], [{"seed": 0, "value": 1, column: other}]
        assert len(numbers(*rows).differences) == 2
    two = numbers([*seeds(1), *seeds(1)], [*seeds(1), *seeds(2)])  # rows that nothing tells apart
    assert [(one.first, one.second) for one in two.differences] == [("1", "2")]


def test_measured_times_are_counted_apart() -> None:
    rows = seeds(1) + seeds(2.5, metric="seconds"), seeds(1) + seeds(3.5, metric="seconds")
    assert numbers(*rows) == Numbers([], 1, 1, 1)
    one = f"{SHOWN}small,ratio,1.5,,1\nsmall,steps,7,,1\n"
    shown = one, one.replace("1.5", "1.6")
    assert numbers(seeds(1), seeds(1), shown, "runtime") == Numbers([], 2, 2, 1)  # ratio and its n; steps
    assert said(numbers(seeds(1), seeds(1), shown)) == ["toy_thing  small, ratio, mean: 1.5 -> 1.6 (+0.1)"]
    costs = "method,cost,spent\nours,seconds,1.5\nours,stored,3\n"
    assert numbers([], [], (costs, costs.replace("1.5", "9"))) == Numbers([], 1, 1, 1)


@pytest.mark.parametrize(
    ("first", "second", "far"),
    [("0.5", "0.549", False), ("0.5", "0.56", True), ("40", "41.9", False), ("-40", "-43", True), ("1", "", True)],
)
def test_far_apart_is_a_twentieth_of_one_or_of_a_larger_number(first: str, second: str, far: bool) -> None:
    assert Difference("toy_thing", "cell", first, second).far == far


def test_the_share_of_numbers_that_are_far_apart_is_infinite_where_rows_are_others() -> None:
    one, two = f"{SHOWN}small,asr,0.5,,1\nsmall,r_acc,0.9,,1\n", f"{SHOWN}small,asr,0.4,,1\nsmall,r_acc,0.91,,1\n"
    assert numbers([], [], (one, two)).far == 1 / 2
    assert numbers([], [], (one, one)).far == 0
    assert numbers([], [], (one, SHOWN)).far == float("inf")


def test_where_the_rows_are_equal_what_is_shown_is_compared() -> None:
    shown = (
        f"{SHOWN}small,asr,0.5,0.1,3\nsmall,r_acc,0.9,0.2,1\n",
        f"{SHOWN}small,asr,0.3,0.1,3\nsmall,r_acc,0.9,0.2,2\n",
    )
    assert said(numbers(seeds(1), seeds(1), shown)) == [
        "toy_thing  small, asr, mean: 0.5 -> 0.3 (-0.2, 2 standard deviations over seeds)",
        "toy_thing  small, r_acc, n: 1 -> 2 (+1)",
    ]
    assert len(numbers(seeds(1), seeds(2), shown).differences) == 1  # which follows from the rows
    texts = "claim,scenario,verdict\nforgets,iid,holds\n", "claim,scenario,verdict\nforgets,iid,undecided\n"
    assert said(numbers([], [], texts)) == ["toy_thing  forgets, iid, verdict: holds -> undecided"]


def test_tables_of_other_rows_are_not_compared_place_by_place() -> None:
    one, two = f"{SHOWN}small,asr,0.5,,1\n", f"{SHOWN}small,r_acc,0.5,,1\n"
    assert said(numbers([], [], (one, two))) == ["toy_thing  row 1: small, asr -> small, r_acc"]
    [found] = said(numbers([], [], (one, f"{one}small,r_acc,0.5,,1\n")))
    assert found == (
        "toy_thing  table: 1 rows of scenario, metric, mean, std, n -> 2 rows of scenario, metric, mean, std, n"
    )
