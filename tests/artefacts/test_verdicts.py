"""Verdicts as a table: what is said of a claim in each scenario and in all, on numbers worked out by hand."""

from math import inf, isnan
from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Entry
from fu.pipeline.stages.evidence import ADDED
from tests.artefacts.factories import cells, judged, made, make_claim, make_entry

CLEAR = [9.9, 10.0, 10.1, 10.3, 9.8]
UP, DOWN, OPEN = ([mean + x for x in (-1.0, 2.0, -1.0, 1.0, -1.0)] for mean in (1.8, -1.8, 1.5))  # ± 1.756


def entry_of(*claims: str, scenarios: tuple[str, ...] = ("a", "b")) -> Entry:
    entry = make_entry("verdicts")
    [scenario] = entry.scenarios
    several = tuple(scenario.model_copy(update={"name": name, "label": name.upper()}) for name in scenarios)
    stated = {name: make_claim(f"Claim {name}.", scenarios=[*scenarios]) for name in claims}
    return entry.model_copy(update={"claims": stated, "scenarios": several, "seeds": (0, 1, 2, 3, 4)})


def row(frame: pd.DataFrame, claim: str, scenario: str = "") -> dict[str, Any]:
    [found] = frame[(frame["claim"] == claim) & (frame["scenario"] == scenario)].to_dict("records")
    return {str(key): value for key, value in found.items()}


def test_a_claim_has_a_verdict_in_each_scenario_and_in_all() -> None:
    entry = entry_of("good", "mixed", "bad")
    frame = judged(
        {"good": {"a": CLEAR, "b": UP}, "mixed": {"a": CLEAR, "b": OPEN}, "bad": {"a": UP, "b": [-x for x in CLEAR]}}
    )
    found = made(entry, frame).frame
    assert {(one.claim, one.scenario): one.verdict for one in found.itertuples()} == {
        ("good", ""): "holds",
        ("good", "a"): "holds",
        ("good", "b"): "holds",
        ("mixed", ""): "undecided",
        ("mixed", "a"): "holds",
        ("mixed", "b"): "undecided",
        ("bad", ""): "does not hold",
        ("bad", "a"): "undecided",  # p .0233, twice: Holm
        ("bad", "b"): "does not hold",
    }


def test_one_scenario_alone_needs_no_correction() -> None:
    entry = entry_of("up", "down", "open", scenarios=("a",))
    found = made(entry, judged({"up": {"a": UP}, "down": {"a": DOWN}, "open": {"a": OPEN}})).frame
    assert [row(found, name)["verdict"] for name in ("up", "down", "open")] == ["holds", "does not hold", "undecided"]
    for needed in ("needed", "needed_90"):
        assert row(found, "open", "a")[needed] == row(found, "open")[needed]
    assert 5 < row(found, "open")["needed"] < row(found, "open")["needed_90"]
    assert isnan(row(found, "up", "a")["needed"])
    assert (row(found, "up", "a")["mean"], row(found, "up", "a")["n"]) == (pytest.approx(1.8), 5)
    turned = judged({"up": {"a": UP}}).assign(value=lambda rows: -rows["value"])
    assert row(made(entry_of("up", scenarios=("a",)), turned).frame, "up")["verdict"] == "does not hold"


def test_what_is_not_judged_has_its_reason_and_does_not_count() -> None:
    out = judged({"one": {"b": [float("nan")]}}, reason="digits in place of MNIST")
    result = made(entry_of("one"), pd.concat([judged({"one": {"a": UP}}), out], ignore_index=True))
    assert row(result.frame, "one")["verdict"] == row(result.frame, "one", "a")["verdict"] == "holds"
    assert row(result.frame, "one", "b")["verdict"] == "not judged"
    assert row(result.frame, "one", "b")["reason"] == "digits in place of MNIST"
    assert row(result.frame, "one")["reason"] == ""
    assert ["one", "B", "not judged (digits in place of MNIST)", "–", "–", "–", "–", "–", "–"] in cells(result.body)
    assert row(result.frame, "one")["over"] == "1 of 2 scenarios"
    assert ["Claim one.", "Table 1", "**holds (over 1 of 2 scenarios)**"] in [line[:3] for line in cells(result.body)]
    alone = made(entry_of("one", scenarios=("b",)), out)
    assert row(alone.frame, "one")["verdict"] == "not judged"
    assert row(alone.frame, "one")["reason"] == "digits in place of MNIST"


