"""Gains of trainings: paired by seed, with the interval of their mean, beside the paper's numbers and marks."""

import csv
import re
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fu.artefacts.entry import Entry, Trial
from fu.artefacts.gains import better, by_seed
from fu.artefacts.result import Result
from fu.errors import UserError
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.digest import ROOT
from tests.artefacts.factories import COLUMNS, cells, made, make_entry, scenario_of, training_of, written

PLACES = {
    "n50-p2": {"p": 2, "n": 50},
    "n50-p1": {"p": 1, "n": 50},
    "n9-p2": {"p": 2, "n": 9},
    "n9-p1": {"p": 1, "n": 9},
}
LABELS = {"fedavg": "FedAvg", "server": "SGD", "safari": "SAFARI"}
Numbers = Mapping[str, Mapping[str, tuple[float | None, ...]]]  # scenario -> training -> accuracy of each seed

# Gains over FedAvg in points: 3, 5, 4 (mean 4, deviation 1); 4, 1, 1 (mean 2); 0, 1, -1 (mean 0); -10, -11, -12.
# Over the better of the two: of FedAvg as above; of SGD 1, 4, -2 (mean 1); of FedAvg; of SGD -20, -20, -20.
NUMBERS: Numbers = {
    "n50-p2": {"fedavg": (0.80, 0.82, 0.84), "server": (0.7, 0.7, 0.9), "safari": (0.83, 0.87, 0.88)},
    "n50-p1": {"fedavg": (0.50, 0.52, 0.54), "server": (0.53, 0.49, 0.57), "safari": (0.54, 0.53, 0.55)},
    "n9-p2": {"fedavg": (0.90, 0.90, 0.90), "server": (0.6, 0.6, 0.6), "safari": (0.90, 0.91, 0.89)},
    "n9-p1": {"fedavg": (0.40, 0.41, 0.42), "server": (0.5, 0.5, 0.5), "safari": (0.30, 0.30, 0.30)},
}
THEIRS = {("n50-p2", "gain"): 4.15, ("n50-p1", "gain"): 12.75, ("n9-p2", "within"): 2.0, ("n9-p1", "within"): 2.0}
HALF = 4.302653 / 3**0.5  # of an interval of three seeds whose deviation is 1: t of two degrees of freedom


def make_gains(numbers: Numbers = NUMBERS, **changes: Any) -> Entry:
    """Return a table of these scenarios: SAFARI, at a chosen point, against FedAvg and SGD."""
    points = {"safari+1": {"params.q": 0.1, "params.rate": 1.0}, "safari+2": {"params.q": 0.5, "params.rate": 4.6}}
    grid = tuple(Trial(name=name, rate=0.1, values=values, trained=name) for name, values in points.items())
    safari = training_of("safari", label="SAFARI", trials=dict.fromkeys(numbers, grid))
    values: dict[str, Any] = {
        "scenarios": tuple(
            scenario_of(name, label=name, rounds=(3, None), at=PLACES[name], original=None) for name in numbers
        ),
        "methods": (*(training_of(name, *numbers, label=LABELS[name]) for name in ("fedavg", "server")), safari),
        "seeds": (0, 1, 2),
        "published": "checksum",
        "against": ("fedavg", "server"),
        "chosen": {name: {"safari": "safari+2" if PLACES[name]["p"] == 1 else "safari+1"} for name in numbers},
        "rule": "the best of both",
    }
    return make_entry("gains", metrics=("accuracy_of_ten",), **{**values, **changes})


