"""The evaluation of a trial's models: role, metric, value; after a mistake everything is left as it is."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fu.evaluation import backdoor, clients, distance, predictions, utility
from fu.evaluation.context import Context
from fu.federation.network import Network
from fu.pipeline.stages import evaluate
from tests.pipeline.stages.scene import BUILD, MODEL, Scene, make_data, make_scene, model, refused


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)


def evaluated(scene: Scene, evaluators: tuple[str, ...], diverged: int | None = None) -> list[dict[str, str]]:
    """Evaluate two models of a trial, the recovered one first, whose traces say whose they are."""
    scene.save("original", model(0))
    scene.save("recovered", model(2))
    scene.save("unlearned", model(1), diverged)
    for name in ("recovered", "unlearned"):
        scene(f"{name}.csv").write_text(f"round,steps,conflicts\n0,0,\n1,5,{name}\n")
    return scene.evaluate(evaluate.Spec(**MODEL, roles=("recovered", "unlearned"), evaluators=evaluators))


def test_the_stage_leaves_everything_as_it_is_after_truncated_weights(scene: Scene) -> None:
    file = scene.save("original", model(0))
    file.write_bytes(file.read_bytes()[:1000])
    scene("evaluation.csv").write_text("an older result\n")
    named = {**scene.shared, "original": file, "models": file, "traces": scene("original.csv")}
    named |= {"evaluation": scene("evaluation.csv"), "predictions": scene("predictions.safetensors")}
    words = [text for name, path in named.items() for text in (f"--{name}", str(path))]
    spec = json.dumps({**MODEL, "roles": ["original"], "evaluators": ["utility"]})
    told = refused(scene.folder, evaluate, *words, "--spec", spec, "--device", "cpu")
    assert told.startswith(f"{file}: the weights file is truncated")


def test_an_evaluator_is_given_each_model_in_its_role_with_its_trace_and_the_original(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Context] = []

    def evaluate(context: Context) -> dict[str, float]:
        given.append(context)
        assert not torch.is_grad_enabled()
        return {"seen": len(given) / 2}

    monkeypatch.setattr(utility, "evaluate", evaluate)
    rows = evaluated(scene, ("utility",))
    assert [context.role for context in given] == ["recovered", "unlearned"]
    numbers = [("recovered", "seen", "", "0.5"), ("unlearned", "seen", "", "1.0")]
    assert [tuple(row.values()) for row in rows] == numbers
    for context, number in zip(given, (2, 1), strict=True):
        assert torch.equal(context.theta, model(number))
        assert context.original is not None
        assert torch.equal(context.original, model(0))
        assert context.trace == [
            {"round": "0", "steps": "0", "conflicts": ""},
            {"round": "1", "steps": "5", "conflicts": context.role},
        ]
        expected = make_data("all")
        for client in range(3):
            assert all(
                torch.equal(*pair) for pair in zip(context.data.train(client), expected.train(client), strict=True)
            )
        images, labels = context.data.train(1)
        assert all(torch.equal(*pair) for pair in zip((images, labels), context.data.backdoored(1), strict=True))


def test_the_numbers_of_an_evaluation_are_those_of_each_evaluator_in_order(scene: Scene) -> None:
    """A metric of every client has a row for each; a model that diverged has its round alone."""
    rows = evaluated(scene, ("distance", "backdoor", "utility", "clients"), diverged=7)
    network = Network(BUILD(), torch.device("cpu"))
    context = Context(network, make_data("all"), model(2), model(0), "recovered")
    expected = list[tuple[str, ...]]()
    for evaluator in (distance, backdoor, utility, clients):
        for metric, value in evaluator.evaluate(context).items():
            each = value.items() if isinstance(value, dict) else [("", value)]
            expected += [("recovered", metric, str(client), str(one)) for client, one in each]
    assert {client for _, _, client, _ in expected} == {"", "0", "1", "2"}
    assert [tuple(row.values()) for row in rows] == [*expected, ("unlearned", "diverged_round", "", "7")]


def test_the_logits_of_each_model_are_kept_on_the_same_probes_and_of_a_diverged_one_none(scene: Scene) -> None:
    evaluated(scene, ("distance",), diverged=7)
    path, network, data = scene("predictions.safetensors"), Network(BUILD(), torch.device("cpu")), make_data("all")
    gone = data.partition.train[1]
    tested = np.concatenate([data.partition.test[client] for client in (0, 2)])
    samples = {"forgotten": data.clean(gone), "triggered": data.backdoored(1), "retained": data.clean(tested)}
    found, labels = predictions.load(path, "recovered"), predictions.load(path, "labels")
    assert found.keys() == labels.keys() == samples.keys()
    for name, (x, y) in samples.items():
        assert torch.equal(found[name], network.logits(model(2), x))
        assert torch.equal(labels[name], y)
    assert predictions.load(path, "unlearned") == {}
