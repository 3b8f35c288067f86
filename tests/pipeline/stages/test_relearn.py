"""What is written of the models that train on: theirs and the original's, by seed, attack, round and metric."""

from pathlib import Path
from typing import Any

import pytest
import torch

from fu.evaluation import backdoor, clients, forget_set
from fu.evaluation.context import Context
from fu.federation.local import Federation, LocalTraining
from fu.federation.network import Network
from fu.federation.relearning import ATTACKS, relearned, shared_out
from fu.federation.task import Task
from fu.pipeline.stages import relearn
from tests.pipeline.stages.scene import BUILD, LOCAL, MODEL, OPTIONS, Scene, make_data, make_scene, model, noted_tests

SEEDS = (5, 3)
ABOUT: dict[str, Any] = {"local": LOCAL, "rounds": 2, "samples": 4, "seeds": SEEDS}
ABOUT |= {"clients_per_round": None, "with_replacement": False, "traced": ("backdoor", "clients", "forget_set")}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)


def made(scene: Scene, lost: tuple[str, ...] = (), **changes: Any) -> list[dict[str, str]]:
    """Train the models 1 and 2 on, which come from 0 and 3; `lost`: those that diverged."""

    def save(name: str, number: int) -> Path:
        return scene.save(name, model(number), 1 if name in lost else None)

    originals, models = [save("o0", 0), save("o1", 3)], [save("m0", 1), save("m1", 2)]
    spec = relearn.Spec(**{name: MODEL[name] for name in ("dataset", "attack", "model")}, **{**ABOUT, **changes})
    relearned = scene("x.relearned.csv")
    relearn.main(spec, relearn.Files(**scene.given, models=models, originals=originals, relearned=relearned), OPTIONS)
    return scene.rows("x.relearned.csv")


def numbers(theta: torch.Tensor) -> dict[str, float]:
    """Return what evaluators say of a model, of the forgotten client's other samples alone."""
    _, others = shared_out(make_data("share"), 4)
    context = Context(Network(BUILD(), torch.device("cpu")), others, theta)
    return {**backdoor.trace(context), **clients.trace(context), **forget_set.trace(context)}


@pytest.mark.parametrize("drawn", [None, 1])
def test_a_row_for_each_seed_attack_round_and_metric(scene: Scene, drawn: int | None) -> None:
    rows = made(scene, clients_per_round=drawn)
    found: dict[tuple[int, str, int], dict[str, float]] = {}
    for row in rows:
        key = int(row["seed"]), row["attack"], int(row["round"])
        found.setdefault(key, {})[row["metric"]] = float(row["value"])
    assert sum(map(len, found.values())) == len(rows)
    taught, _ = shared_out(make_data("share"), 4)
    expected: dict[tuple[int, str, int], dict[str, float]] = {}
    for seed, original, own in zip(SEEDS, (0, 3), (1, 2), strict=True):
        federation = Federation(BUILD(), taught, LocalTraining(**LOCAL), "relearning", seed)
        task = Task(federation, BUILD, [1], [0, 2], 2, seed, model(original), clients_per_round=drawn)
        expected[seed, "original", 0] = numbers(model(original))
        for attack in ATTACKS:
            for round, theta in enumerate(relearned(task, model(own), attack)):
                expected[seed, attack, round] = numbers(theta)
    assert found == expected
    assert {"asr", "forget_set_accuracy", "retained_accuracy"} < set(found[5, "retained", 0])


@pytest.mark.parametrize("lost", ["o0", "m0"])
def test_a_seed_in_which_a_model_diverged_is_left_out(scene: Scene, lost: str) -> None:
    whole, rows = made(scene), made(scene, (lost,))
    assert rows == [row for row in whole if row["seed"] == "3"]


def test_no_client_trains_on_data_that_name_a_test_sample(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noted_tests(monkeypatch)
    made(scene)
    assert set(found) == {0}