@pytest.mark.parametrize(
    ("numbers", "each", "overall"),
    [((1.0, 2.0), ("holds", "holds"), "holds"), ((1.0, -2.0), ("holds", "does not hold"), "does not hold")],
)
def test_the_papers_own_numbers_are_judged_by_the_same_predicate(
    numbers: tuple[float, float], each: tuple[str, str], overall: str
) -> None:
    theirs = judged({"one": {"a": numbers[:1], "b": numbers[1:]}}, published=True)
    result = made(entry_of("one"), pd.concat([judged({"one": {"a": DOWN, "b": DOWN}}), theirs], ignore_index=True))
    assert tuple(row(result.frame, "one", name)["published"] for name in "ab") == each
    assert tuple(row(result.frame, "one", name)["published_value"] for name in "ab") == numbers
    assert row(result.frame, "one")["published"] == overall


def test_of_the_papers_rivals_the_nearest_is_shown() -> None:
    theirs = pd.concat(
        [judged({"one": {"a": [value]}}, published=True, against=name) for name, value in (("x", 3.0), ("y", -1.0))]
    )
    result = made(entry_of("one", scenarios=("a",)), pd.concat([judged({"one": {"a": UP}}), theirs], ignore_index=True))
    assert row(result.frame, "one", "a")["published_value"] == -1.0
    assert row(result.frame, "one", "a")["published"] == "does not hold"


def test_the_table_says_how_many_seeds_would_decide() -> None:
    result = made(entry_of("open", scenarios=("a",)), judged({"open": {"a": OPEN}}))
    half, most = (f"{row(result.frame, 'open')[name]:.0f}" for name in ("needed", "needed_90"))
    wanted = ["open", "A", "undecided", "1.5", "-0.256 to 3.26", "5", "45%", f"{half} seeds, {most} (90%)", "–"]
    assert wanted in cells(result.body)
    far = made(entry_of("open", scenarios=("a",)), judged({"open": {"a": [x - 1.499 for x in OPEN]}})).body
    assert "more than 1,000 seeds, more than 1,000 (90%)" in far


def test_over_all_scenarios_the_most_seeds_are_needed_and_the_fewest_there() -> None:
    entry = entry_of("one", scenarios=("a", "b", "c"))
    near = [x + 0.2 for x in OPEN]
    found = made(entry, judged({"one": {"a": near, "b": OPEN, "c": [*CLEAR, 10.4]}})).frame
    for needed in ("needed", "needed_90"):
        assert row(found, "one")[needed] == row(found, "one", "b")[needed] > row(found, "one", "a")[needed]
    assert row(found, "one")["n"] == 5
    unknown = made(entry, judged({"one": {"a": [1.0] * 5, "b": OPEN, "c": CLEAR}})).frame  # no spread
    assert isnan(row(unknown, "one")["needed"])


def test_it_is_said_over_how_many_rivals_and_seeds_a_verdict_is() -> None:
    entry = entry_of("one", scenarios=("a",)).model_copy(update={"seeds": (*range(7),)})
    params = {"of": {"method": "ours", "metric": "r_acc"}, "among": ["x", "y", "ours", "z"], "side": "above"}
    entry = entry.model_copy(update={"claims": {"one": make_claim("One.", kind="best", params=params)}})
    frame = pd.concat([judged({"one": {"a": CLEAR}}, against=name) for name in ("x", "z")], ignore_index=True)
    assert row(made(entry, frame).frame, "one", "a")["over"] == "2 of 3 rivals, 5 of 7 seeds"
    assert row(made(entry, frame).frame, "one")["over"] == "2 of 3 rivals, 5 of 7 seeds"
    whole = pd.concat([judged({"one": {"a": [*CLEAR, 9.7, 10.2]}}, against=name) for name in "xyz"], ignore_index=True)
    assert row(made(entry, whole).frame, "one", "a")["over"] == ""
    seedless = pd.concat([judged({"one": {"a": [9.7]}}, against=name) for name in "xyz"]).assign(seed=-1)
    assert row(made(entry, seedless).frame, "one")["over"] == ""