def frame_of(
    entry: Entry, numbers: Numbers = NUMBERS, theirs: Mapping[tuple[str, str], float] = THEIRS
) -> pd.DataFrame:
    """Return the frame of these numbers; None: the seed diverged. The last round's accuracy is .01 lower."""
    rows: list[dict[str, Any]] = []
    methods = {method.name: method for method in entry.methods}
    for scenario, found in numbers.items():
        for name, values in found.items():
            trial = entry.trial(scenario, methods[name])
            about = {"scenario": scenario, "method": name, "trial": trial.name, "stage": "original", "round": -1}
            for seed, value in zip(entry.seeds, values, strict=True):
                shown = (
                    {"diverged_round": 2.0} if value is None else {"accuracy_of_ten": value, "accuracy": value - 0.01}
                )
                rows += [{**about, "seed": seed, "metric": metric, "value": one} for metric, one in shown.items()]
    for (scenario, metric), value in theirs.items():
        about = {"scenario": scenario, "method": "safari", "stage": "original", "round": -1, "seed": -1}
        rows.append({**about, "metric": metric, "value": value, "published": True})
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["published"] = frame["published"].eq(True).astype(bool)
    return frame


def made_of(entry: Entry, numbers: Numbers = NUMBERS, theirs: Mapping[tuple[str, str], float] = THEIRS) -> Result:
    return made(entry, frame_of(entry, numbers, theirs))


def table(result: Result, panel: int) -> list[list[str]]:
    """Return the cells of a panel as they stand in Markdown."""
    return cells(re.split(r"^## ", result.body, flags=re.MULTILINE)[panel + 1])


def gains_of(result: Result, metric: str = "gain") -> pd.DataFrame:
    return result.frame[result.frame["metric"] == metric].set_index("scenario")


# ---- numbers -------------------------------------------------------------------------------------------------------


def test_a_gain_is_the_mean_of_the_differences_of_each_seed() -> None:
    found = gains_of(made_of(make_gains()))
    assert found["mean"].tolist() == pytest.approx([4, 2, 0, -11])
    assert found["std"].tolist() == pytest.approx([1, 3**0.5, 1, 1])
    assert set(found["seeds"]) == {3}
    assert set(found["against"]) == {"fedavg"}
    assert found["low"].tolist() == pytest.approx([4 - HALF, 2 - 3**0.5 * HALF, -HALF, -11 - HALF])
    assert found["high"].tolist() == pytest.approx([4 + HALF, 2 + 3**0.5 * HALF, HALF, -11 + HALF])


def test_the_better_one_is_that_of_the_higher_mean_and_still_paired() -> None:
    found = gains_of(made_of(make_gains()), "gain_over_better")
    assert found["against"].tolist() == ["fedavg", "server", "fedavg", "server"]
    assert found["mean"].tolist() == pytest.approx([4, 1, 0, -20])
    assert found["std"].tolist() == pytest.approx([1, 3, 1, 0])
    assert found["published"].isna().all()
    assert found["difference"].isna().all()


def test_the_better_one_is_judged_by_the_seeds_that_both_have() -> None:
    one, two = [0.5, 0.9, None], [0.6, None, 0.1]
    assert better(pd.DataFrame({"one": one, "two": two}, dtype=float)) == "two"
    assert better(pd.DataFrame({"one": [0.5, None], "two": [None, 0.6]}, dtype=float)) == "two"
    assert better(pd.DataFrame({"one": [None, None], "two": [None, 0.1]}, dtype=float)) == "two"
    assert better(pd.DataFrame({"one": [None], "two": [None]}, dtype=float)) == "one"


def test_the_csv_has_the_accuracies_the_last_round_s_and_what_was_chosen() -> None:
    found = made_of(make_gains()).frame
    assert list(found.columns[:3]) == ["scenario", "p", "n"]
    scores = found.set_index(["scenario", "method", "metric"])["mean"]
    assert scores["n50-p2", "safari", "accuracy_of_ten"] == pytest.approx(0.86)
    assert scores["n50-p2", "fedavg", "accuracy_of_ten"] == pytest.approx(0.82)
    assert scores["n50-p2", "server", "accuracy"] == pytest.approx(0.77 - 0.01 - 1 / 300)
    chosen = found[found["method"] == "safari"].groupby("scenario")["params.q"].agg(set).to_dict()
    assert chosen == {"n50-p2": {0.1}, "n50-p1": {0.5}, "n9-p2": {0.1}, "n9-p1": {0.5}}
    assert found[found["method"] != "safari"]["params.q"].isna().all()
    places = found.groupby("scenario")[["p", "n"]].first().to_dict("index")
    assert places == PLACES


