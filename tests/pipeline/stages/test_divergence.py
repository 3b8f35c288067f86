"""Divergence of the original model is a result of every run that follows from it, and blocks nothing."""

import csv
from pathlib import Path
from typing import Any

from fu.evaluation import predictions
from fu.federation import model_files
from fu.pipeline.stages import data, evaluate, partition, recover, train, unlearn
from fu.pipeline.stages.common import Options
from tests.data.draws import BACKDOOR
from tests.pipeline.stages import drawing

ROLES = ("original", "unlearned", "recovered")


def test_a_diverged_original_model_is_the_result_of_all_that_follows(tmp_path: Path) -> None:
    options = Options(checkpoint_seconds=0)
    archive, drawn, history = tmp_path / "digits.npz", tmp_path / "partition.npz", tmp_path / "history.safetensors"
    data.main(data.Spec(dataset="digits", archive=None), data.Files(tmp_path, archive), options)
    values: dict[str, Any] = {"partition": {"name": "iid"}, "samples": None, "clients": 3, "attacked": 1}
    values |= {"split": "merged", "test": "clients", "server": 0, "held_out": 0, "absent": 0}
    values |= {"train_share": 0.2, "validation_share": 0.0}
    values |= {"attack": {"name": "patch", "params": BACKDOOR.model_dump()}}
    partition.main(partition.Spec(dataset="digits", seed=0, **values), partition.Files(archive, drawn), options)
    shared: dict[str, Any] = {"dataset": "digits", "attack": "patch", "seed": 0}
    shared["model"] = {"name": "mlp", "params": {"hidden": 8}}
    phase = {**shared, **drawing.PHASE, "local": {**drawing.LOCAL, "lr": 1e30, "batch_size": 64}}
    models = {role: tmp_path / f"{role}.safetensors" for role in ROLES}

    def outputs(role: str) -> dict[str, Path]:
        return {"model": models[role], "trace": tmp_path / f"{role}.csv", "cost": tmp_path / f"{role}.json"}

    train.main(
        train.Spec(**phase, training={"name": "fedavg"}, rounds=3, history=("last_local_models",), server=None),
        train.Files(archive, drawn, [], **outputs("original"), history=history),
        options,
    )
    unlearn.main(
        unlearn.Spec(**phase, method={"name": "fupga"}, training=None, server=None, rounds=2, watch="conflicts"),
        unlearn.Files(archive, drawn, [], original=models["original"], history=[history], **outputs("unlearned")),
        options,
    )
    given = {"original": models["original"], "unlearned": models["unlearned"]}
    recover.main(
        recover.Spec(**phase, projection=None, client_weights="equal", rounds=2, first_round=2),
        recover.Files(archive, drawn, [], **given, **outputs("recovered")),
        options,
    )
    result, kept = tmp_path / "evaluation.csv", tmp_path / "predictions.safetensors"
    traces = [outputs(role)["trace"] for role in ROLES]
    evaluate.main(
        evaluate.Spec(**shared, roles=ROLES, evaluators=("utility",)),
        evaluate.Files(archive, drawn, [], models["original"], list(models.values()), traces, result, kept),
        options,
    )
    with result.open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [(role, "diverged_round", "", "1") for role in ROLES]
    assert [predictions.load(kept, role) for role in ROLES] == [{}] * 3
    assert {*predictions.load(kept, "labels")} == {"forgotten", "triggered", "retained"}
    assert [model_files.read(path) for path in models.values()] == [({}, {"diverged": 1})] * 3
