"""All methods over clients by hand: five clients, two repeats of retraining, two methods and fine-tuning."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.artefacts.entry import Entry
from fu.artefacts.overall import BETTER, SIMILAR, UNDECIDED, UNLIKE, WORSE, better, similar
from fu.artefacts.result import Result
from fu.pipeline.provenance import catalogue
from tests.artefacts.factories import cells, made, make_entry, method_of, scenario_of

AGAINST = ("again.1", "again.2")
CLIENTS = range(5)
# Retraining's repeats are .02 below and above their mean, so s² = 5 (.02² + .02²) / 5 with 5 degrees of freedom.
MARGIN = 2.570582 * 0.0008**0.5 * 1.5**0.5
HALF = 5.597568 / 5**0.5  # t of 4 degrees of freedom at .05 / 10 differences, of five clients
REPEATS = {"asr": (0.10, 0.14), "r_acc": (0.80, 0.84)}
AWAY = {  # by client, from retraining
    "near": {"asr": (0.01, 0.02, 0.03, 0.02, 0.02), "r_acc": (0.0,) * 5},
    "far": {"asr": (0.28, 0.30, 0.32, 0.30, 0.30), "r_acc": (-0.30, -0.32, -0.28, -0.30, -0.30)},
    "tuned": {"asr": (0.45, 0.55, 0.50, 0.45, 0.55), "r_acc": (0.05, 0.15, 0.10, 0.05, 0.15)},
}
ROUNDS = {"near": 10.0, "far": 5.0, "tuned": 20.0}


def make_overall(*seeds: int, clients: int = len(CLIENTS)) -> Entry:
    """Return the table of them; every client is forgotten in a scenario of its own."""
    places = [f"each-client{client}" for client in range(clients)]
    methods = tuple(
        method_of(name, *places, retrains=name in AGAINST, plugin="fine_tuning" if name == "tuned" else name)
        for name in (*AWAY, *AGAINST)
    )
    laid = tuple(scenario_of(name, label=name, family="Each", at={"client": k}) for k, name in enumerate(places))
    known = catalogue.metrics()
    values: dict[str, Any] = {"scenarios": laid, "methods": methods, "against": list(AGAINST), "x": "client"}
    values |= {"metrics": tuple(known[name] for name in ("asr", "r_acc", "client_rounds")), "seeds": seeds or (0,)}
    return make_entry("overall").model_copy(update={**values, "lines": [], "chosen": {}})


def make_rows(*seeds: int) -> pd.DataFrame:
    """Return the frame; what all models of a seed share is .1 more with each seed, what tells seeds apart is .01."""
    rows: list[dict[str, Any]] = []
    for client in CLIENTS:
        for seed in seeds or (0,):
            about = {"scenario": f"each-client{client}", "seed": seed, "stage": "unlearned"}
            for metric, repeats in REPEATS.items():
                numbers = dict(zip(AGAINST, repeats, strict=True))
                numbers |= {name: sum(repeats) / 2 + away[metric][client] for name, away in AWAY.items()}
                rows += [
                    {**about, "method": name, "metric": metric, "value": value + 0.1 * seed}
                    for name, value in numbers.items()
                ]
            rows += [
                {**about, "method": name, "metric": "client_rounds", "value": value, "device": "toy"}
                for name, value in ROUNDS.items()
            ]
    return pd.DataFrame(rows).assign(published=False, round=-1, model="", client=None, trial=lambda it: it["method"])


def rows_of(result: Result, against: str) -> pd.DataFrame:
    frame = result.frame[result.frame["against"] == against]
    return frame.set_index(["method", "metric"])


def row_of(result: Result, method: str, metric: str) -> dict[str, Any]:
    """Return the difference of a method from retraining."""
    (row,) = rows_of(result, "retraining").loc[[(method, metric)]].to_dict("records")
    return {str(key): value for key, value in row.items()}


def test_a_difference_is_a_mean_over_clients_with_an_interval_over_them() -> None:
    result = made(make_overall(), make_rows())
    near, far = row_of(result, "near", "asr"), row_of(result, "far", "r_acc")
    assert (near["mean"], near["margin"]) == pytest.approx((0.02, MARGIN))
    half = HALF * 0.00005**0.5  # deviations .01, 0, .01, 0, 0
    assert (near["low"], near["high"]) == pytest.approx((0.02 - half, 0.02 + half), rel=1e-5)
    half = HALF * 0.0002**0.5
    assert (far["low"], far["mean"], far["high"]) == pytest.approx((-0.3 - half, -0.3, -0.3 + half), rel=1e-5)
    assert {near["clients"], far["clients"]} == {5}


def test_deviations_over_clients_stand_apart_from_those_over_seeds() -> None:
    alone = made(make_overall(), make_rows())
    assert row_of(alone, "near", "asr")["std_clients"] == pytest.approx(0.00005**0.5)
    assert np.isnan(row_of(alone, "near", "asr")["std_seeds"])
    frame = make_rows(0, 1)
    unlike = (frame["method"] == "near") & (frame["metric"] == "asr") & (frame["seed"] == 1)
    frame.loc[unlike, "value"] += 0.02  # of each client .01 below and above its mean
    both = made(make_overall(0, 1), frame)
    row = row_of(both, "near", "asr")
    assert (row["std_clients"], row["std_seeds"]) == pytest.approx((0.00005**0.5, 0.02 / 2**0.5))
    assert "0.007, 0.014" in both.body.split("## Each: deviation over clients, over seeds")[1].split("\n")[4]


def test_attack_success_rates_leave_out_runs_without_a_backdoor() -> None:
    """Of client 0 the first seed has none; the second is .01 further from retraining. Accuracies count both."""
    frame = make_rows(0, 1)
    changed = frame["scenario"].eq("each-client0") & frame["seed"].eq(1) & frame["method"].eq("near")
    frame.loc[changed, "value"] += 0.01
    originals = frame[frame["method"].eq("near") & frame["metric"].eq("asr")].assign(stage="original", value=0.5)
    originals.loc[originals["scenario"].eq("each-client0") & originals["seed"].eq(0), "value"] = 0.499
    result = made(make_overall(0, 1), pd.concat([frame, originals]))
    asr, accuracy = (row_of(result, "near", metric) for metric in ("asr", "r_acc"))
    assert (asr["runs"], asr["mean"]) == (9, pytest.approx((0.02 + 0.02 + 0.03 + 0.02 + 0.02) / 5))
    assert (accuracy["runs"], accuracy["mean"]) == (10, pytest.approx(0.005 / 5))
    assert rows_of(result, "fine-tuning").loc[("near", "asr"), "runs"] == 9
    assert "The backdoor took hold in 9 of 10 original models (ASR of 0.5 at least); attack" in result.body
    assert "took hold in" not in made(make_overall(0, 1), frame).body


def test_a_client_without_a_backdoor_is_not_replaced_by_others() -> None:
    frame = make_rows()
    originals = frame[frame["method"].eq("near") & frame["metric"].eq("asr")].assign(stage="original", value=0.9)
    originals.loc[originals["scenario"].eq("each-client0"), "value"] = 0.1
    far = row_of(made(make_overall(), pd.concat([frame, originals])), "far", "asr")
    assert (far["clients"], far["verdict"]) == (4, UNDECIDED)
    assert np.isnan(far["low"])


def test_verdicts() -> None:
    result = made(make_overall(), make_rows())
    found = rows_of(result, "retraining")["verdict"].to_dict()
    assert found == {
        ("near", "asr"): SIMILAR,
        ("near", "r_acc"): UNDECIDED,  # all clients are equal: no spread to judge by
        ("far", "asr"): UNLIKE,
        ("far", "r_acc"): UNLIKE,
        ("tuned", "asr"): UNLIKE,
        ("tuned", "r_acc"): UNDECIDED,
    }
    tuned = rows_of(result, "fine-tuning")
    assert tuned["verdict"].to_dict() == {
        ("near", "asr"): BETTER,
        ("near", "r_acc"): UNDECIDED,
        ("far", "asr"): BETTER,
        ("far", "r_acc"): WORSE,
    }
    assert tuned["mean"].tolist() == pytest.approx([-0.48, -0.2, -0.1, -0.4])
    assert tuned["margin"].isna().all()


NONE = float("nan")


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.1, 0.1, SIMILAR),
        (-0.11, 0.1, UNDECIDED),
        (-0.1, 0.11, UNDECIDED),
        (0.11, 0.2, UNLIKE),
        (-0.2, -0.11, UNLIKE),
        (0.01, 0.2, UNDECIDED),  # it excludes 0, but part of it is within the margin
        (NONE, NONE, UNDECIDED),
    ],
)
def test_an_interval_within_the_margin_is_like_retraining_and_one_outside_is_unlike(
    low: float, high: float, word: str
) -> None:
    assert similar(low, high, 0.1) == word


@pytest.mark.parametrize(
    ("low", "high", "sign", "word"),
    [
        (0.01, 0.2, 1, BETTER),
        (0.01, 0.2, -1, WORSE),
        (-0.2, -0.01, -1, BETTER),
        (-0.2, -0.01, 1, WORSE),
        (-0.2, 0.0, -1, UNDECIDED),
        (NONE, NONE, 1, UNDECIDED),
    ],
)
def test_an_interval_on_one_side_of_0_is_better_or_worse(low: float, high: float, sign: int, word: str) -> None:
    assert better(low, high, sign) == word


def test_seeds_are_compared_within_and_averaged_for_each_client() -> None:
    rows = make_rows(0, 1)
    rows.loc[(rows["method"] == "near") & (rows["metric"] == "asr"), "value"] += 0.01 * (2 * rows["seed"] - 1)
    one, two = (rows_of(made(make_overall(*s), f), "retraining") for s, f in (((0,), make_rows()), ((0, 1), rows)))
    for column in ("mean", "low", "high"):
        assert two[column].to_list() == pytest.approx(one[column].to_list(), nan_ok=True)
    assert set(two["runs"]) == {10}
    assert two["margin"].iloc[0] == pytest.approx(2.228139 * 0.0008**0.5 * 1.5**0.5)  # ten degrees of freedom


def test_panels_show_verdicts_the_front_of_costs_and_differences_with_their_intervals() -> None:
    first, retraining, tuned = made(make_overall(), make_rows()).body.split("## Each: difference")
    head, *lines = cells(first)
    assert head[1:5] == ["Like retraining in", "Unlike retraining in", "Better than fine-tuning in", "Worse in"]
    assert head[5:] == ["Client rounds", "× fine-tuning", "Seconds", "Grid"]
    assert lines == [
        ["Near", "ASR", "–", "**ASR**", "–", "**10**", "0.50", "–", "1"],
        ["Far", "–", "ASR, R-Acc", "**ASR**", "R-Acc", "**5**", "0.25", "–", "1"],
        ["Tuned", "–", "ASR", "–", "–", "20", "1.00", "–", "1"],
    ]
    rows = make_rows()
    rows.loc[(rows["method"] == "near") & (rows["metric"] == "client_rounds"), "value"] = 21
    assert cells(made(make_overall(), rows).body.split("## Each: difference")[0])[1][3] == "ASR"  # dearer than tuning
    near, far, _ = cells(retraining)[1:]
    assert (near, far[1]) == (["Near", "0.020 (0.002 to 0.038) ≈", "0.000"], "**0.300 (0.265 to 0.335)**")
    near, far = cells(tuned.split("## ")[0])[1:]
    assert near[1] == "**-0.480 (-0.600 to -0.360)**"
    assert far[2].endswith(" (worse)")


def test_a_client_of_whom_nothing_is_left_takes_the_verdict() -> None:
    rows = make_rows()
    gone = (rows["method"] == "near") & (rows["scenario"] == "each-client3")
    lost = rows[gone].head(1).assign(metric="diverged_round", value=1.0)
    result = made(make_overall(), pd.concat([rows[~gone], lost]))
    found = row_of(result, "near", "asr")
    assert (found["verdict"], found["clients"]) == (UNDECIDED, 4)
    assert found["mean"] == pytest.approx(0.02)
    assert "| Near (1 of 5 diverged)" in result.body
    assert "all of its runs diverged" in result.notes
    assert "all of its runs diverged" not in made(make_overall(), make_rows()).notes


def test_five_clients_of_six_give_no_verdict() -> None:
    found = row_of(made(make_overall(clients=6), make_rows()), "far", "asr")
    assert (found["verdict"], found["clients"]) == (UNDECIDED, 5)
    assert found["mean"] == pytest.approx(0.3)


def test_an_asr_far_below_retraining_s_is_as_far_as_one_above() -> None:
    rows = make_rows()
    rows.loc[(rows["method"] == "near") & (rows["metric"] == "asr"), "value"] -= 0.6
    near, far, _ = cells(made(make_overall(), rows).body.partition("difference from")[0])[1:]
    assert (near[5], far[5]) == ("10", "**5**")


def test_a_control_does_not_set_the_scale_of_the_picture() -> None:
    entry = make_overall()
    controls = tuple(one.model_copy(update={"control": True}) if one.name == "tuned" else one for one in entry.methods)
    asr, r_acc = made(entry.model_copy(update={"methods": controls}), make_rows()).figure.axes
    assert asr.get_xlim()[1] < 0.45 < made(entry, make_rows()).figure.axes[0].get_xlim()[1]
    marks = [[line.get_marker() for line in axis.lines[:3]] for axis in (asr, r_acc)]
    assert marks == [["o", "o", ">"], ["o", "o", ">"]]


def test_four_clients_are_too_few() -> None:
    entry = make_overall()
    fewer = entry.model_copy(update={"scenarios": entry.scenarios[:4]})
    found = rows_of(made(fewer, make_rows()), "retraining")
    assert found["low"].isna().all()
    assert set(found["verdict"]) == {UNDECIDED}


def test_without_fine_tuning_there_is_no_such_panel() -> None:
    entry = make_overall()
    methods = tuple(one for one in entry.methods if one.name != "tuned")
    result = made(entry.model_copy(update={"methods": methods}), make_rows())
    assert [label for label, _ in result.panels or ()] == [
        "Each: verdicts",
        "Each: difference from retraining",
        "Each: deviation over clients, over seeds",
    ]
    assert "fine-tuning" not in result.body


def test_the_note_says_how_settings_were_chosen_where_any_were() -> None:
    chosen = make_overall().model_copy(update={"rule": "the best on seed 0"})
    start = "number of settings from which each method's were chosen"
    assert f"{start}: the best on seed 0." in made(chosen, make_rows()).notes
    assert f"{start}." in made(make_overall().model_copy(update={"rule": ""}), make_rows()).notes