# ---- cells ---------------------------------------------------------------------------------------------------------


def test_rows_are_lines_and_columns_are_x_in_the_order_of_the_scenarios() -> None:
    result = made_of(make_gains())
    assert result.panels
    assert [label for label, _ in result.panels] == [
        "Gain over FedAvg, percentage points",
        "Gain over the better of FedAvg and SGD, percentage points",
        "Accuracy over ten rounds",
    ]
    assert table(result, 0) == [
        ["n", "Training", "p = 2", "p = 2 paper", "p = 2 diff", "p = 1", "p = 1 paper", "p = 1 diff"],
        ["50", "SAFARI", "–", "4.15", "-0.15", "–", "12.75", "-10.75"],  # 4 ± 2.48 reaches below 2
        ["9", "SAFARI", "–", "–", "", "-11.00", "–", ""],
    ]
    assert table(result, 1) == [
        ["n", "Training", "p = 2", "p = 2 over", "p = 1", "p = 1 over"],
        ["50", "SAFARI", "–", "FedAvg", "–", "SGD"],
        ["9", "SAFARI", "–", "FedAvg", "-20.00", "SGD"],
    ]


def test_accuracies_stand_beside_what_was_chosen() -> None:
    head, first, second, third, *_ = table(made_of(make_gains()), 2)
    assert head == ["n", "Training", *(f"p = {p} {name}" for p in (2, 1) for name in ("mean", "q", "rate"))]
    assert first == ["50", "FedAvg", "0.820 ±0.020", "–", "–", "0.520 ±0.020", "–", "–"]
    assert second == ["50", "SGD", "0.767 ±0.115", "–", "–", "0.530 ±0.040", "–", "–"]
    assert third == ["50", "SAFARI", "0.860 ±0.026", "0.1", "1", "0.540 ±0.010", "0.5", "4.6"]


@pytest.mark.parametrize(
    ("gains", "shown"),
    [
        ((3, 3, 3), "3.00"),
        ((2.1, 2.1, 2.1), "2.10"),
        ((2, 2, 2), "–"),
        ((0, 0, 0), "–"),
        ((-2, -2, -2), "–"),
        ((-2.1, -2.1, -2.1), "-2.10"),
        ((3, 5, 4), "–"),  # 4 ± 2.484 begins at 1.52
        ((3.5, 5.5, 4.5), "4.50"),  # begins at 2.016; of a normal distribution (1.96) also 4 ± 1.13 would
        ((-3.4, -5.4, -4.4), "–"),
        ((-3.5, -5.5, -4.5), "-4.50"),
        ((-30, 30, 30), "–"),
    ],
)
def test_a_gain_whose_interval_reaches_into_the_error_bar_is_a_dash(gains: tuple[float, ...], shown: str) -> None:
    base = (0.4, 0.5, 0.6)
    ours = tuple(round(value + gain / 100, 6) for value, gain in zip(base, gains, strict=True))
    numbers = {"n50-p2": {"fedavg": base, "server": (0.1, 0.1, 0.1), "safari": ours}}
    result = made_of(make_gains(numbers), numbers, {})
    assert table(result, 0)[1][2] == table(result, 1)[1][2] == shown
    assert gains_of(result)["mean"].tolist() == pytest.approx([sum(gains) / 3])
    assert "[−2, 2] points" in result.notes


def test_a_gain_of_two_points_does_not_exceed_them_by_an_error_of_rounding() -> None:
    numbers = {"n50-p2": {"fedavg": (0.5,) * 3, "server": (0.1,) * 3, "safari": (0.52,) * 3}}
    assert 100 * (0.52 - 0.5) > 2
    assert table(made_of(make_gains(numbers), numbers, {}), 0)[1][2] == "–"


