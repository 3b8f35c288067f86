"""What is traced besides: columns of the trace in every round of unlearning and post-training, and rows of a frame."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fu.evaluation.trace import COUNTS
from fu.pipeline.stages import frames, partition, recover, train, unlearn
from fu.pipeline.stages.common import Options
from tests.artefacts.factories import make_entry
from tests.mistakes import write_archive
from tests.pipeline.plans import PAT50, made, spec
from tests.pipeline.results_folder import sources_of
from tests.pipeline.stages import drawing

MEASURED = ("asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts")
SHARES = tuple(f"predicted_{label}" for label in range(10))


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    """Train, unlearn and train on for two rounds each; the forgotten clients' triggered images are traced."""
    labels = np.repeat(np.arange(10, dtype=np.uint8), 4)
    images = np.random.default_rng(0).integers(0, 256, (40, 20, 20, 1), dtype=np.uint8)
    archive = write_archive(tmp_path / "digits.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    drawn, options = tmp_path / "partition.npz", Options()
    attack = {"name": "patch", "params": spec(made("smoke"), "partition", PAT50)["attack"]["params"]}
    partition.main(partition.Spec(**{**drawing.SPEC, "attack": attack}), partition.Files(archive, drawn), options)
    model = {"name": "mlp", "params": {"hidden": 4}}
    phase = {"dataset": "digits", "attack": "patch", "model": model, "seed": 0, **drawing.PHASE, "rounds": 2}
    later = {**phase, "traced": ("backdoor", "utility", "distance", "predicted_classes"), "counted": ("conflicts",)}

    def files(role: str) -> dict[str, Path]:
        return {key: tmp_path / f"m.{role}.{key}" for key in ("model", "trace", "cost")}

    original, unlearned = files("original")["model"], files("unlearned")["model"]
    train.main(
        train.Spec(**{**phase, "traced": ("utility",)}, training={"name": "fedavg"}, history=(), server=None),
        train.Files(archive, drawn, [], **files("original"), history=tmp_path / "history"),
        options,
    )
    unlearn.main(
        unlearn.Spec(**later, method={"name": "fedosd"}, training=None, server=None, watch=None),
        unlearn.Files(archive, drawn, [], original=original, history=[], **files("unlearned")),
        options,
    )
    recover.main(
        recover.Spec(**later, projection=None, client_weights="equal", first_round=2),
        recover.Files(archive, drawn, [], original=original, unlearned=unlearned, **files("recovered")),
        options,
    )
    return {
        role: list(csv.DictReader(files(role)["trace"].read_text().splitlines()))
        for role in ("original", "unlearned", "recovered")
    }


def test_a_trace_has_the_columns_of_its_own_evaluators_in_order(traces: dict[str, list[dict[str, str]]]) -> None:
    """Those of `conflicts` are there where nobody counts them; which classes there are, only the data know."""
    assert [tuple(row) for row in traces["original"]] == [
        ("round", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", *COUNTS)
    ] * 3
    for role in ("unlearned", "recovered"):
        assert len(traces[role]) == 3
        for row in traces[role]:
            assert tuple(row) == ("round", *MEASURED, *COUNTS, *SHARES)
            assert sum(float(row[share]) for share in SHARES) == pytest.approx(1)
    assert traces["unlearned"][-1]["predicted_3"] == traces["recovered"][0]["predicted_3"]


def test_the_plan_asks_for_what_a_phase_says_and_for_that_of_the_phase_before_where_it_says_nothing() -> None:
    run, usual = "fedosd/mnist-mlp-pat50/seed0", ["backdoor", "utility", "distance"]
    for stage in ("unlearn", "recover"):
        assert spec(made("smoke"), stage, run, "fedosd+lr0.02")["traced"] == [*usual, "predicted_classes"]
        assert spec(made("smoke"), stage, PAT50, "fedosd+lr0.02")["traced"] == usual
    assert spec(made("smoke"), "train", run, "original")["traced"] == usual


def test_a_frame_has_what_was_traced_besides_the_metrics_that_are_shown(tmp_path: Path) -> None:
    entry = make_entry("curves", rates=(0.1,))
    sources = sources_of(entry)
    for file in frames.located(sources, entry.seeds, tmp_path):
        file.path.parent.mkdir(parents=True, exist_ok=True)
        row = {"round": 0, "asr": 0.5, "r_acc": 0.6, "steps": 7, "predicted_0": 0.25, "predicted_1": 0.75}
        pd.DataFrame([row]).to_csv(file.path, index=False)
        if file.kind == "costs":
            file.path.write_text('{"seconds": 1, "device": "cpu", "threads": 1}')
    frame = frames.read(entry, sources, tmp_path, None)
    assert {"predicted_0", "predicted_1"} < set(frame["metric"])
    assert "steps" not in set(frame["metric"])
    assert set(frame[frame["metric"] == "predicted_1"]["value"]) == {0.75}
