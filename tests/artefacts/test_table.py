"""A table: means and spreads over seeds, the paper's numbers beside them, bold, marks and rates."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from fu.artefacts.entry import Entry
from tests.artefacts.factories import CHOSEN, SEEDS, cells, diverge, made, make_entry, make_frame, make_trial, number

ROWS = {"original": "original", "scratch": "scratch", "ours": CHOSEN}  # method -> trial


def set_values(frame: pd.DataFrame, method: str, stage: str, metric: str, *values: float) -> pd.DataFrame:
    """Return the frame with these values of the seeds, or one for all."""
    here = (frame["method"] == method) & (frame["stage"] == stage) & (frame["metric"] == metric) & ~frame["published"]
    frame = frame.copy()
    frame.loc[here, "value"] = values * int(here.sum() / len(values))
    return frame


def test_means_and_spreads_are_those_over_seeds() -> None:
    found = made(make_entry("table")).frame
    metrics = ["asr", "r_acc", "r_acc_std"]  # the spread with its metric
    shown = [("original", "original"), ("scratch", "unlearned"), ("ours", "unlearned"), ("ours", "recovered")]
    rows = [(method, stage, metric) for method, stage in shown for metric in metrics]
    assert list(found[["method", "stage", "metric"]].itertuples(index=False, name=None)) == rows
    for row, (method, stage, metric) in zip(found.to_dict("records"), rows, strict=True):
        values = [number(ROWS[method], stage, metric, seed) for seed in SEEDS]
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert row["n"] == 2
        assert row["diverged"] == 0


def test_the_difference_is_ours_minus_the_papers_and_of_what_it_does_not_print_ours_stands_alone() -> None:
    entry = make_entry("table", published="checksum", metrics=("asr", "distance"))
    result = made(entry, make_frame(entry, {("ours", "recovered", "asr"): 0.25}))
    found = result.frame.set_index(["method", "stage", "metric"])
    mean = np.mean([number(CHOSEN, "recovered", "asr", seed) for seed in SEEDS])
    assert found["published"].dropna().to_dict() == {("ours", "recovered", "asr"): 0.25}
    assert found["difference"].dropna().to_dict() == {("ours", "recovered", "asr"): pytest.approx(mean - 0.25)}
    head, *lines = cells(result.body)
    assert head == ["Method", "Rate", "ASR", "ASR paper", "ASR diff", "Distance"]
    shown = {line[0]: line[3:] for line in lines}
    assert shown["Ours² *"][:2] == ["0.250", f"{mean - 0.25:+.3f}"]
    assert shown["ω⁰"][:2] == shown["Scratch"][:2] == ["–", "–"]
    assert "–" not in {line[5] for line in lines}
    assert "diff: ours minus paper." in result.body
    assert "diff" not in made(make_entry("table")).body


def test_a_table_says_which_rates_were_chosen_and_which_were_given() -> None:
    chosen = {"rule": "the best of all"}
    body = made(make_entry("table").model_copy(update=chosen)).body
    rates = {line[0]: line[1] for line in cells(body)}
    assert rates == {"Method": "Rate", "Scratch": "(0.3)", "Ours¹ *": "0.2", "Ours² *": "(0.05)", "ω⁰": "–"}
    assert f"in parentheses where it was fixed beforehand, else the best of a grid: {chosen['rule']}." in body
    assert chosen["rule"] not in made(make_entry("table", rates=(0.2,)).model_copy(update=chosen)).body


def test_a_rate_of_post_training_that_differs_between_trials_was_chosen_too() -> None:
    entry = make_entry("table")
    scratch, ours = entry.methods
    trials = [t.model_copy(update={"rate": None, "recovery_rate": t.rate}) for t in ours.trials["small"]]
    ours = ours.model_copy(update={"trials": {"small": tuple(trials)}})
    rates = {line[0]: line[1] for line in cells(made(entry.model_copy(update={"methods": (scratch, ours)})).body)}
    assert (rates["Ours¹ *"], rates["Ours² *"]) == ("–", "0.2")


# ---- bold ----------------------------------------------------------------------------------------------------------


def rivals(values: Mapping[str, tuple[float, ...]], spread: float = 0.001) -> tuple[Entry, pd.DataFrame]:
    """Return a table of `scratch` and three rivals, with these values of ASR, R-Acc and distance in both stages.

    One of the two seeds is so much lower, the other so much higher.
    """
    entry = make_entry("table", metrics=("asr", "r_acc", "distance"), rates=(0.2,))
    scratch, ours = entry.methods
    methods = [
        ours.model_copy(
            update={
                "name": name,
                "label": name.title(),
                "in_paper": True,
                "trials": {"small": (make_trial(0.2).model_copy(update={"name": name, "unlearned": name}),)},
            }
        )
        for name in values
        if name != "scratch"
    ]
    entry = entry.model_copy(update={"methods": (scratch, *methods)})
    frame = set_values(make_frame(entry), "original", "original", "asr", 0.98)
    for name, numbers in values.items():
        for stage in ("unlearned", "recovered") if name != "scratch" else ("unlearned",):
            for metric, value in zip(("asr", "r_acc", "distance"), numbers, strict=True):
                frame = set_values(frame, name, stage, metric, value - spread, value + spread)
    return entry, frame


def bold(entry: Entry, frame: pd.DataFrame) -> set[str]:
    """Return the bold cells after unlearning, `Method column`; those after post-training must be the same."""
    head, *lines = cells(made(entry, frame).body)
    found = {f"{line[0]} {name}" for line in lines for name, text in zip(head, line, strict=True) if "**" in text}
    stages = [{cell.replace(mark, "") for cell in found if mark in cell} for mark in ("¹", "²")]
    assert stages[0] == stages[1]
    assert len(stages[0] | stages[1]) * 2 == len(found)
    return stages[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a": (0.04, 0.7, 1), "b": (0.03, 0.6, 2), "c": (0.05, 0.5, 3)}, {"B ASR", "A R-Acc"}),
        ({"a": (0.061, 0.9, 1), "b": (0.06, 0.6, 2), "c": (0.05, 0.5, 3)}, {"C ASR", "B R-Acc"}),
        ({"a": (0.9, 0.9, 1), "b": (0.8, 0.8, 2), "c": (0.05, 0.5, 3)}, {"C ASR"}),
        ({"a": (0.9, 0.9, 1), "b": (0.8, 0.8, 2), "c": (0.7, 0.5, 3)}, {"C ASR"}),
        ({"a": (0.03, 0.7, 1), "b": (0.03, 0.7, 2), "c": (0.05, 0.5, 3)}, set()),
        ({"a": (0.03, 0.7, 1), "b": (0.03, 0.7, 1), "c": (0.03, 0.7, 1)}, set()),
        ({"a": (0.03, 0.70004, 1), "b": (0.03, 0.70001, 2), "c": (0.03, 0.7, 3)}, set()),
        ({"a": (0.0296, 0.7, 1), "b": (0.0359, 0.7, 2)}, {"A ASR"}),  # half-width: 4.303 * .001 * 2^.5 = .00608
        ({"a": (0.03049, 0.7, 1), "b": (0.03651, 0.7, 2)}, set()),
        ({"a": (0.03, 0.7, 1), "b": (0.9, 0.7, 2)}, {"A ASR"}),
        ({"a": (0.03, 0.7, 1)}, set()),
    ],
    ids=[
        "lowest ASR, highest R-Acc",
        "ASR up to .05 above retraining's",
        "one forgot",
        "nobody forgot",
        "two are best",
        "all equal",
        "equal as printed",
        "farther apart than printed",
        "nearer than printed",
        "equal, though one forgot",
        "alone",
    ],
)
def test_bold_is_the_best_of_those_that_forgot(values: dict[str, tuple[float, ...]], expected: set[str]) -> None:
    assert bold(*rivals({"scratch": (0.01, 0.95, 0), **values})) == expected


VALUES = {"scratch": (0.01, 0.95, 0.0), "a": (0.02, 0.9, 1.0), "b": (0.04, 0.6, 2.0), "c": (0.05, 0.5, 3.0)}


def test_one_seed_makes_nothing_bold() -> None:
    entry, frame = rivals(VALUES)
    alone = entry.model_copy(update={"seeds": (0,)})
    result = made(alone, frame[frame["seed"] == 0])
    assert "**" not in result.body
    assert "Bold" not in result.notes


# Two seeds each, .04 apart in ASR, .02 or less between the two of a method: t(2) = 4.303.
@pytest.mark.parametrize(("spread", "expected"), [(0, set()), (0.004, {"A ASR"}), (0.0065, {"A ASR"}), (0.0067, set())])
def test_bold_needs_a_spread_and_an_interval_that_excludes_the_runner_up(spread: float, expected: set[str]) -> None:
    assert bold(*rivals({"scratch": (0.01, 0.95, 0), "a": (0.02, 0.9, 1), "b": (0.06, 0.9, 2)}, spread)) == expected


def test_what_the_paper_lacks_and_what_retrains_is_not_bold() -> None:
    entry, frame = rivals(VALUES)
    scratch, a, b, c = entry.methods
    for change in ({"in_paper": False}, {"post_training": "own"}):
        assert bold(entry.model_copy(update={"methods": (scratch, a.model_copy(update=change), b, c)}), frame) == {
            "B ASR",
            "B R-Acc",
        }
    lacking = [method.model_copy(update={"in_paper": False}) for method in entry.methods]
    assert bold(entry.model_copy(update={"methods": tuple(lacking)}), frame) == set()
    ours = entry.model_copy(update={"methods": tuple(lacking), "in_paper": False})
    assert bold(ours, frame) == {"A * ASR", "A * R-Acc"}  # a table of ours has rivals of ours
    assert "Bold: the best of the paper's methods at each" in made(entry, frame).body
    assert "Bold: the best at each" in made(ours, frame).body


def test_the_note_names_who_is_not_bold_as_it_trains_for_all_rounds_itself() -> None:
    entry, frame = rivals(VALUES)
    scratch, *others, c = entry.methods
    own, none = c.model_copy(update={"post_training": "own"}), scratch.model_copy(update={"post_training": "none"})
    for methods, said in (
        ((scratch, *others, own), "methods and those that train for all rounds themselves (Scratch and C), where"),
        ((none, *others, c), "without diverged methods, where"),
    ):
        assert said in made(entry.model_copy(update={"methods": methods}), frame).body


def test_a_method_of_which_a_seed_diverged_is_not_bold() -> None:
    entry, frame = rivals(VALUES)
    assert bold(entry, diverge(frame, "a")) == {"B ASR", "B R-Acc"}


@pytest.mark.parametrize(("asr", "expected"), [(0.4996, {"A ASR", "A R-Acc"}), (0.499, set())])
def test_nothing_is_bold_where_there_was_little_to_forget(asr: float, expected: set[str]) -> None:
    entry, frame = rivals(VALUES)
    frame = set_values(frame, "original", "original", "asr", asr)
    assert bold(entry, frame) == expected
    result = made(entry, frame)
    assert ("Bold" in result.body) is bool(expected)
    assert set(result.frame["took_hold"]) == {bool(expected)}
    hidden = entry.model_copy(update={"metrics": entry.metrics[1:], "stages": ("unlearned", "recovered")})
    assert bold(hidden, frame) == expected - {"A ASR"}


def test_where_no_retrained_model_shows_who_forgot_no_accuracy_is_bold() -> None:
    entry, frame = rivals(VALUES)
    alone = entry.model_copy(update={"methods": entry.methods[1:]})
    assert bold(alone, frame) == {"A ASR"}
    blind = frame[frame["metric"] != "asr"]
    assert bold(entry, blind) == set()
    assert "Bold" not in made(entry, blind).body


def test_who_forgot_stands_in_the_numbers_also_where_asr_is_not_shown() -> None:
    entry, frame = rivals({**VALUES, "c": (0.0606, 0.5, 3)})
    hidden = entry.model_copy(update={"metrics": entry.metrics[1:]})
    found = made(hidden, frame).frame.groupby("method")["forgot"].agg(set).to_dict()
    assert found | {"original": None} == {"original": None, "scratch": {True}, "a": {True}, "b": {True}, "c": {False}}
    assert bold(hidden, frame) == {"A R-Acc"}
    lost = made(hidden, diverge(frame, "scratch")).frame  # its mean would be over other seeds than theirs
    assert set(lost["forgot"]) == {None}


@pytest.mark.parametrize(("values", "rates", "said"), [((0.1, 0.2), (0.2, 0.4), True), ((0.9, 0.8), (0.2, 0.4), False)])
def test_a_memorised_backdoor_is_told_where_rates_are_chosen(
    values: tuple[float, ...], rates: tuple[float, ...], said: bool
) -> None:
    for given, told in ((rates, said), (rates[:1], False)):
        entry = make_entry("table", rates=given)
        frame = set_values(make_frame(entry), "original", "original", "asr", 0.98)
        frame = set_values(frame, "original", "original", "asr_validation", *values)
        text = f"on the forgotten client's validation images the ASR of ω⁰ is only {sum(values) / 2:.3f}"
        assert (text in made(entry, frame).body) is told


# ---- marks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "distance", "mark"),
    [
        ((0.1,), (0.111,), (2, 1), "r"),
        ((0.1,), (0.11,), (2, 1), "↑"),
        ((0.1,), (0.3,), (1, 2), "↑"),
        ((0.1,), (0.3,), (1, 1), "↑"),
        ((0.3,), (0.1,), (2, 1), ""),
        ((0.1,), (0.1004,), (2, 1), ""),
        ((0.1, 0.1), (0.15, 0.3), (2, 1), "r"),  # rises .05 and .2: mean .125, deviation .106
        ((0.1, 0.1), (0.1, 0.3), (2, 1), "↑"),  # 0 and .2: .1, .141 (as of a population: .1)
        ((0.1, 0.1), (0.105, 0.295), (2, 1), "↑"),  # .005 and .195: .1, .134 (as of a population: .095)
        ((0.1, 0.5), (0.2, 0.61), (2, 1), "r"),  # .1 and .11: .105, .007; the ASR itself spreads by .29
        ((0.1, 0.1), (0.104, 0.105), (2, 1), "r"),  # .004 and .005: .0045, .0007
        ((0.1, 0.5), (0.3, 0.3), (2, 1), ""),
    ],
)
def test_r_is_a_rise_beyond_the_spread_of_a_model_that_comes_back(
    before: tuple[float, ...], after: tuple[float, ...], distance: tuple[float, float], mark: str
) -> None:
    entry = make_entry("table", seeds=tuple(range(len(before))))
    frame = make_frame(entry)
    for stage, asr, far in zip(("unlearned", "recovered"), (before, after), distance, strict=True):
        frame = set_values(frame, "ours", stage, "asr", *asr)
        frame = set_values(frame, "ours", stage, "distance", far)
    result = made(entry, frame)
    found = result.frame.set_index(["method", "stage", "metric"])["mark"]
    assert found[found != ""].to_dict() == ({("ours", "recovered", "asr"): mark} if mark else {})
    (shown,) = (line[2] for line in cells(result.body) if line[0] == "Ours² *")
    assert shown.replace("**", "").endswith(f" {mark}" if mark else shown[-1])
    assert not mark or mark in shown
    assert ("r: it rises by more than its standard deviation over seeds" in result.body) is bool(mark)


def test_a_model_whose_distance_is_unknown_has_no_r() -> None:
    entry = make_entry("table", seeds=(0,))
    frame = set_values(make_frame(entry), "ours", "unlearned", "asr", 0.1)
    frame = set_values(frame, "ours", "recovered", "asr", 0.9)
    found = made(entry, frame[frame["metric"] != "distance"]).frame
    assert set(found["mark"]) == {"", "↑"}


def test_the_papers_mark_stands_beside_its_asr() -> None:
    entry = make_entry("table", published="checksum")
    numbers = {("ours", "recovered", "asr"): 0.5, ("ours", "recovered", "reverts"): 1.0}
    result = made(entry, make_frame(entry, numbers))
    found = result.frame.set_index(["method", "stage", "metric"])["published_mark"]
    assert found[found != ""].to_dict() == {("ours", "recovered", "asr"): "r"}
    assert {line[0]: line[3] for line in cells(result.body)}["Ours² *"] == "0.500 r"
    own = make_frame(entry, numbers)
    own.loc[~own["published"] & (own["stage"] == "recovered"), "value"] = 0.0
    assert "rises by more than its standard deviation over seeds" in made(entry, own).notes


def test_in_parentheses_stands_the_mean_of_the_spread_and_the_papers() -> None:
    entry = make_entry("table", published="checksum", metrics=("r_acc",))
    numbers = {("scratch", "unlearned", "r_acc"): 0.76, ("scratch", "unlearned", "r_acc_std"): 0.228}
    frame = set_values(make_frame(entry, numbers), "ours", "recovered", "r_acc", 0.7, 0.9)
    frame = set_values(frame, "ours", "recovered", "r_acc_std", 0.2, 0.4)
    shown = {line[0]: line[2:4] for line in cells(made(entry, frame).body)}
    assert shown["Ours² *"][0] == "0.800 (0.300) ±0.141"
    assert shown["Scratch"][1] == "0.760 (0.228)"


# ---- replaced data -------------------------------------------------------------------------------------------------


def test_the_papers_numbers_are_not_shown_beside_those_of_other_data() -> None:
    entry = make_entry("table", published="checksum", metrics=("asr",), note="The paper contradicts itself.")
    frame = make_frame(entry, {("ours", "recovered", "asr"): 0.5, ("ours", "recovered", "reverts"): 1.0})
    (small,) = entry.scenarios
    other = small.model_copy(update={"name": "other", "label": "Other [on digits]", "replaces": "MNIST"})
    both = pd.concat([frame, frame.assign(scenario="other")], ignore_index=True)
    methods = tuple(m.model_copy(update={"trials": {**m.trials, "other": m.trials["small"]}}) for m in entry.methods)
    chosen = {"small": entry.chosen["small"], "other": entry.chosen["small"]}
    part = entry.model_copy(update={"scenarios": (small, other), "methods": methods, "chosen": chosen})
    why = "[on ...]: other data than the paper's, whose numbers are therefore not shown."
    result = made(part, both)
    found = result.frame.set_index(["scenario", "method", "stage"])
    assert found["published"].dropna().to_dict() == {("small", "ours", "recovered"): 0.5}
    assert (found["published_mark"] == "r").sum() == 1
    assert [line[3] for line in cells(result.body) if line[0] == "Ours² *"] == ["0.500 r", "–"]
    assert why in result.body
    assert "The paper contradicts itself." in result.body
    result = made(part.model_copy(update={"scenarios": (other,)}), both[both["scenario"] == "other"])
    assert cells(result.body)[0] == ["Method", "Rate", "ASR"]
    assert result.frame["published"].isna().all()
    assert why in result.body
    assert "contradicts" not in result.body


# ---- divergence ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one seed", "one seed of two"])
def test_a_table_says_how_many_seeds_diverged_and_when(seeds: tuple[int, ...]) -> None:
    entry = make_entry("table", seeds=seeds)
    result = made(entry, diverge(make_frame(entry)))
    ours = result.frame["method"] == "ours"
    assert set(result.frame[ours]["diverged"]) == {1}
    assert set(result.frame[ours]["diverged_round"]) == {3}
    assert set(result.frame[ours]["n"]) == {len(seeds) - 1}
    assert set(result.frame[~ours]["diverged"]) == {0}
    shown = {line[0]: line[2:] for line in cells(result.body)}["Ours¹ *"]
    if len(seeds) == 1:
        assert shown == ["diverged in 3", "–"]
    else:
        assert [text.endswith(", 1 diverged") for text in shown] == [True, False]
    assert "Diverged: the round, or the seeds that all means of the method leave out." in result.body


def test_where_all_seeds_diverged_the_first_round_is_named() -> None:
    entry = make_entry("table")
    frame = diverge(make_frame(entry), seeds=SEEDS)
    frame.loc[(frame["metric"] == "diverged_round") & (frame["seed"] == 1), "value"] = 2.0
    result = made(entry, frame)
    ours = result.frame[result.frame["method"] == "ours"]
    assert set(ours["diverged_round"]) == {2}
    assert set(ours["diverged"]) == {2}
    assert {line[0]: line[2:] for line in cells(result.body)}["Ours² *"] == ["diverged in 2", "–"]