def test_of_one_seed_the_number_stands_without_a_mark() -> None:
    numbers = {name: {method: values[:1] for method, values in found.items()} for name, found in NUMBERS.items()}
    result = made_of(make_gains(numbers, seeds=(0,)), numbers)
    assert [line[2::3] for line in table(result, 0)[1:]] == [["3.00", "4.00"], ["0.00", "-10.00"]]
    found = gains_of(result)
    assert found["low"].isna().all()
    assert set(found["seeds"]) == {1}
    assert found["beyond"].tolist() == [1, 1, 0, -1]


def test_claims_count_a_diverged_training_as_infinitely_bad_and_its_rival_as_the_table_names_it() -> None:
    # FedAvg is the better one on the seeds that both have, though it diverged on others.
    accuracy = {"fedavg": (None, 0.8, None, 0.8, 0.9), "server": (0.6, 0.7, 0.7, 0.75, 0.5)}
    numbers: Numbers = {"n50-p2": {**accuracy, "safari": (0.8, None, None, 0.83, 0.88)}}
    entry = make_gains(numbers, seeds=(0, 1, 2, 3, 4))
    found = by_seed(frame_of(entry, numbers, {}), entry).set_index(["metric", "seed"])["value"]
    expected = {0: inf, 1: -inf, 3: 3, 4: -2}  # in seed 2 both diverged
    assert found["gain"].to_dict() == pytest.approx(expected)
    assert found["gain_over_better"].to_dict() == pytest.approx(expected)


def test_a_seed_in_which_either_diverged_is_left_out_of_the_pair() -> None:
    numbers: Numbers = {
        "n50-p2": {"fedavg": (0.5, None, 0.5), "server": (0.1, 0.2, 0.3), "safari": (0.6, 0.9, 0.6)},
        "n50-p1": {"fedavg": (0.5, 0.5, 0.5), "server": (None, None, None), "safari": (None, 0.6, None)},
        "n9-p2": {"fedavg": (None, 0.5, 0.5), "server": (0.6, 0.6, 0.6), "safari": (0.6, None, None)},
    }
    result = made_of(make_gains(numbers), numbers, {})
    assert [line[2::3] for line in table(result, 0)[1:]] == [
        ["10.00, 1 diverged", "10.00, 2 diverged"],
        ["diverged", ""],
    ]
    found = gains_of(result)
    assert found["seeds"].tolist() == [2, 1, 0]
    assert found["diverged"].tolist() == [1, 2, 3]
    scores = {(line[0], line[1]): line[2::3] for line in table(result, 2)[1:]}
    assert scores["50", "FedAvg"] == ["0.500 ±0.000, 1 diverged", "0.500 ±0.000"]
    assert scores["50", "SGD"] == ["0.200 ±0.100", "diverged"]
    assert "Diverged: seeds left out, of a gain those in which either model diverged." in result.notes
    assert "Diverged" not in made_of(make_gains()).notes


# ---- the paper's numbers -------------------------------------------------------------------------------------------


def test_the_difference_is_ours_minus_the_papers_and_none_of_a_dash() -> None:
    found = gains_of(made_of(make_gains()))
    quote = "– in the paper: “no statistical difference within 2% error bar”."
    assert found["published"].dropna().to_dict() == {"n50-p2": 4.15, "n50-p1": 12.75}
    assert found["published_within"].dropna().to_dict() == {"n9-p2": 2, "n9-p1": 2}
    assert quote in made_of(make_gains()).notes
    assert quote not in made_of(make_gains(), theirs={}).notes
    assert found["difference"].dropna().to_dict() == pytest.approx({"n50-p2": -0.15, "n50-p1": -10.75})


def test_of_other_data_than_the_papers_its_numbers_are_not_shown() -> None:
    entry = make_gains()
    replaced = tuple(scenario.model_copy(update={"replaces": "MNIST"}) for scenario in entry.scenarios)
    result = made_of(make_gains(scenarios=replaced))
    assert table(result, 0)[0] == ["n", "Training", "p = 2", "p = 1"]
    assert result.frame["published"].isna().all()
    assert result.frame["published_within"].isna().all()
    assert "[on ...]: other data than the paper's, whose numbers are therefore not shown." in result.notes


