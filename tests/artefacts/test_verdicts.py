"""Verdicts as a table: what is said of a claim in each scenario and in all, on numbers worked out by hand."""

from math import isnan
from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Entry
from tests.artefacts.factories import cells, judged, made, make_claim, make_entry

CLEAR = [9.9, 10.0, 10.1]
UP, DOWN, OPEN = [2.0, 3.0, 4.0], [-2.0, -3.0, -4.0], [1.0, 2.0, 3.0]


def entry_of(*claims: str, scenarios: tuple[str, ...] = ("a", "b")) -> Entry:
    entry = make_entry("verdicts")
    [scenario] = entry.scenarios
    several = tuple(scenario.model_copy(update={"name": name, "label": name.upper()}) for name in scenarios)
    stated = {name: make_claim(f"Claim {name}.", scenarios=[*scenarios]) for name in claims}
    return entry.model_copy(update={"claims": stated, "scenarios": several})


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
        ("bad", "a"): "undecided",  # p .0176, twice: Holm
        ("bad", "b"): "does not hold",
    }


def test_one_scenario_alone_needs_no_correction() -> None:
    entry = entry_of("up", "down", "open", scenarios=("a",))
    found = made(entry, judged({"up": {"a": UP}, "down": {"a": DOWN}, "open": {"a": OPEN}})).frame
    assert [row(found, name)["verdict"] for name in ("up", "down", "open")] == ["holds", "does not hold", "undecided"]
    assert row(found, "open", "a")["needed"] == row(found, "open")["needed"] == 4
    assert isnan(row(found, "up", "a")["needed"])
    assert (row(found, "up", "a")["mean"], row(found, "up", "a")["n"]) == (3.0, 3)
    turned = judged({"up": {"a": UP}}).assign(value=lambda rows: -rows["value"])
    assert row(made(entry_of("up", scenarios=("a",)), turned).frame, "up")["verdict"] == "does not hold"


def test_what_is_not_judged_has_its_reason_and_does_not_count() -> None:
    out = judged({"one": {"b": [float("nan")]}}, reason="digits in place of MNIST")
    result = made(entry_of("one"), pd.concat([judged({"one": {"a": UP}}), out], ignore_index=True))
    assert row(result.frame, "one")["verdict"] == row(result.frame, "one", "a")["verdict"] == "holds"
    assert row(result.frame, "one", "b")["verdict"] == "not judged"
    assert row(result.frame, "one", "b")["reason"] == "digits in place of MNIST"
    assert row(result.frame, "one")["reason"] == ""
    assert ["one", "B", "not judged (digits in place of MNIST)", "–", "–", "–", "–", "–"] in cells(result.body)
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
    assert ("The paper's own numbers contradict: one." in result.notes) == (overall != "holds")


def test_of_the_papers_rivals_the_nearest_is_shown() -> None:
    theirs = pd.concat(
        [judged({"one": {"a": [value]}}, published=True, against=name) for name, value in (("x", 3.0), ("y", -1.0))]
    )
    result = made(entry_of("one", scenarios=("a",)), pd.concat([judged({"one": {"a": UP}}), theirs], ignore_index=True))
    assert row(result.frame, "one", "a")["published_value"] == -1.0
    assert row(result.frame, "one", "a")["published"] == "does not hold"


def test_the_notes_count_claims_by_verdict() -> None:
    entry = entry_of("up", "down", "open", scenarios=("a",))
    notes = made(entry, judged({"up": {"a": UP}, "down": {"a": DOWN}, "open": {"a": OPEN}})).notes
    assert "Of 3 claims: 1 hold, 1 do not hold, 1 undecided, 0 not judged." in notes


def test_the_table_says_how_many_seeds_would_decide() -> None:
    body = made(entry_of("open", scenarios=("a",)), judged({"open": {"a": OPEN}})).body
    assert ["open", "A", "undecided", "2", "-0.484 to 4.48", "3", "4 seeds", "–"] in cells(body)
    far = made(entry_of("open", scenarios=("a",)), judged({"open": {"a": [-1.0, 0.001, 1.0]}})).body
    assert "more than 1,000" in far
