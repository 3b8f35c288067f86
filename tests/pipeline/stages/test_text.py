"""Naturally federated text through the stages: owners become clients, windows stay bytes, an LSTM is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.data import archives, partition
from fu.data.archives import Arrays
from fu.federation.sgd import LocalTraining
from fu.pipeline.stages import data, evaluate, train
from fu.plugins import Choice
from tests.pipeline.stages.scene import OPTIONS, Scene

DEALT: dict[str, Any] = {
    **{"split": "official", "test": "global", "clients": 6, "train_share": None, "attacked": ()},
    "partition": {"name": "natural", "params": {"minimum": 100}},
}
MODEL: dict[str, Any] = {"dataset": "letters", "attack": None, "seed": 0}
MODEL["model"] = Choice(name="lstm", params={"hidden": 16})
TRAINING = train.Spec(
    **MODEL,
    **{"rounds": 10, "evaluate_every": 1, "evaluate_last": 1, "traced": ("accuracy",), "history": (), "server": None},
    **{"clients_per_round": 3, "with_replacement": False},
    local=LocalTraining(lr=1.0, lr_decay=1.0, batch_size=20, local_steps=15),
    training=Choice(name="fedavg", params={"client_weights": "equal"}),
)


def made(folder: Path) -> Scene:
    """Write the archive."""
    scene = Scene(folder, "letters")
    data.main(data.Spec(dataset="letters", archive=None), data.Files(folder, scene("letters.npz")), OPTIONS)
    return scene


def drawn(scene: Scene, **changes: Any) -> partition.Partition:
    return partition.load(scene.deal(**{**DEALT, **changes}))


def owner_of(arrays: Arrays, rows: "np.ndarray[Any, np.dtype[np.int64]]") -> int:
    everybody = np.concatenate([arrays["client_train"], arrays["client_test"]])
    (owner,) = set(everybody[rows].tolist())
    assert sorted(rows.tolist()) == np.flatnonzero(arrays["client_train"] == owner).tolist()
    return int(owner)


def test_every_client_is_an_owner_and_the_test_set_everyone_s(tmp_path: Path) -> None:
    scene = made(tmp_path)
    arrays = archives.read(scene("letters.npz"), "letters")
    part = drawn(scene)
    owners = [owner_of(arrays, rows) for rows in part.train]
    assert sorted(set(owners)) == owners
    assert all(100 <= len(rows) <= 128 for rows in part.train)
    train = len(arrays["y_train"])
    assert part.global_test.tolist() == list(range(train, train + len(arrays["y_test"])))
    other = [owner_of(arrays, rows) for rows in drawn(scene, seed=1).train]
    assert owners != other


def test_a_partition_by_classes_deals_the_characters_of_text(tmp_path: Path) -> None:
    part = drawn(made(tmp_path), partition={"name": "dirichlet", "params": {"beta": 0.5}})
    assert {len(rows) for rows in part.train} == {3128 // 6}


def test_an_lstm_is_trained_and_evaluated_on_text(tmp_path: Path) -> None:
    scene = made(tmp_path)
    drawn(scene)
    scene.train(TRAINING)
    found = pd.read_csv(scene("original.csv"))["accuracy"]
    assert found.iloc[-1] > max(found.iloc[0] + 0.05, 0.1)
    rows = scene.evaluate(evaluate.Spec(**MODEL, roles=("original",), evaluators=("accuracy",)))
    measured = {row["metric"]: float(row["value"]) for row in rows}
    assert measured["accuracy"] == pytest.approx(found.iloc[-1])
