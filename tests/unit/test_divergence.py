"""Divergence of the original model is a result of every run that follows from it, and blocks nothing."""

import csv
import json
from pathlib import Path
from typing import Any

from fu.plan.specs import TORCH
from fu.stages import data, evaluate, partition, recover, train, unlearn

SHARED: dict[str, Any] = {"dataset": "digits", "model": {"name": "mlp", "params": {"hidden": 8}}, "seed": 0}
SHARED["torch"] = TORCH
PHASE = {**SHARED, "local": {"lr": 1e30, "lr_decay": 1.0, "batch_size": 64, "local_epochs": 1}, "evaluate_every": 1}
PARTITION = {
    **{"dataset": "digits", "seed": 0, "clients": 3, "partition": {"kind": "iid", "classes_per_client": None}},
    **{"train_share": 0.2, "validation_share": 0.0, "forget": {"clients": 1}},
    "backdoor": {"share": 0.8, "size": 3, "margin": 1, "value": 0.8333, "label_shift": 0.5},
}


def call(stage: Any, spec: dict[str, Any], **paths: Path | list[Path]) -> None:
    argv = ["--spec", json.dumps(spec)]
    for name, path in paths.items():
        argv += [f"--{name.replace('_', '-')}", *map(str, path if isinstance(path, list) else [path])]
    stage.main(argv)


def outputs(folder: Path, name: str) -> dict[str, Path]:
    return {"model": folder / f"{name}.safetensors", "trace": folder / f"{name}.csv", "cost": folder / f"{name}.json"}


def test_a_diverged_original_model_is_the_result_of_all_that_follows(tmp_path: Path) -> None:
    archive, drawn = tmp_path / "digits.npz", tmp_path / "partition.npz"
    call(data, {"dataset": "digits", "archive": None}, data_dir=tmp_path, output=archive)
    call(partition, PARTITION, data=archive, output=drawn)
    files = {"data": archive, "partition": drawn}
    history = tmp_path / "history.target_model.safetensors"
    spec = {**PHASE, "training": {"name": "fedavg", "params": {}}, "rounds": 3, "history": ["target_model"]}
    original = outputs(tmp_path, "original")
    call(train, spec, **files, **original, histories=[history])

    method = {**PHASE, "method": {"name": "fupga", "params": {}}, "rounds": 2}
    unlearned, recovered = outputs(tmp_path, "fupga.unlearned"), outputs(tmp_path, "fupga.recovered")
    files["original"] = original["model"]
    call(unlearn, {**method, "conflicts": True}, **files, **unlearned, histories=[history])
    spec = {**method, "client_weights": "equal", "first_round": 2}
    call(recover, spec, **files, unlearned=unlearned["model"], **recovered)
    models = [run["model"] for run in (original, unlearned, recovered)]
    traces = [run["trace"] for run in (original, unlearned, recovered)]
    result = tmp_path / "evaluation.csv"
    call(evaluate, {**SHARED, "evaluators": ["utility"]}, **files, models=models, traces=traces, output=result)
    with result.open() as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [(role, "diverged_round", "1") for role in ("original", "unlearned", "recovered")]
