"""The rows behind an artefact: what a claim and a notebook read."""

from pathlib import Path

import pandas as pd
import pytest

from fu import plugins
from fu.artefacts.rows import COLUMNS, rows, write
from fu.pipeline import catalogue
from tests.artefacts.factories import CHOSEN, diverge, make_across, make_entry, make_frame, number


def test_they_are_the_numbers_of_the_metrics_seed_by_seed() -> None:
    entry = make_entry("table")
    found = rows(make_frame(entry, {("scratch", "unlearned", "asr"): 0.25}), entry, None)
    assert [*found.columns] == [*COLUMNS, "size", "unlearning.lr"]
    assert set(found["metric"]) == {"asr", "r_acc", "r_acc_std"}
    own = found[(found["method"] == "ours") & (found["stage"] == "recovered") & (found["metric"] == "asr")]
    assert list(own["value"]) == [number(CHOSEN, "recovered", "asr", seed) for seed in (0, 1)]
    assert set(own["point"]) == {CHOSEN}
    assert set(own["unlearning.lr"]) == {0.2}
    assert set(found["size"]) == {8}
    [paper] = found[found["published"] == 1].to_dict("records")
    assert (paper["method"], paper["value"], paper["seed"], paper["round"]) == ("scratch", 0.25, -1, -1)


def test_of_several_points_each_has_its_settings_and_so_have_the_papers_numbers() -> None:
    entry = make_across()
    found = rows(make_frame(entry, {("ours+lr0.4", "unlearned", "asr"): 0.5}), entry, None)
    assert set(found[found["method"] == "ours"]["unlearning.lr"]) == {0.1, 0.2, 0.4}
    [paper] = found[found["published"] == 1].to_dict("records")
    assert (paper["method"], paper["point"], paper["unlearning.lr"]) == ("ours", "ours+lr0.4", 0.4)


def test_a_seed_that_diverged_is_left_out() -> None:
    entry = make_entry("table")
    found = rows(diverge(make_frame(entry), seeds=(0,)), entry, None)
    assert set(found[found["method"] == "ours"]["seed"]) == {1}
    assert set(found[found["method"] == "scratch"]["seed"]) == {0, 1}
    later = make_frame(entry)  # the post-training alone
    gone = (later["trial"] == CHOSEN) & (later["seed"] == 0) & (later["stage"] == "recovered")
    first = later[gone].iloc[:1].assign(metric="diverged_round", value=3.0)
    found = rows(pd.concat([later[~gone], first], ignore_index=True), entry, None)
    assert set(found[found["method"] == "ours"]["seed"]) == {1}


TOY_LACKS = {"gains": {"gain_over_better"}, "audit": {"in_order"}}  # it has one rival, and no controls


@pytest.mark.parametrize("kind", catalogue.available("artefacts"))
def test_every_kind_has_rows_that_are_read_back(kind: str, tmp_path: Path) -> None:
    entry, declared = make_entry(kind), catalogue.declared("artefacts", kind)
    module = plugins.load("artefacts", kind)
    found = rows(make_frame(entry), entry, getattr(module, "by_seed", None))
    write(found, tmp_path / "rows.csv")
    again = pd.read_csv(tmp_path / "rows.csv")
    assert [*again.columns][: len(COLUMNS)] == COLUMNS
    assert len(again) == len(found)
    assert bool(len(found)) == (entry.reads in ("evaluations", "traces") or "BY_SEED" in declared)
    assert hasattr(module, "by_seed") == ("BY_SEED" in declared)
    lacking = {*declared.get("BY_SEED", ())} - set(found["metric"])
    assert lacking == TOY_LACKS.get(kind, set())


def test_the_gains_of_a_seed_are_points_over_the_first_training() -> None:
    entry = make_entry("gains")
    module = plugins.load("artefacts", "gains")
    found = rows(make_frame(entry), entry, module.by_seed)
    gains = found[found["metric"] == "gain"].set_index("seed")["value"]
    for seed in (0, 1):
        ours, theirs = (number(name, "original", "r_acc", seed) for name in (CHOSEN, "scratch"))
        assert gains[seed] == pytest.approx(100 * (ours - theirs))
