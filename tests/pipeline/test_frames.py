"""From files to the frame of an artefact: which are read, which are not, what is said of a damaged one."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fu.artefacts.entry import HELD, Asked, Entry, Method, Trial
from fu.errors import UserError
from fu.evaluation import predictions
from fu.pipeline import frames
from fu.pipeline.paths import Paths
from tests.artefacts.factories import (
    CHOSEN,
    EVALUATIONS,
    LOST,
    RATES,
    SEEDS,
    diverge,
    make_across,
    make_entry,
    make_frame,
    number,
)
from tests.factories import CLASSES, MARK, make_partition
from tests.pipeline.results_folder import (
    EVALUATED,
    IMAGES,
    LABELS,
    MEASURED,
    PART,
    TRACE,
    choose,
    entry_of,
    make_results,
    plain_entry,
    rows_to,
)

MODELS = [("scratch", "unlearned"), ("ours+chosen", "unlearned"), ("ours+chosen", "recovered")]
KINDS = ["table", "across", "curves", "images", "losses"]  # of every kind of reading, and with and without a choice


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return make_results(tmp_path)


def read(entry: Entry, results: Path, published: Path | None = None) -> pd.DataFrame:
    paths = Paths(str(results))
    return frames.read(frames.with_choice(entry, paths), paths, published)


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


@pytest.mark.parametrize("kind", ["table", "across", "curves", "losses"])
def test_a_frame_has_the_numbers_of_the_files(kind: str, results: Path) -> None:
    entry = entry_of(kind, chosen={})
    pd.testing.assert_frame_equal(read(entry, results), frame_of(kind), check_dtype=False)


@pytest.mark.parametrize("kind", ["table", "curves"])
def test_the_seconds_of_a_run_stand_at_its_last_round_with_its_device(kind: str, results: Path) -> None:
    frame = read(entry_of(kind), results)
    seconds = frame[frame["metric"] == "seconds"]
    assert set(frame[frame["metric"] != "seconds"]["device"].dropna()) == set()
    models = {"scratch.unlearned": 2, "ours+chosen.unlearned": 2, "ours+chosen.recovered": 4}
    rows = {(f"small/{model}", last, "toy, 1 thread(s)") for model, last in models.items()}
    wanted = rows if kind == "curves" else set()
    assert set(seconds[["model", "round", "device"]].itertuples(index=False, name=None)) == wanted


def test_evaluations_come_with_the_seconds_of_each_model_where_a_kind_reads_them(results: Path) -> None:
    frame = read(entry_of("table", also=("seconds",)), results)
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


def test_kinds_get_the_numbers_of_single_clients_that_they_read(results: Path) -> None:
    path = results / "toy/small/seed0/scratch.evaluation.csv"
    with path.open("a") as file:
        file.write("unlearned,client_accuracy,7,0.25\n")
    kept = [
        read(entry_of("table", also=also), results)["client"].dropna().tolist() for also in ((), ("client_accuracy",))
    ]
    assert kept == [[], [7.0]]


@pytest.mark.parametrize("kind", ["table", "curves"])
def test_only_the_chosen_trial_is_read(kind: str, results: Path) -> None:
    choose(results, "ours+lr0.4")
    other = frame_of(kind, rates=(0.4,))
    for rate in RATES:
        for file in results.glob(f"toy/small/seed*/ours+lr{rate}.*"):
            file.unlink()
    pd.testing.assert_frame_equal(read(entry_of(kind), results), other, check_dtype=False)


def test_a_method_with_one_trial_needs_no_choice(results: Path) -> None:
    (results / "toy/small/ours.selected.json").unlink()
    entry = make_entry("table", rates=(0.4,))
    pd.testing.assert_frame_equal(read(entry, results), make_frame(entry), check_dtype=False)


def test_an_artefact_that_shows_all_trials_needs_no_choice(results: Path) -> None:
    (results / "toy/small/ours.selected.json").unlink()
    assert set(read(make_across(), results)["trial"]) == {"original", *(f"ours+lr{rate}" for rate in RATES)}


@pytest.mark.parametrize("kind", ["table", "curves", "runtime"])
@pytest.mark.parametrize("content", [None, "{", "{}"], ids=["missing", "torn", "without a choice"])
def test_a_choice_that_is_missing_or_damaged_is_one_sentence(kind: str, content: str | None, results: Path) -> None:
    path = results / "toy/small/ours.selected.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(UserError, match=r"ours\.selected\.json: the file is missing or damaged; delete it and run"):
        read(entry_of(kind), results)


@pytest.mark.parametrize("kind", ["unlearning_time", "stability"])
def test_of_who_is_asked_for_samples_the_frame_says_how_many_each_client_trains_on(kind: str, results: Path) -> None:
    [small] = make_entry(kind).scenarios
    absent = make_partition((7, 12, 9), trigger=False, absent=[1])
    np.savez(results / "toy/small/seed0/partition.npz", **absent.arrays())  # type: ignore[arg-type]
    for asked, sizes in ((Asked(level="sample", number=1), [7, 9]), (Asked(level="client", number=1), []), (None, [])):
        entry = make_entry(kind, metrics=("r_acc",), scenarios=(small.model_copy(update={"asked": asked}),))
        frame = read(entry, results)
        held = frame[frame["metric"] == HELD]
        assert (held["scenario"].tolist(), held["value"].tolist()) == (["small"] * len(sizes), sizes)
        assert len(frame) > len(sizes) or kind == "unlearning_time"


@pytest.mark.parametrize(("kind", "file"), [("table", "scratch.conflicts.csv"), ("curves", "scratch.unlearned.csv")])
@pytest.mark.parametrize("content", [None, "", 'role\n"'], ids=["missing", "empty", "torn"])
def test_a_table_file_that_is_missing_or_damaged_is_one_sentence(
    kind: str, file: str, content: str | None, results: Path
) -> None:
    path = results / "toy/small/seed1" / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(UserError, match=rf"seed1/{file}: the file is missing or damaged; delete it and run"):
        read(make_entry(kind), results)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stated_files_are_enough(kind: str, results: Path) -> None:
    entry, paths = entry_of(kind), Paths(str(results))
    whole = read(entry, results)
    stated = {Path(path) for path in (*frames.inputs(entry, paths), *frames.costs(entry, paths))}
    for file in [path for path in results.rglob("*") if path.is_file() and path not in stated]:
        file.unlink()
    pd.testing.assert_frame_equal(read(entry, results), whole)


@pytest.mark.parametrize(
    ("kind", "number_of_inputs", "number_of_costs"),
    [
        ("table", 2 * 2 * (1 + 1 + 1) + 1, 2 * (1 + 1 + 2)),  # seeds, evaluations, trials; the choice
        ("across", 2 * 2 * (1 + 3), 2 * (1 + 2 * 3)),
        ("curves", 2 * (1 + 2) + 1, 2 * (1 + 1 + 2)),
        ("images", 2, 0),
        ("losses", 0, 0),
    ],
)
def test_every_file_behind_an_artefact_is_stated_once(kind: str, number_of_inputs: int, number_of_costs: int) -> None:
    entry, paths = entry_of(kind), Paths("results/smoke")
    inputs, costs = frames.inputs(entry, paths), frames.costs(entry, paths)
    assert len(set(inputs)) == len(inputs) == number_of_inputs
    assert len(set(costs)) == len(costs) == number_of_costs


def test_images_are_those_of_the_first_seed_s_partition_wherever_it_lies() -> None:
    entry = make_entry("images")
    assert frames.inputs(entry, Paths("r")) == ["r/data/digits.npz", "r/toy/small/seed0/partition.npz"]
    elsewhere = entry.scenarios[0].model_copy(update={"partition": "base"})
    found = frames.inputs(entry.model_copy(update={"scenarios": (elsewhere,)}), Paths("r"))
    assert found == ["r/data/digits.npz", "r/toy/base/seed0/partition.npz"]


def test_a_trained_model_s_files_are_read_where_it_lies(results: Path) -> None:
    """Its evaluation, too; what comes after the request lies in the scenario itself."""
    trained = Trial(name="way", rate=0.1, values={}, trained="base/way", evaluated=("base/way.evaluation",))
    way = Method(
        name="way", label="Way", in_paper=True, post_training="none", trains=True, trials={"small": (trained,)}
    )
    (ours,) = make_across().methods
    begun = ours.trials["small"][0].model_copy(
        update={"trained": "base/way", "evaluated": ("small/ours+lr0.1.evaluation",)}
    )
    after = ours.model_copy(update={"trials": {"small": (begun,)}})
    scenario = make_across().scenarios[0].model_copy(update={"original": None})
    about: dict[str, Any] = {"scenarios": (scenario,), "methods": (way, after), "chosen": {}, "seeds": (0,)}
    table, paths = make_entry("table", **about), Paths("r")
    assert frames.inputs(table, paths) == [
        "r/toy/base/seed0/way.evaluation.csv",
        "r/toy/small/seed0/ours+lr0.1.evaluation.csv",
    ]
    assert frames.costs(table, paths) == [
        "r/toy/base/seed0/way.trained.cost.json",
        "r/toy/small/seed0/ours+lr0.1.unlearned.cost.json",
        "r/toy/small/seed0/ours+lr0.1.recovered.cost.json",
    ]
    later = ["r/toy/small/seed0/ours+lr0.1.unlearned.csv", "r/toy/small/seed0/ours+lr0.1.recovered.csv"]
    before = ["r/toy/base/seed0/way.trained.csv"]
    assert frames.inputs(make_entry("curves", **about), paths) == [*before, *later]
    alone: dict[str, Any] = {**about, "methods": (after,)}
    assert frames.inputs(make_entry("curves", **alone), paths) == later
    assert frames.inputs(make_entry("curves", **alone, from_training=True), paths) == [*before, *later]


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


def test_examples_are_the_first_samples_of_the_first_forgotten_client_without_and_with_the_trigger(
    results: Path,
) -> None:
    found = read(make_entry("images"), results)
    assert found["sample"].tolist() == PART.train[1][: frames.EXAMPLES].tolist()
    assert set(found["client"]) == {1}
    for row in found.to_dict("records"):
        label = int(LABELS[row["sample"]])
        assert (row["label"], row["label_with_trigger"]) == (label, (label + CLASSES // 2) % CLASSES)
        clean, marked = row["clean"], row["marked"]
        np.testing.assert_allclose(clean, IMAGES[row["sample"]] / 255, atol=1e-6)
        changed = np.argwhere((clean != marked).any(-1)).tolist()
        assert changed == [[17, 17], [18, 17], [18, 18]]  # the pattern, one pixel from the lower right corner
        assert row["changed_pixels"] == 3
        np.testing.assert_allclose(marked[clean != marked], MARK * 0.334 + 0.195, rtol=1e-6)


def test_examples_have_the_pixels_of_the_archive_where_the_data_set_is_normalised(results: Path) -> None:
    images = np.random.default_rng(2).integers(0, 256, (43, 20, 20, 3), dtype=np.uint8)
    split = {"x_train": images[:40], "y_train": LABELS[:40], "x_test": images[40:], "y_test": LABELS[40:]}
    np.savez(results / "data/digits_rgb.npz", **split)  # type: ignore[arg-type]
    entry = make_entry("images")
    scenario = entry.scenarios[0].model_copy(update={"dataset": "digits_rgb"})
    found = read(entry.model_copy(update={"scenarios": (scenario,), "datasets": ("digits_rgb",)}), results)
    for row in found.to_dict("records"):
        np.testing.assert_allclose(row["clean"], images[row["sample"]] / 255, atol=1e-6)


def test_what_each_client_has_is_a_row_for_each_and_read_only_where_it_is_shown(results: Path) -> None:
    entry = entry_of("table")
    before = read(entry, results)
    path = results / "toy/small/seed0/scratch.evaluation.csv"
    assert path.exists()
    with path.open("a") as file:
        file.writelines(f"unlearned,client_accuracy,{client},0.{client + 1}\n" for client in range(3))
    pd.testing.assert_frame_equal(read(entry, results), before)
    metric = entry.metrics[0].model_copy(update={"name": "client_accuracy", "per": "client"})
    frame = read(entry.model_copy(update={"metrics": (metric, *entry.metrics)}), results)
    each = frame[frame["client"].notna()]
    assert each[["metric", "client", "value", "method"]].to_numpy().tolist() == [
        ["client_accuracy", client, (client + 1) / 10, "scratch"] for client in range(3)
    ]
    assert len(frame) == len(before) + 3


# Shares of two classes on two samples, as the models of a run see them: how often the first class is the likelier one
# and by how much is all that is compared. What is missing has diverged.
SAID: dict[str, dict[str, tuple[float, float]]] = {
    "original": {"original": (0.9, 0.9)},
    "scratch": {"unlearned": (0.2, 0.4)},
    "twin": {"unlearned": (0.4, 0.8)},
    "ours+lr0.1": {"unlearned": (0.6, 0.6), "recovered": (0.2, 0.8)},
}
# To scratch and to twin; their own distance is |.2 - .4| / 2 + |.4 - .8| / 2 = .3.
FAR = {
    ("original", "original"): ((1 + 0.5) / 2, (0.6 + 0.3) / 2),
    ("scratch", "unlearned"): (0.5, 0.3),
    ("twin", "unlearned"): (0.5, 0.3),
    ("ours", "unlearned"): ((1 + 0.5) / 2, (0.3 + 0.2) / 2),
    ("ours", "recovered"): ((0.5 + 0) / 2, (0.2 + 0.1) / 2),
}


def predicting(results: Path, said: Mapping[str, Mapping[str, tuple[float, float]]], seed: int) -> Entry:
    """Write what models predict: of the retained as given, of the forgotten so, too, but scratch turned round."""
    for trial, roles in said.items():
        shares = {role: torch.tensor([[share, 1 - share] for share in two]).log() for role, two in roles.items()}
        turned = {role: says.flip(1) if trial == "scratch" else says.clone() for role, says in shares.items()}
        models = {role: {"retained": shares[role], "forgotten": turned[role]} for role in roles}
        name = f"{trial}.{next(iter(EVALUATIONS))}.predictions.safetensors"
        predictions.save(results / f"toy/small/seed{seed}" / name, {}, models)
    entry = make_entry("table", rates=(0.1,))
    scratch, ours = entry.methods
    (own,) = scratch.trials["small"]
    evaluated = tuple(place.replace("scratch", "twin") for place in own.evaluated)
    twin = own.model_copy(update={"name": "twin", "unlearned": "small/twin", "evaluated": evaluated})
    for file in list(results.glob("toy/small/seed*/scratch.*.csv")):
        shutil.copy(file, file.with_name(file.name.replace("scratch", "twin")))
    methods = (scratch, scratch.model_copy(update={"name": "twin", "trials": {"small": (twin,)}}), ours)
    return entry.model_copy(update={"methods": methods, "against": ["scratch", "twin"], "predictions": True})


def compared(frame: pd.DataFrame, metric: str, seed: int = 0) -> dict[tuple[str, str], float]:
    rows = frame[(frame["metric"] == metric) & (frame["seed"] == seed)]
    return {(row["method"], row["stage"]): row["value"] for row in rows.to_dict("records")}


def test_models_are_compared_with_the_last_ones_of_the_other_methods_of_their_run(results: Path) -> None:
    for seed in SEEDS:
        entry = predicting(results, SAID, seed)
    frame = read(entry, results)
    for seed in SEEDS:
        for place, metric in enumerate(("disagreement_retained", "variation_retained")):
            assert compared(frame, metric, seed) == pytest.approx(
                {key: far[place] for key, far in FAR.items()}, abs=1e-6
            )
    rows = frame[frame["metric"].str.startswith(("disagreement", "variation"))]
    assert rows["client"].isna().all()
    assert set(rows["round"]) == {-1}
    about = rows[(rows["method"] == "ours") & (rows["stage"] == "recovered")].iloc[0]
    assert (about["trial"], about["model"], about["scenario"]) == ("ours+lr0.1", "small/ours+lr0.1.recovered", "small")
    # turned round, scratch says (.8, .6) of the forgotten samples
    assert compared(frame, "disagreement_forgotten")["ours", "unlearned"] == (0 + 0.5) / 2
    assert compared(frame, "variation_forgotten")["ours", "unlearned"] == pytest.approx((0.1 + 0.2) / 2)
    assert frame[~frame.index.isin(rows.index)].equals(read(entry.model_copy(update={"predictions": False}), results))


def test_models_are_compared_with_the_retraining_of_their_own_training(results: Path) -> None:
    for seed in SEEDS:
        entry = predicting(results, SAID, seed)
    scratch, twin, ours = entry.methods
    (own,) = twin.trials["small"]
    other = twin.model_copy(update={"trials": {"small": (own.model_copy(update={"trained": "small/fats"}),)}})
    found = compared(read(entry.model_copy(update={"methods": (scratch, other, ours)}), results), "variation_retained")
    alone = compared(read(entry.model_copy(update={"against": ["scratch"]}), results), "variation_retained")
    assert {key: far for key, far in alone.items() if key[0] != "twin"} == found


def test_a_method_that_is_compared_with_is_there_by_its_last_model_and_not_for_itself(results: Path) -> None:
    for seed in SEEDS:
        entry = predicting(results, SAID, seed)
    found = compared(read(entry.model_copy(update={"against": ["ours"]}), results), "variation_retained")
    assert found == pytest.approx(
        {("original", "original"): 0.4, ("scratch", "unlearned"): 0.2, ("twin", "unlearned"): 0.1}, abs=1e-6
    )


def test_a_model_that_diverged_is_compared_with_none_and_none_with_it(results: Path) -> None:
    for seed in SEEDS:
        entry = predicting(results, {**SAID, "twin": {}}, seed)
    found = compared(read(entry, results), "variation_retained")
    assert found == pytest.approx(
        {("original", "original"): 0.6, ("ours", "unlearned"): 0.3, ("ours", "recovered"): 0.2}, abs=1e-6
    )


def test_predictions_are_read_where_they_are_asked_for_once_for_each_trial(results: Path) -> None:
    entry = predicting(results, SAID, 0)
    paths = Paths(str(results))
    kept = [path for path in frames.inputs(entry, paths) if path.endswith(".predictions.safetensors")]
    first = next(iter(EVALUATIONS))
    assert kept == [
        f"{results}/toy/small/seed{seed}/{trial}.{first}.predictions.safetensors" for trial in SAID for seed in SEEDS
    ]
    without = entry.model_copy(update={"predictions": False})
    assert set(frames.inputs(entry, paths)) - set(frames.inputs(without, paths)) == set(kept)


def test_holdings_are_the_training_samples_of_each_class_that_a_client_has(results: Path) -> None:
    found = read(make_entry("holdings"), results)
    assert {*found["client"]} == {0, 1, 2}
    for client in range(3):
        rows = found[found["client"] == client]
        counts = np.bincount(LABELS[PART.train[client]], minlength=CLASSES)
        assert dict(zip(rows["label"], rows["train"], strict=True)) == {k: n for k, n in enumerate(counts) if n}
