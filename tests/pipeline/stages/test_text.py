"""Naturally federated text through the stages: owners become clients, windows stay bytes, an LSTM is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fu.data import archives, partition, sources
from fu.data.archives import Arrays
from fu.data.dataset import about
from fu.federation.sgd import LocalTraining
from fu.pipeline.stages import data as data_stage
from fu.pipeline.stages import evaluate, train
from fu.pipeline.stages import partition as partition_stage
from fu.pipeline.stages.common import Options
from fu.plugins import Choice
from tests.data.files import same

SPEC = partition_stage.Spec(
    dataset="letters", seed=0, samples=None, split="official", test="global", clients=6, train_share=None,
    partition=Choice(name="natural", params={"minimum": 100}), validation_share=0.0, server=0, held_out=0,
    absent=0, attacked=(), attack=None,
)  # fmt: skip
TRAINING = train.Spec(
    dataset="letters", attack=None, model=Choice(name="lstm", params={"hidden": 16}), seed=0,
    rounds=10, evaluate_every=1, evaluate_last=1,
    local=LocalTraining(lr=1.0, lr_decay=1.0, batch_size=20, local_steps=15),
    clients_per_round=3, with_replacement=False, traced=("accuracy",),
    training=Choice(name="fedavg", params={"client_weights": "equal"}), history=(), server=None,
)  # fmt: skip


def made(folder: Path, dataset: str = "letters") -> Path:
    output = folder / f"{dataset}.npz"
    files = data_stage.Files(folder, output)
    data_stage.main(data_stage.Spec(dataset=dataset, archive=None), files, Options())
    return output


def drawn(folder: Path, archive: Path, **changes: Any) -> partition.Partition:
    output = folder / "partition.npz"
    partition_stage.main(SPEC.model_copy(update=changes), partition_stage.Files(archive, output), Options())
    return partition.load(output)


def test_the_stage_writes_owners_and_vocabulary_through(tmp_path: Path) -> None:
    with np.load(made(tmp_path), allow_pickle=False) as found:
        same(dict(found), sources.letters(about("letters")))


def owner_of(arrays: Arrays, rows: "np.ndarray[Any, np.dtype[np.int64]]") -> int:
    everybody = np.concatenate([arrays["client_train"], arrays["client_test"]])
    (owner,) = set(everybody[rows].tolist())
    assert sorted(rows.tolist()) == np.flatnonzero(arrays["client_train"] == owner).tolist()
    return int(owner)


def test_every_client_is_an_owner_and_the_test_set_everyone_s(tmp_path: Path) -> None:
    archive = made(tmp_path)
    arrays = archives.read(archive, "letters")
    part = drawn(tmp_path, archive)
    owners = [owner_of(arrays, rows) for rows in part.train]
    assert sorted(set(owners)) == owners
    train = len(arrays["y_train"])
    assert part.global_test.tolist() == list(range(train, train + len(arrays["y_test"])))
    other = [owner_of(arrays, rows) for rows in drawn(tmp_path, archive, seed=1).train]
    assert owners != other


@pytest.mark.parametrize("natural", [True, False])
def test_a_partition_by_classes_deals_the_characters_of_text(tmp_path: Path, natural: bool) -> None:
    archive = made(tmp_path)
    given = SPEC.partition if natural else Choice(name="dirichlet", params={"beta": 0.5})
    part = drawn(tmp_path, archive, partition=given)
    sizes = {len(rows) for rows in part.train}
    assert sizes <= set(range(100, 129)) if natural else sizes == {3128 // 6}


def test_an_lstm_is_trained_and_evaluated_on_text(tmp_path: Path) -> None:
    archive = made(tmp_path)
    drawn(tmp_path, archive)
    names = ("model", "trace", "cost", "history", "evaluation", "predictions")
    model, trace, cost, history, evaluation, kept = (tmp_path / name for name in names)
    dealt = tmp_path / "partition.npz"
    train.main(TRAINING, train.Files(archive, dealt, [], model, trace, cost, history), Options())
    shared = TRAINING.model_dump(include={"dataset", "attack", "seed"})
    asked = evaluate.Spec(**shared, model=TRAINING.model, roles=("original",), evaluators=("accuracy",))
    evaluate.main(asked, evaluate.Files(archive, dealt, [], model, [model], [trace], evaluation, kept), Options())
    found = pd.read_csv(trace)
    assert found["accuracy"].iloc[-1] > found["accuracy"].iloc[0] + 0.05
    assert found["accuracy"].iloc[-1] > 0.1
    measured = pd.read_csv(evaluation).set_index("metric")["value"]
    assert measured["accuracy"] == pytest.approx(found["accuracy"].iloc[-1])
