"""The rows behind an artefact: what a claim and a notebook read."""

from math import inf
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fu import plugins
from fu.artefacts.rows import COLUMNS, rows, write
from fu.pipeline.provenance import catalogue
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


WORST = {("asr", inf), ("r_acc", -inf)}  # better lower, better higher


def finite(found: pd.DataFrame) -> pd.DataFrame:
    return found[(found["method"] == "ours") & np.isfinite(found["value"])]


def worst(found: pd.DataFrame) -> set[tuple[str, int, str, float]]:
    bad = found[np.isinf(found["value"])]
    return {*bad[["stage", "seed", "metric", "value"]].itertuples(index=False, name=None)}


def test_a_seed_that_diverged_is_left_out_and_counts_as_bad_as_can_be() -> None:
    entry = make_entry("table")
    found = rows(diverge(make_frame(entry), seeds=(0,)), entry, None)
    assert set(finite(found)["seed"]) == {1}
    assert set(found[found["method"] == "scratch"]["seed"]) == {0, 1}
    assert worst(found) == {(stage, 0, *bad) for stage in ("unlearned", "recovered") for bad in WORST}
    later = make_frame(entry)  # the post-training alone
    gone = (later["trial"] == CHOSEN) & (later["seed"] == 0) & (later["stage"] == "recovered")
    first = later[gone].iloc[:1].assign(metric="diverged_round", value=3.0)
    found = rows(pd.concat([later[~gone], first], ignore_index=True), entry, None)
    assert {*zip(finite(found)["stage"], finite(found)["seed"], strict=True)} >= {("unlearned", 0), ("unlearned", 1)}
    assert set(finite(found)[finite(found)["stage"] == "recovered"]["seed"]) == {1}
    assert worst(found) == {("recovered", 0, *bad) for bad in WORST}  # its unlearned model did not diverge


def test_a_curve_that_breaks_off_is_left_out_as_in_the_figure() -> None:
    entry = make_entry("curves")
    frame = diverge(make_frame(entry, {("scratch", "unlearned", "asr"): 0.25}), seeds=(1,))
    found = rows(frame, entry, None)
    assert set(finite(found)["seed"]) == {0}
    assert set(found[(found["method"] == "scratch") & (found["published"] == 0)]["seed"]) == {0, 1}
    assert {(seed, *bad) for _, seed, *bad in worst(found)} == {(1, *bad) for bad in WORST}
    assert list(found[found["published"] == 1]["value"]) == [0.25]
    whole = rows(make_frame(entry), entry, None)
    assert worst(whole) == set()
    assert set(finite(whole)["seed"]) == {0, 1}


def test_of_audits_they_hold_single_models_and_p_values_and_once_what_is_shown() -> None:
    entry = make_entry("audit")
    shown, audit = entry.metrics[0].name, next(iter(entry.audits.values()))
    about = {"scenario": "small", "method": "ours", "trial": CHOSEN, "seed": -1, "stage": "unlearned", "first": 2}
    values = [{**about, "metric": metric, "value": 0.25} for metric in (shown, audit.p)]
    values += [{**about, "metric": "line: triggered, unlearned", "run": run, "value": run / 4} for run in (0, 1)]
    other = {**about, "first": np.nan, "metric": "rounds", "value": 3.0}  # no audit's
    frame = pd.DataFrame([*values, other]).assign(published=False, round=-1)
    found = rows(frame, entry, lambda frame, _: frame[frame["metric"] == shown])
    assert [*found.columns][: len(COLUMNS) + 1] == [*COLUMNS, "run"]
    kept = found[["metric", "run", "value"]].fillna(-1).to_records(index=False).tolist()
    line = "line: triggered, unlearned"
    assert kept == [(audit.p, -1, 0.25), (line, 0, 0), (line, 1, 0.25), (shown, -1, 0.25)]


TOY_LACKS = {"gains": {"gain_over_better"}, "audit": {"found", "passes"}}  # it has one rival, and no controls


@pytest.mark.parametrize("kind", catalogue.available("artefacts"))
def test_every_kind_has_rows_that_are_read_back(kind: str, tmp_path: Path) -> None:
    entry, declared = make_entry(kind), catalogue.declared("artefacts", kind)
    module = plugins.load("artefacts", kind)
    found = rows(make_frame(entry), entry, getattr(module, "by_seed", None))
    write(found, tmp_path / "rows.csv")
    again = pd.read_csv(tmp_path / "rows.csv")
    assert [*again.columns][: len(COLUMNS)] == COLUMNS
    assert len(again) == len(found)
    made = {*declared.get("BY_SEED", ())} - TOY_LACKS.get(kind, set())
    counted = bool({"evaluations", "traces"} & {*entry.reads} and not entry.audits)
    assert bool(len(found)) == (counted or bool(made) or "run" in found)
    assert hasattr(module, "by_seed") == ("BY_SEED" in declared)
    lacking = {*declared.get("BY_SEED", ())} - set(found["metric"])
    assert lacking == TOY_LACKS.get(kind, set())
