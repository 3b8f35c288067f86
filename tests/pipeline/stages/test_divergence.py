"""Divergence of the original model is a result of every run that follows from it, and blocks nothing."""

from pathlib import Path
from typing import Any

from fu.evaluation import predictions
from fu.federation import model_files
from fu.pipeline.stages import evaluate, recover, train, unlearn
from tests.pipeline.stages.scene import LOCAL, MODEL, PHASE, make_scene

ROLES = ("original", "unlearned", "recovered")


def test_a_diverged_original_model_is_the_result_of_all_that_follows(tmp_path: Path) -> None:
    scene = make_scene(tmp_path)
    phase: dict[str, Any] = {**PHASE, "local": {**LOCAL, "lr": 1e30}}
    trained: dict[str, Any] = {"training": {"name": "fedavg"}, "history": ("last_local_models",), "server": None}
    scene.train(train.Spec(**phase, **trained))
    forgets: dict[str, Any] = {"method": {"name": "fupga"}, "training": None, "server": None, "watch": "conflicts"}
    scene.unlearn(unlearn.Spec(**phase, **forgets), history=True)
    scene.recover(recover.Spec(**phase, projection=None, client_weights="equal", first_round=2))
    rows = scene.evaluate(evaluate.Spec(**MODEL, roles=ROLES, evaluators=("utility",)))
    assert [tuple(row.values()) for row in rows] == [(role, "diverged_round", "", "1") for role in ROLES]
    assert [predictions.load(scene("predictions.safetensors"), role) for role in ROLES] == [{}] * 3
    assert {*predictions.load(scene("predictions.safetensors"), "labels")} == {"forgotten", "triggered", "retained"}
    models = [model_files.read(scene(f"{role}.safetensors")) for role in ROLES]
    assert models == [({}, {"diverged": 1})] * 3
