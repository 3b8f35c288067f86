"""From files to the frame of an artefact: which are read, which are not, what is said of a damaged one."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fu.artefacts.entry import HELD, Entry
from fu.errors import UserError
from fu.pipeline.stages import frames
from fu.pipeline.stages.frames import Source
from tests.artefacts.factories import (
    CHOSEN,
    EVALUATIONS,
    LOST,
    RATES,
    ROUNDS,
    SEEDS,
    diverge,
    make_across,
    make_entry,
    make_frame,
    number,
)
from tests.pipeline.results_folder import (
    EVALUATED,
    MEASURED,
    TRACE,
    choose,
    entry_of,
    make_results,
    plain_entry,
    rows_to,
    sources_of,
)

MODELS = [("scratch", "unlearned"), ("ours+chosen", "unlearned"), ("ours+chosen", "recovered")]
KINDS = ["table", "across", "curves"]  # of evaluations and traces, with and without a choice


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return make_results(tmp_path)


def read(entry: Entry, results: Path, published: Path | None = None, *more: Source) -> pd.DataFrame:
    sources = (*sources_of(entry), *more)
    return frames.read(frames.with_choice(entry, sources, results), sources, results, published)


def frame_of(
    kind: str, published: Mapping[tuple[str, str, str], float] | None = None, rates: tuple[float, ...] = RATES
) -> pd.DataFrame:
    """Return what a kind is to be given: curves all that was traced, such as the distance to where a method starts."""
    metrics = MEASURED if kind == "curves" else ("asr", "r_acc")
    entry = plain_entry(kind, metrics=metrics, rates=rates)
    frame = make_frame(entry, published)
    if entry.chooses and entry.methods:
        frame["model"] = frame["model"].str.replace(r"ours\+lr[0-9]\.[0-9]", "ours+chosen", regex=True)
    return frame


def sort(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values(frames.COLUMNS[:8]).reset_index(drop=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_has_the_numbers_of_the_files(kind: str, results: Path) -> None:
    entry = entry_of(kind, chosen={})
    pd.testing.assert_frame_equal(read(entry, results), frame_of(kind), check_dtype=False)


def test_evaluations_come_with_the_seconds_of_each_model_where_a_kind_reads_them(results: Path) -> None:
    frame = read(entry_of("table", reads=("evaluations", "costs")), results)
    others = frame[frame["metric"] != "seconds"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, read(entry_of("table"), results), check_dtype=False)
    seconds = frame[frame["metric"] == "seconds"]
    own = {f"small/{trial}.{role}" for trial, role in MODELS}
    assert {*seconds["model"]} == {"small/original.trained", *own}
    for row in seconds.to_dict("records"):
        model = row["model"].removeprefix("small/").replace("ours+chosen", CHOSEN)
        expected = 1.0 if row["stage"] == "original" else 10 * number(model, "seconds", row["seed"])
        assert (row["value"], row["device"]) == (expected, "toy, 1 thread(s)")
    assert len(seconds) == len(SEEDS) * 4


@pytest.mark.parametrize("kind", ["table", "curves"])
def test_only_the_chosen_trial_is_read(kind: str, results: Path) -> None:
    choose(results, "ours+lr0.4")
    other = frame_of(kind, rates=(0.4,))
    for rate in RATES:
        for file in results.glob(f"toy/small/seed*/ours+lr{rate}.*"):
            file.unlink()
    pd.testing.assert_frame_equal(read(entry_of(kind), results), other, check_dtype=False)


@pytest.mark.parametrize("content", [None, "{", "{}"], ids=["missing", "torn", "without a choice"])
def test_a_choice_that_is_missing_or_damaged_is_one_sentence(content: str | None, results: Path) -> None:
    """Where there is nothing to choose, or all points are shown, none is needed."""
    path = results / "toy/small/ours.selected.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(UserError, match=r"ours\.selected\.json: the file is missing or damaged; delete it and start"):
        read(entry_of("table"), results)
    assert set(read(make_across(), results)["trial"]) == {"original", *(f"ours+lr{rate}" for rate in RATES)}
    entry = make_entry("table", rates=(0.4,))
    pd.testing.assert_frame_equal(read(entry, results), make_frame(entry), check_dtype=False)


def test_the_sizes_of_clients_are_rows_of_the_scenario(results: Path) -> None:
    path = "toy/small/seed0/holdings.csv"
    held = [(0, "", HELD, 7), (0, 3, HELD, 7), (2, "", HELD, 9), (2, 1, HELD, 4), (2, 3, HELD, 5)]
    rows_to(results / path, ("client", "label", "metric", "value"), held)
    frame = read(make_entry("stability", metrics=("r_acc",)), results, None, Source("holdings", path, "small"))
    sizes = frame[frame["metric"] == HELD]
    assert sizes[["scenario", "client", "value"]].to_numpy().tolist() == [["small", 0, 7], ["small", 2, 9]]
    assert sizes[["method", "trial", "stage"]].isna().all(axis=None)
    assert len(frame) > 2


@pytest.mark.parametrize("content", [None, "", 'role\n"'], ids=["missing", "empty", "torn"])
def test_a_table_file_that_is_missing_or_damaged_is_one_sentence(content: str | None, results: Path) -> None:
    path = results / "toy/small/seed1/scratch.conflicts.csv"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(
        UserError, match=r"seed1/scratch\.conflicts\.csv: the file is missing or damaged; delete it and"
    ):
        read(make_entry("table"), results)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stated_files_are_enough(kind: str, results: Path) -> None:
    entry = entry_of(kind)
    whole = read(entry, results)
    behind = frames.behind(sources_of(entry), entry.seeds, results)
    for file in [path for path in results.rglob("*") if path.is_file() and path not in chain(*behind.values())]:
        file.unlink()
    pd.testing.assert_frame_equal(read(entry, results), whole)


def test_files_are_located_trial_by_trial_and_seed_by_seed_each_stated_once() -> None:
    one, other = (Source("evaluations", f"p/s/seed{{}}/m.{name}.csv", "s", "m", "m") for name in ("a", "b"))
    choice = Source("selection", "p/s/m.selected.json", "s", "m", "m")
    costs = [Source("costs", "p/s/seed{}/m.cost.json", "s", method, method, "unlearned") for method in ("m", "n")]
    root = Path("r")
    found = [(str(file.path), file.seed) for file in frames.located([choice, one, other, *costs], (3, 5), root)]
    assert found == [
        ("r/p/s/m.selected.json", -1),
        *((f"r/p/s/seed3/m.{name}", 3) for name in ("a.csv", "b.csv", "cost.json")),
        *((f"r/p/s/seed5/m.{name}", 5) for name in ("a.csv", "b.csv", "cost.json")),
        *((f"r/p/s/seed{seed}/m.cost.json", seed) for seed in (3, 5)),
    ]
    behind = frames.behind([choice, one, other, *costs], (3, 5), root)
    assert [*map(str, behind["costs"])] == ["r/p/s/seed3/m.cost.json", "r/p/s/seed5/m.cost.json"]
    assert len(behind["results"]) == 5


def test_curves_that_begin_with_training_count_on(results: Path) -> None:
    """Two rounds of training, then those after the request."""
    for seed in SEEDS:
        rows_to(
            results / f"toy/small/seed{seed}/original.trained.csv", ("round", "asr"), [(k, k / 4) for k in range(3)]
        )
    usual = read(make_entry("curves"), results)
    frame = read(make_entry("curves", from_training=True), results)
    scratch = frame[(frame["trial"] == "scratch") & (frame["seed"] == 0) & (frame["metric"] == "asr")]
    assert list(scratch[["stage", "round"]].itertuples(index=False, name=None)) == [
        *(("original", k) for k in (0, 1, 2)),
        *(("unlearned", k) for k in (2, 3, 4)),
    ]
    assert set(frame["metric"]) - set(usual["metric"]) == {"time_steps", "replayed"}
    before = usual[(usual["trial"] == "scratch") & (usual["seed"] == 0) & (usual["metric"] == "asr")]
    assert scratch["value"].tolist() == [0, 0.25, 0.5, *before["value"]]


def test_the_published_numbers_are_rows_of_their_own(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(
        "scenario,method,stage,metric,value\nsmall,ours,recovered,asr,0.25\nsmall,scratch,total,seconds,63.5\n"
    )
    numbers = {("ours", "recovered", "asr"): 0.25, ("scratch", "total", "seconds"): 63.5}
    for kind in ("table", "curves"):
        found = read(entry_of(kind), results, path)
        pd.testing.assert_frame_equal(found, frame_of(kind, numbers), check_dtype=False)
        assert found["published"].dtype == bool
        assert found["published"].sum() == 2
        assert set(found[found["published"]]["seed"]) == {-1}


@pytest.mark.parametrize("kind", ["table", "across", "curves"])
def test_a_diverged_run_has_its_round_once_and_no_metrics(kind: str, results: Path) -> None:
    folder = results / "toy/small/seed0"  # as the stages leave it: no metrics, and no round of post-training
    for evaluation in EVALUATIONS:
        lost = [(role, "diverged_round", "", LOST) for role in ("unlearned", "recovered")]
        for trial in (CHOSEN, "ours+chosen"):
            rows_to(folder / f"{trial}.{evaluation}.csv", EVALUATED, lost)
    rows_to(folder / f"{CHOSEN}.recovered.csv", TRACE, [])
    rows_to(folder / "ours+chosen.recovered.csv", TRACE, [])
    wanted = diverge(frame_of(kind))
    pd.testing.assert_frame_equal(sort(read(entry_of(kind), results)), sort(wanted), check_dtype=False)


def test_a_metric_that_a_round_lacks_is_no_row(results: Path) -> None:
    path = results / "toy/small/seed0/scratch.unlearned.csv"
    rows_to(path, ("round", "asr", "r_acc"), [(0, 0.5, 0.25), (1, "", ""), (2, 0.75, "")])
    frame = read(make_entry("curves"), results)
    here = frame[(frame["trial"] == "scratch") & (frame["seed"] == 0) & (frame["metric"] != "seconds")]
    rows = list(here[["metric", "round", "value"]].itertuples(index=False, name=None))
    assert rows == [("asr", 0, 0.5), ("asr", 2, 0.75), ("r_acc", 0, 0.25)]


def test_what_each_client_has_is_a_row_for_each_and_read_only_where_it_is_shown(results: Path) -> None:
    entry = entry_of("table")
    before = read(entry, results)
    path = results / "toy/small/seed0/scratch.evaluation.csv"
    assert path.exists()
    with path.open("a") as file:
        file.writelines(f"unlearned,client_accuracy,{client},0.{client + 1}\n" for client in range(3))
    pd.testing.assert_frame_equal(read(entry, results), before)
    metric = entry.metrics[0].model_copy(update={"name": "client_accuracy", "per": "client"})
    for shown in ({"metrics": (metric, *entry.metrics)}, {"also": ("client_accuracy",)}):
        frame = read(entry.model_copy(update=shown), results)
        each = frame[frame["client"].notna()]
        assert each[["metric", "client", "value", "method"]].to_numpy().tolist() == [
            ["client_accuracy", client, (client + 1) / 10, "scratch"] for client in range(3)
        ]
        assert len(frame) == len(before) + 3


def test_further_rows_of_a_trial_are_labelled_as_its_evaluations_are(results: Path) -> None:
    far = [("unlearned", "disagreement_retained", 0.25), ("recovered", "disagreement_retained", 0.5)]
    for seed in SEEDS:
        rows_to(results / f"toy/small/seed{seed}/agreement.csv", ("role", "metric", "value"), far)
    agreement = Source("agreement", "toy/small/seed{}/agreement.csv", "small", "ours", "ours+chosen")
    entry = entry_of("table")
    frame = read(entry, results, None, agreement)
    rows = frame[frame["metric"] == "disagreement_retained"]
    labels = ["scenario", "method", "trial", "stage", "model", "seed", "value"]
    assert rows[labels].to_numpy().tolist() == [
        ["small", "ours", CHOSEN, role, f"small/ours+chosen.{role}", seed, value]
        for seed in SEEDS
        for role, _, value in far
    ]
    assert len(frame) == len(read(entry, results)) + 4


AUDITED = [(4, "repeats", 4), (4, "ulira_auc", 0.7), (8, "repeats", 8), (8, "ulira_auc", 0.9)]


@pytest.mark.parametrize(("firsts", "kept"), [((4, 8), AUDITED), ((), AUDITED[2:])])
def test_audits_are_read_of_the_numbers_of_repeats_that_are_shown(
    results: Path, firsts: tuple[int, ...], kept: list[tuple[int, str, float]]
) -> None:
    entry = make_entry("epsilon", rates=(0.1,), firsts=firsts, seeds=tuple(range(8)))
    sources = []
    for audit in ("ulira", "klom"):  # each states how many models there are
        rows_to(
            results / f"{audit}.csv", ("first", "metric", "run", "value"), [(*row[:2], "", row[2]) for row in AUDITED]
        )
        sources.append(Source("audits", f"{audit}.csv", "small", "ours", "ours+lr0.1", "recovered"))
    frame = frames.read(entry, sources, results, None)
    assert frame[["first", "metric", "value"]].to_numpy().tolist() == [[*row] for row in kept]
    assert {*frame["model"]} == {"small/ours+lr0.1.recovered"}
    assert {*frame["seed"]} == {-1}


def test_costs_are_those_of_the_last_round_of_each_phase_in_each_seed(results: Path) -> None:
    entry = make_entry("pareto", rates=(0.2,))
    models = {role: f"toy/small/seed{{}}/{CHOSEN}.{role}" for role in ("unlearned", "recovered")}
    labels = "small", "ours", CHOSEN
    sources = [Source("traces", f"{file}.csv", *labels, role) for role, file in models.items()]
    sources += [Source("costs", f"{file}.cost.json", *labels, role) for role, file in models.items()]
    frame = frames.read(entry, sources, results, None)
    for stage, seed in (("unlearned", 0), ("recovered", 1)):
        model = f"{CHOSEN}.{stage}"
        rows = frame[(frame["stage"] == stage) & (frame["seed"] == seed)].set_index("metric")["value"]
        assert rows["bytes_up"] == number(model, "bytes_up", seed, ROUNDS[stage][-1])
        assert rows["seconds"] == 10 * number(model, "seconds", seed)
    assert {*frame["round"]} == {-1}


def test_classes_and_pictures_have_columns_of_their_own(results: Path) -> None:
    rows_to(
        results / "h.csv", ("client", "label", "metric", "value"), [(4, "", HELD, 5), (4, 0, HELD, 2), (4, 6, HELD, 3)]
    )
    found = frames.read(make_entry("holdings"), [Source("holdings", "h.csv", "small")], results, None)
    assert found.to_dict("records") == [
        {"scenario": "small", "client": 4, "label": label, "train": number} for label, number in ((0, 2), (6, 3))
    ]
    np.savez(results / "p.npz", sample=np.array([3, 9]), clean=np.arange(8.0).reshape(2, 2, 2, 1))
    found = frames.read(make_entry("images"), [Source("examples", "p.npz", "small")], results, None)
    assert found[["scenario", "sample"]].to_numpy().tolist() == [["small", 3], ["small", 9]]
    assert found["clean"][1].shape == (2, 2, 1)
    (results / "p.npz").write_bytes((results / "p.npz").read_bytes()[:99])
    with pytest.raises(UserError, match=r"p\.npz: the file is truncated or not an npz archive"):
        frames.read(make_entry("images"), [Source("examples", "p.npz", "small")], results, None)
