"""What is said below a figure: where there was no backdoor, at which rates methods stand, what marks and bands are."""

import pandas as pd
import pytest

from fu.artefacts import notes
from fu.artefacts.entry import Entry, Method, Scenario, Trial
from tests.artefacts.factories import made, make_across, make_entry, make_frame, method_of, scenario_of

SAYS_LITTLE = "so what is shown there says little about forgetting."


SCENARIOS = tuple(map(scenario_of, ("one", "two", "three")))


def method_with(label: str, rates: dict[str, float], after: float | None = None, **values: float) -> Method:
    """Return a method with one trial in each of these scenarios."""
    trials = {
        scenario: (Trial(name=label, rate=rate, recovery_rate=after, values={"unlearning.lr": rate, **values}),)
        for scenario, rate in rates.items()
    }
    return method_of(label, trials=trials, post_training="after")


def entry_of(*methods: Method, scenarios: tuple[Scenario, ...] = SCENARIOS[:2]) -> Entry:
    return make_entry("curves", scenarios=scenarios, methods=methods, chosen={})


@pytest.mark.parametrize(
    ("asr", "said"),
    [
        ({"one": 0.5, "two": 0.9, "three": 1.0}, ""),
        ({"two": 0.9}, ""),
        ({"one": 0.214, "two": 0.5}, f"The backdoor hardly took hold in One (ASR of ω⁰: 0.214), {SAYS_LITTLE}"),
        (
            {"one": 0.499, "two": 0.0, "three": 0.1},
            f"The backdoor hardly took hold in One (ASR of ω⁰: 0.499), Two (0.000) and Three (0.100), {SAYS_LITTLE}",
        ),
    ],
)
def test_scenarios_without_a_backdoor_are_told(asr: dict[str, float], said: str) -> None:
    entry = make_entry("curves", scenarios=SCENARIOS)
    assert notes.no_backdoor(entry, asr) == said
    assert notes.no_backdoor(make_entry("curves", scenarios=SCENARIOS, metrics=("r_acc",)), asr) == ""


def test_the_original_model_s_asr_is_its_mean_over_seeds_in_each_scenario() -> None:
    rows = [("one", "original", "asr", 0.25), ("one", "original", "asr", 0.75), ("two", "original", "asr", 0.125)]
    rows += [("one", "original", "r_acc", 1.0), ("two", "unlearned", "asr", 1.0)]
    frame = pd.DataFrame(rows, columns=["scenario", "stage", "metric", "value"])
    assert notes.original_asr(frame) == {"one": 0.5, "two": 0.125}


def test_rates_are_told_method_by_method() -> None:
    entry = entry_of(method_with("A", {"one": 0.005, "two": 0.005}), method_with("B", {"one": 0.1, "two": 0.1}))
    assert notes.rates(entry) == "Unlearning rates: A 0.005; B 0.1."


def test_rates_are_told_by_scenario_where_they_differ() -> None:
    rates = {"one": 0.005, "two": 0.1, "three": 0.005}
    entry = entry_of(method_with("A", rates), method_with("B", dict.fromkeys(rates, 0.1)), scenarios=SCENARIOS)
    assert notes.rates(entry) == "Unlearning rates in One and Three: A 0.005; B 0.1. Unlearning rate in Two: 0.1."


def test_what_else_a_grid_sets_stands_behind_the_rate() -> None:
    rates = {"one": 0.0005, "two": 0.0005}
    entry = entry_of(method_with("A", rates, **{"params.clip": 1, "params.lambda": 100, "params.new": 2}))
    assert notes.rates(entry) == "Unlearning rate: 0.0005 (gradient clip 1, λ 100, new 2)."
    assert notes.rates(entry, "params.lambda") == "Unlearning rate: 0.0005 (gradient clip 1, new 2)."
    assert notes.rates(entry, "unlearning.lr") == ""


def test_a_method_in_which_nobody_trains_has_no_unlearning_rate() -> None:
    rates = {"one": 0.1, "two": 0.1}
    nobody = method_with("B", rates, 0.02)
    trials = {
        name: (trial.model_copy(update={"rate": None, "values": {}}),) for name, (trial,) in nobody.trials.items()
    }
    nobody = nobody.model_copy(update={"trials": trials})
    assert (
        notes.rates(entry_of(method_with("A", rates), nobody))
        == "Unlearning rates: A 0.1; B – (post-training rate 0.02)."
    )
    assert notes.rates(entry_of(method_with("A", rates), nobody), "recovery.lr") == "Unlearning rates: A 0.1."
    assert notes.rates(entry_of(nobody), "recovery.lr") == ""


def test_the_rate_is_that_of_the_trial_that_is_shown() -> None:
    assert (
        notes.rates(make_entry("curves")) == "Unlearning rates: Scratch 0.3; Ours 0.2 (post-training rate 0.05)."
    )  # chosen of .1, .2, .4


def test_marks_are_explained_where_they_are_shown() -> None:
    plain = method_with("A", {"one": 0.1})
    star, data = "* not in the paper.", "[on ...]: other data than the paper's"
    other = (scenario_of("one", label="One [on digits]", replaces="MNIST"),)
    assert notes.joined(entry_of(plain), "One.", "", "Two.") == "One. Two."
    assert notes.joined(entry_of(plain.model_copy(update={"in_paper": False}))) == star
    assert notes.joined(entry_of(plain.model_copy(update={"in_paper": False})), star, "Two.") == f"{star} Two."
    assert notes.joined(entry_of(plain, scenarios=(scenario_of("one", label="One, MLP *"),))) == star
    assert notes.joined(entry_of(plain, scenarios=other)) == f"{data}."
    unseen = entry_of(plain, scenarios=other).model_copy(update={"published": "checksum"})
    assert notes.joined(unseen, "One.") == f"One. {data}, whose numbers are therefore not shown."


@pytest.mark.parametrize("entry", [make_entry("table", marks="bars"), make_across()], ids=["bars", "across"])
def test_a_backdoor_that_hardly_took_hold_is_told(entry: Entry) -> None:
    frame = make_frame(entry)
    frame.loc[frame["metric"] == "asr", "value"] = 0.75
    frame.loc[(frame["metric"] == "asr") & (frame["stage"] == "original"), "value"] = 0.25
    assert "The backdoor hardly took hold in Small (ASR of ω⁰: 0.250)" in made(entry, frame).notes