def test_it_is_said_over_how_many_scenarios_a_verdict_is() -> None:
    out = judged({"one": {"c": [float("nan")]}}, reason="no numbers")
    frame = pd.concat([judged({"one": {"a": CLEAR, "b": CLEAR}}), out], ignore_index=True)
    assert row(made(entry_of("one", scenarios=("a", "b", "c")), frame).frame, "one")["over"] == "2 of 3 scenarios"


def test_scenarios_of_the_paper_that_a_run_leaves_out_are_counted_and_added_ones_are_not() -> None:
    frame = judged({"one": {"a": CLEAR, "b": CLEAR}})
    entry = entry_of("one").model_copy(update={"stated": {"one": ("a", "b", "c", "d")}})
    assert row(made(entry, frame).frame, "one")["over"] == "2 of 4 scenarios"
    added = pd.concat([judged({"one": {"a": CLEAR}}), judged({"one": {"b": [float("nan")]}}, reason=ADDED)])
    for stated, over in (("a",), ""), (("a", "c"), "1 of 2 scenarios"):
        entry = entry_of("one").model_copy(update={"stated": {"one": stated}})
        assert row(made(entry, added.reset_index(drop=True)).frame, "one")["over"] == over
    assert row(made(entry, added[added["reason"] != ""].reset_index(drop=True)).frame, "one")["over"] == ""
    ours = {"one": make_claim("One.", place="our criterion", scenarios=["a", "b"])}  # judged wherever it is asked for
    entry = entry_of("one").model_copy(update={"claims": ours, "stated": {"one": ("a", "c", "d")}})
    assert row(made(entry, frame).frame, "one")["over"] == ""


def test_a_scenario_that_contradicts_the_claim_decides_it_alone() -> None:
    entry = entry_of("one", scenarios=("a", "b", "c"))
    against, near = [-x for x in OPEN], [x - 1.2 for x in OPEN]
    found = made(entry, judged({"one": {"a": against, "b": near, "c": CLEAR}})).frame
    for needed in ("needed", "needed_90"):
        assert row(found, "one")[needed] == row(found, "one", "a")[needed] < row(found, "one", "b")[needed]
    both = made(entry, judged({"one": {"a": against, "b": [-x for x in near], "c": CLEAR}})).frame
    assert row(both, "one")["needed"] == row(both, "one", "a")["needed"] < row(both, "one", "b")["needed"]


def test_infinite_numbers_are_counted_and_shown() -> None:
    result = made(entry_of("one", scenarios=("a",)), judged({"one": {"a": [2.0, inf, 3.0, 1.0, inf, 4.0]}}))
    said = "holds (infinite on 2 of 6 seeds, so a sign test of the median)"
    assert ["one", "A", said, "3.5", "1 to ∞", "6", "39%", "–", "–"] in cells(result.body)
    assert row(result.frame, "one", "a")["note"] in said


def test_a_tie_at_the_margin_of_equality_is_inside() -> None:
    theirs = judged({"one": {"a": [0.0]}}, published=True)
    frame = pd.concat([judged({"one": {"a": UP}}), theirs], ignore_index=True)
    for ties, said in ((True, "holds"), (False, "does not hold")):
        found = made(entry_of("one", scenarios=("a",)), frame.assign(ties=ties)).frame
        assert row(found, "one", "a")["published"] == said
