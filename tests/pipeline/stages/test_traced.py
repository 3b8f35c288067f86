"""What is traced besides: columns of the trace in every round of unlearning and post-training, and rows of a frame."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fu.evaluation.trace import COLUMNS
from fu.pipeline import frames
from fu.pipeline.paths import Paths
from fu.pipeline.stages import partition, recover, train, unlearn
from fu.pipeline.stages.common import Options
from tests.artefacts.factories import make_entry
from tests.mistakes import write_archive
from tests.pipeline.plans import PAT50, made, spec
from tests.pipeline.stages import drawing

SHARES = tuple(f"predicted_{label}" for label in range(10))


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    """Train, unlearn and train on for two rounds each; the forgotten clients' triggered images are traced."""
    labels = np.repeat(np.arange(10, dtype=np.uint8), 4)
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28, 1), dtype=np.uint8)
    archive = write_archive(tmp_path / "digits.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    drawn, options = tmp_path / "partition.npz", Options()
    attack = {"name": "patch", "params": spec(made("smoke"), "partition", PAT50)["attack"]["params"]}
    partition.main(partition.Spec(**{**drawing.SPEC, "attack": attack}), partition.Files(archive, drawn), options)
    local = {"lr": 0.05, "lr_decay": 1.0, "batch_size": 8, "local_epochs": 1}
    model = {"name": "mlp", "params": {"hidden": 4}}
    phase = {"dataset": "digits", "attack": "patch", "model": model, "seed": 0, "local": local, "evaluate_every": 1}

    def files(role: str) -> dict[str, Path]:
        return {key: tmp_path / f"m.{role}.{key}" for key in ("model", "trace", "cost")}

    original, unlearned = files("original")["model"], files("unlearned")["model"]
    train.main(
        train.Spec(**phase, rounds=2, training={"name": "fedavg"}, history=()),
        train.Files(archive, drawn, **files("original"), history=tmp_path / "history"),
        options,
    )
    unlearn.main(
        unlearn.Spec(**phase, rounds=2, method={"name": "fedosd"}, watch=None, traced=("predicted_classes",)),
        unlearn.Files(archive, drawn, original=original, history=[], **files("unlearned")),
        options,
    )
    recover.main(
        recover.Spec(
            **phase, rounds=2, projection=None, client_weights="equal", first_round=2, traced=("predicted_classes",)
        ),
        recover.Files(archive, drawn, original=original, unlearned=unlearned, **files("recovered")),
        options,
    )
    return {
        role: list(csv.DictReader(files(role)["trace"].read_text().splitlines()))
        for role in ("original", "unlearned", "recovered")
    }


def test_what_is_traced_stands_behind_the_columns_of_every_trace(traces: dict[str, list[dict[str, str]]]) -> None:
    assert tuple(traces["original"][0]) == COLUMNS
    for role in ("unlearned", "recovered"):
        assert len(traces[role]) == 3
        for row in traces[role]:
            assert tuple(row) == (*COLUMNS, *SHARES)
            assert sum(float(row[share]) for share in SHARES) == pytest.approx(1)
    assert traces["unlearned"][-1]["predicted_3"] == traces["recovered"][0]["predicted_3"]


def test_the_plan_asks_for_it_in_unlearning_and_post_training_alone() -> None:
    run = "fedosd/mnist-mlp-pat50/seed0"
    for stage, model in (("unlearn", "fedosd+lr0.02"), ("recover", "fedosd+lr0.02")):
        assert spec(made("smoke"), stage, run, model)["traced"] == ["predicted_classes"]
        assert spec(made("smoke"), stage, "fedosd/fmnist-pat50/seed0", model)["traced"] == []
    assert "traced" not in spec(made("smoke"), "train", run)


def test_a_frame_has_what_was_traced_besides_the_metrics_that_are_shown(tmp_path: Path) -> None:
    entry = make_entry("curves")
    paths = Paths(str(tmp_path))
    for part in frames.shown(entry):
        for seed in entry.seeds:
            for model in part.models.values() if part.method != "original" else ():
                trace = Path(paths.model(f"toy/small/seed{seed}", model, "trace"))
                trace.parent.mkdir(parents=True, exist_ok=True)
                row = {"round": 0, "asr": 0.5, "r_acc": 0.6, "steps": 7, "predicted_0": 0.25, "predicted_1": 0.75}
                pd.DataFrame([row]).to_csv(trace, index=False)
                Path(paths.model(f"toy/small/seed{seed}", model, "cost")).write_text(
                    '{"seconds": 1, "device": "cpu", "threads": 1}'
                )
    frame = frames.read(entry, paths, None)
    assert {"predicted_0", "predicted_1"} < set(frame["metric"])
    assert "steps" not in set(frame["metric"])
    assert set(frame[frame["metric"] == "predicted_1"]["value"]) == {0.75}