def test_a_place_without_a_scenario_is_empty_and_keeps_its_column() -> None:
    entry = make_gains()
    holed = entry.model_copy(update={"scenarios": (*entry.scenarios[2:], entry.scenarios[1])})  # no p = 2 at n = 50
    head, first, second = table(made_of(holed), 0)
    assert head[2::3] == ["p = 2", "p = 1"]
    assert (first[0], first[2:5]) == ("9", ["–", "–", ""])
    assert second == ["50", "SAFARI", "", "", "", "–", "12.75", "-10.75"]


@pytest.mark.parametrize("number", [1, 2])
def test_the_published_gains_are_those_of_the_paper(number: int) -> None:
    path = ROOT / f"workflow/published/safari/table{number}.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sizes, first = {1: ((50, 100, 500, 1000), "mnist"), 2: ((500, 5000, 10000), "cifar10")}[number]
    names = [f"{first}-server-p{p}-s4-n{n}" for n in sizes for p in (10, 5, 2, 1)]
    assert [row["scenario"] for row in rows] == names
    assert {(row["method"], row["stage"]) for row in rows} == {("safari", "original")}
    assert {row["metric"] for row in rows} == set(catalogue.declared("artefacts", "gains")["PUBLISHED"]["metrics"])
    values = [row["value"] for row in rows if row["metric"] == "gain"]
    printed = {
        1: "4.15 12.75 6.55 22.19 10.29 29.12 10.88 31.42",
        2: "7.08 17.62 9.16 22.65",
    }
    assert values == printed[number].split()
    assert {row["value"] for row in rows if row["metric"] == "within"} == {"2"}


def test_against_one_training_there_is_no_better_one() -> None:
    entry = make_gains(against=("fedavg",))
    result = made_of(entry)
    assert result.panels
    assert len(result.panels) == 2
    assert [line[1] for line in table(result, 0)[1:]] == ["SGD", "SAFARI"] * 2
    assert "gain_over_better" not in set(result.frame["metric"])
    assert "over: the one" not in result.notes


# ---- refused, and written ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [{"p": 2}, {"n": 50}, PLACES["n50-p2"]], ids=["no line", "no x", "twice"])
def test_scenarios_that_share_a_place_or_lack_one_are_refused(at: dict[str, float]) -> None:
    entry = make_gains()
    first, second, *others = entry.scenarios
    moved = (first, second.model_copy(update={"at": at}), *others)
    with pytest.raises(UserError, match="thing: every scenario needs n and p of its own; 'n50-p1' lacks them"):
        made_of(entry.model_copy(update={"scenarios": moved}))


def test_a_coordinate_of_zero_is_a_place() -> None:
    entry = make_gains()
    lower = [{"p": PLACES[s.name]["p"] - 1, "n": PLACES[s.name]["n"] - 9} for s in entry.scenarios]
    moved = tuple(s.model_copy(update={"at": at}) for s, at in zip(entry.scenarios, lower, strict=True))
    head, first, second = table(made_of(entry.model_copy(update={"scenarios": moved})), 0)
    assert (head[2::3], first[0], second[0]) == (["p = 1", "p = 0"], "41", "0")


@pytest.mark.parametrize("metric", ["asr", "distance", "steps"])
def test_a_metric_that_has_no_gain_in_points_is_refused(metric: str) -> None:
    entry = make_entry("gains", metrics=(metric,))
    with pytest.raises(
        UserError, match=f"thing: gains need a fraction that is better when higher; {metric} is not one."
    ):
        made(entry)


def test_every_panel_has_a_float_of_its_own(tmp_path: Path) -> None:
    entry = make_gains()
    _, _, _, tex = written(made_of(entry), entry, tmp_path)
    labels = re.findall(r"\\label\{(.*)\}", tex.read_text())
    assert labels == [f"tab:toy-thing-{name}" for name in ("gain", "gain_over_better", "accuracy_of_ten")]
