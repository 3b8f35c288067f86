"""A table: means and spreads over seeds, the paper's numbers beside them, bold, marks and rates."""

import numpy as np
import pandas as pd
import pytest

from fu.artefacts.entry import Entry
from fu.evaluation.selection import RULE
from tests.artefacts.factories import CHOSEN, SEEDS, cells, diverge, made, make_entry, make_frame, number

ROWS = {"original": "original", "scratch": "scratch", "ours": CHOSEN}  # method -> trial


def set_value(frame: pd.DataFrame, method: str, stage: str, metric: str, value: float) -> pd.DataFrame:
    here = (frame["method"] == method) & (frame["stage"] == stage) & (frame["metric"] == metric)
    assert here.sum() == len(SEEDS)
    return frame.assign(value=frame["value"].mask(here, value))


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


def test_the_difference_is_ours_minus_the_papers() -> None:
    entry = make_entry("table", published="checksum", metrics=("asr", "distance"))
    frame = make_frame(entry, {("ours", "recovered", "asr"): 0.25, ("scratch", "unlearned", "distance"): 0.5})
    result = made(entry, frame)
    found = result.frame.set_index(["method", "stage", "metric"])
    mean = np.mean([number(CHOSEN, "recovered", "asr", seed) for seed in SEEDS])
    assert found["published"].dropna().to_dict() == {
        ("ours", "recovered", "asr"): 0.25,
        ("scratch", "unlearned", "distance"): 0.5,
    }
    assert found.loc[("ours", "recovered", "asr"), "difference"] == pytest.approx(mean - 0.25)
    assert found["difference"].notna().sum() == 2
    head, *lines = cells(result.body)
    assert head == [
        "Method",
        "rate",
        *("ASR", "ASR paper", "ASR diff"),
        *("Distance", "Distance paper", "Distance diff"),
    ]
    shown = {line[0]: line[3:5] for line in lines}
    assert shown["Ours² *"] == ["0.250", f"{mean - 0.25:+.3f}"]
    assert shown["ω⁰"] == shown["Scratch"] == ["–", "–"]
    assert "Difference: ours minus paper." in result.body
    assert "Difference" not in made(make_entry("table")).body


def test_a_published_spread_stands_in_parentheses() -> None:
    entry = make_entry("table", published="checksum", metrics=("r_acc",))
    numbers = {("scratch", "unlearned", "r_acc"): 0.76, ("scratch", "unlearned", "r_acc_std"): 0.228}
    shown = {line[0]: line[3] for line in cells(made(entry, make_frame(entry, numbers)).body)}
    assert shown["Scratch"] == "0.760 (0.228)"


def test_a_table_says_which_rates_were_chosen_and_which_were_given() -> None:
    body = made(make_entry("table")).body
    rates = {line[0]: line[1] for line in cells(body)}
    assert rates == {"Method": "rate", "Scratch": "(0.3)", "Ours¹ *": "0.2", "Ours² *": "0.2", "ω⁰": "–"}
    assert f"the rule: {RULE}." in body
    assert RULE not in made(make_entry("table", rates=(0.2,))).body


def test_the_best_of_the_papers_methods_is_bold_in_its_direction_and_retraining_is_apart() -> None:
    entry = make_entry("table", metrics=("asr", "r_acc", "distance"), rates=(0.2,))
    scratch, ours = entry.methods
    paper = ours.model_copy(update={"in_paper": True})
    rival = paper.model_copy(update={"name": "rival", "label": "Rival"})
    entry = entry.model_copy(update={"methods": (scratch, paper, rival)})
    frame = make_frame(entry)
    worse = {"asr": 0.4, "r_acc": 0.6, "distance": 1.0}
    better = {"asr": 0.3, "r_acc": 0.7, "distance": 0.5}
    best = {"asr": 0.1, "r_acc": 0.9, "distance": 0.1}
    for metric in worse:
        for stage in ("unlearned", "recovered"):
            frame = set_value(frame, "ours", stage, metric, (better if metric != "asr" else worse)[metric])
            frame = set_value(frame, "rival", stage, metric, (worse if metric != "asr" else better)[metric])
        frame = set_value(frame, "scratch", "unlearned", metric, best[metric])

    def bold(frame: pd.DataFrame, entry: Entry = entry) -> set[tuple[str, str]]:
        head, *lines = cells(made(entry, frame).body)
        return {(line[0], name) for line in lines for name, text in zip(head, line, strict=True) if "**" in text}

    assert bold(frame) == {("Rival¹", "ASR"), ("Ours¹", "R-Acc"), ("Rival²", "ASR"), ("Ours²", "R-Acc")}
    equal = set_value(frame, "rival", "unlearned", "r_acc", 0.7)
    assert ("Rival¹", "R-Acc") in bold(equal)
    assert ("Ours¹", "R-Acc") in bold(equal)
    lacking = entry.model_copy(update={"methods": (scratch, ours, rival)})
    assert bold(frame, lacking) == set()  # no rival left


@pytest.mark.parametrize(
    ("asr", "distance", "mark"),
    [
        ((0.1, 0.3), (2.0, 1.0), "r↓"),
        ((0.1, 0.3), (1.0, 2.0), "r"),
        ((0.3, 0.1), (2.0, 1.0), ""),
        ((0.1, 0.1), (2.0, 1.0), ""),
    ],
    ids=["rises and comes back", "rises", "falls", "stays"],
)
def test_a_rise_of_asr_in_post_training_is_marked(
    asr: tuple[float, float], distance: tuple[float, float], mark: str
) -> None:
    entry = make_entry("table")
    frame = make_frame(entry)
    for stage, k in (("unlearned", 0), ("recovered", 1)):
        frame = set_value(frame, "ours", stage, "asr", asr[k])
        frame = set_value(frame, "ours", stage, "distance", distance[k])
    result = made(entry, frame)
    found = result.frame.set_index(["method", "stage", "metric"])["mark"]
    assert found[found != ""].to_dict() == ({("ours", "recovered", "asr"): mark} if mark else {})
    shown = {line[0]: line[2] for line in cells(result.body)}
    assert shown["Ours² *"] == f"{asr[1]:.3f} ±0.000 {mark}".strip()
    assert ("r: ASR rises in post-training" in result.body) is bool(mark)


def test_the_papers_mark_stands_beside_its_asr() -> None:
    entry = make_entry("table", published="checksum", metrics=("asr",))
    numbers = {("ours", "recovered", "asr"): 0.5, ("ours", "recovered", "reverts"): 1.0}
    result = made(entry, make_frame(entry, numbers))
    found = result.frame.set_index(["method", "stage", "metric"])["published_mark"]
    assert found[found != ""].to_dict() == {("ours", "recovered", "asr"): "r"}
    assert {line[0]: line[3] for line in cells(result.body)}["Ours² *"] == "0.500 r"


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
        assert all(text.endswith(", 1 diverged") for text in shown)
    assert "Diverged: the round." in result.body


def test_where_all_seeds_diverged_the_first_round_is_named() -> None:
    entry = make_entry("table")
    frame = diverge(make_frame(entry), seeds=SEEDS)
    frame.loc[(frame["metric"] == "diverged_round") & (frame["seed"] == 1), "value"] = 2.0
    result = made(entry, frame)
    ours = result.frame[result.frame["method"] == "ours"]
    assert set(ours["diverged_round"]) == {2}
    assert set(ours["diverged"]) == {2}
    assert {line[0]: line[2:] for line in cells(result.body)}["Ours² *"] == ["diverged in 2", "–"]
