"""The evaluation of a trial's models: role, metric, value; after a mistake everything is left as it is."""

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fu.evaluation import backdoor, distance, predictions, utility
from fu.evaluation.context import Context
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.federation.network import Network
from fu.federation.task import initial_parameters
from fu.pipeline.stages import evaluate, partition
from fu.pipeline.stages.common import Options
from tests.factories import DIGITS, builder
from tests.mistakes import write_archive
from tests.pipeline.stages import drawing
from tests.pipeline.stages.scene import BUILD, MODEL, OPTIONS, Scene, make_data, make_scene, model, refused

HIDDEN = 4
OLDER = "an older result\n"


def spec(roles: Sequence[str], evaluators: Sequence[str]) -> str:
    model = {"name": "mlp", "params": {"hidden": HIDDEN}}
    about = {"dataset": "digits", "attack": None, "model": model, "seed": 0}
    return json.dumps({**about, "roles": roles, "evaluators": evaluators})


@pytest.fixture
def files(tmp_path: Path) -> evaluate.Files:
    """Forty images with their partition, an original model, an unlearned one and a diverged one, and their traces."""
    labels = np.repeat(np.arange(10, dtype=np.uint8), 2)
    images = np.arange(20 * 20 * 20).reshape(20, 20, 20, 1).astype(np.uint8)
    archive = write_archive(tmp_path / "digits.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    part = tmp_path / "partition.npz"
    partition.main(partition.Spec(**drawing.SPEC), partition.Files(archive, part), Options())
    build = builder("mlp", DIGITS, hidden=HIDDEN)
    layout, models, traces = Layout(build()), [], []
    for number, (name, diverged) in enumerate({"original": None, "unlearned": None, "recovered": 3}.items()):
        models.append(tmp_path / f"{name}.safetensors")
        model_files.save(models[-1], layout, initial_parameters(build, number), diverged)
        traces.append(tmp_path / f"{name}.csv")
        traces[-1].write_text("round\n")
    output = tmp_path / "original.evaluation.csv"
    output.write_text(OLDER)
    return evaluate.Files(archive, part, [], models[0], models, traces, output, tmp_path / "predictions.safetensors")


def test_every_model_has_a_row_for_each_metric_and_a_diverged_one_its_round(files: evaluate.Files) -> None:
    roles = ("original", "unlearned", "recovered")
    text = spec(roles, ["utility", "distance"])
    evaluate.main(evaluate.Spec.model_validate_json(text), files, Options(device="cpu"))
    with files.evaluation.open(newline="") as file:
        rows = [(row["role"], row["metric"], float(row["value"])) for row in csv.DictReader(file)]
    found = {role: {metric: value for which, metric, value in rows if which == role} for role in roles}
    assert sum(map(len, found.values())) == len(rows)
    assert found["recovered"] == {"diverged_round": 3.0}
    assert {"r_acc", "distance"} <= set(found["unlearned"])
    thetas = [model_files.load(path, Layout(builder("mlp", DIGITS, hidden=HIDDEN)()))[0] for path in files.models[:2]]
    distance = float((thetas[1] - thetas[0]).norm())  # type: ignore[operator,union-attr]
    assert found["original"].get("distance", 0.0) == 0.0
    assert found["unlearned"]["distance"] == pytest.approx(distance)


def test_the_stage_leaves_everything_as_it_is_after_truncated_weights(tmp_path: Path, files: evaluate.Files) -> None:
    model = files.original
    model.write_bytes(model.read_bytes()[:1000])
    named = {"data": files.data, "partition": files.partition, "original": model, "models": model}
    named |= {"traces": files.traces[0], "evaluation": files.evaluation, "predictions": files.predictions}
    words = [text for name, path in named.items() for text in (f"--{name}", str(path))]
    told = f"{model}: the weights file is truncated"
    words += ["--spec", spec(["original"], ["utility"]), "--device", "cpu"]
    assert refused(tmp_path, evaluate, *words).startswith(told)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)


def evaluated(scene: Scene, evaluators: tuple[str, ...], diverged: int | None = None) -> list[dict[str, str]]:
    """Evaluate two models of a trial, the recovered one first, whose traces say whose they are."""
    models = [scene.save("recovered", model(2)), scene.save("unlearned", model(1), diverged)]
    for name in ("recovered", "unlearned"):
        scene(f"{name}.csv").write_text(f"round,steps,conflicts\n0,0,\n1,5,{name}\n")
    traces = [scene(f"{name}.csv") for name in ("recovered", "unlearned")]
    files = evaluate.Files(
        **scene.given,
        original=scene.save("original", model(0)),
        models=models,
        traces=traces,
        evaluation=scene("evaluation.csv"),
        predictions=scene("predictions.safetensors"),
    )
    evaluate.main(evaluate.Spec(**MODEL, roles=("recovered", "unlearned"), evaluators=evaluators), files, OPTIONS)
    return scene.rows("evaluation.csv")


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
    rows = evaluated(scene, ("distance", "backdoor", "utility"), diverged=7)
    network = Network(BUILD(), torch.device("cpu"))
    context = Context(network, make_data("all"), model(2), model(0), "recovered")
    expected = {**distance.evaluate(context), **backdoor.evaluate(context), **utility.evaluate(context)}
    assert [(row["role"], row["metric"], row["value"]) for row in rows] == [
        *(("recovered", metric, str(value)) for metric, value in expected.items()),
        ("unlearned", "diverged_round", "7"),
    ]


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


def test_a_metric_of_every_client_has_a_row_for_each(files: evaluate.Files) -> None:
    text = spec(("original",), ["clients", "distance"])
    only = replace(files, models=files.models[:1], traces=files.traces[:1])
    evaluate.main(evaluate.Spec.model_validate_json(text), only, Options(device="cpu"))
    with files.evaluation.open(newline="") as file:
        rows = list(csv.DictReader(file))
    named = [(row["metric"], row["client"]) for row in rows]
    metrics = ("client_accuracy", "client_loss", "client_samples", "client_forgotten")
    means = [("all_accuracy", ""), ("retained_accuracy", "")]
    each = [(metric, str(client)) for metric in metrics for client in range(2)]
    assert named == [*means, *each, ("distance", "")]
    assert [float(row["value"]) for row in rows if row["metric"] == "client_samples"] == [15, 15]
