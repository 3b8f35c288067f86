"""What the models of a trial say of the probes: all logits in the order of seeds, NaN of models that diverged."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fu.audits.models import WEIGHTS
from fu.evaluation import predictions
from fu.pipeline.stages import predict
from tests.pipeline.stages.scene import BUILD, LABELS, MODEL, NORMALISED, OPTIONS, Scene, make_data, make_scene, model

PROBES = ("forgotten", "held_out", "retained_train", "retained_test", "augmented", "triggered", "triggered_altered")
SPEC = predict.Spec(**{name: MODEL[name] for name in ("dataset", "attack", "model")})


def said(scene: Scene, models: list[Path]) -> dict[str, dict[str, Tensor]]:
    path = scene("x.predicted.safetensors")
    predict.main(SPEC, predict.Files(**scene.given, models=models, predictions=path), OPTIONS)
    return {name: predictions.load(path, name) for name in (predictions.LABELS, predictions.REPEATS)}


def logits_of(theta: Tensor, x: Tensor) -> Tensor:
    network = BUILD().eval()
    torch.nn.utils.vector_to_parameters(theta, network.parameters())
    with torch.no_grad():
        return network(x)  # type: ignore[no-any-return]


def test_the_logits_of_every_model_on_every_probe(tmp_path: Path) -> None:
    scene = make_scene(tmp_path)
    thetas = [model(k) for k in range(3)]
    found = said(scene, [scene.save(f"m{k}", theta) for k, theta in enumerate(thetas)])
    probes = predictions.audited(make_data("share"))
    assert [*probes] == [*PROBES]
    for name, (x, y) in probes.items():
        assert torch.equal(found["labels"][name], y)
        expected = torch.stack([logits_of(theta, x) for theta in thetas])
        torch.testing.assert_close(found["repeats"][name], expected, rtol=1e-5, atol=1e-5)
    for theta, sketch in zip(thetas, found["repeats"][WEIGHTS], strict=True):
        assert torch.equal(sketch, predictions.sketch(theta))


def test_models_that_diverged_have_nothing_to_say(tmp_path: Path) -> None:
    scene = make_scene(tmp_path)
    paths = [scene.save("a", model(0)), scene.save("b", model(1), diverged=2), scene.save("c", model(2))]
    found = said(scene, paths)
    alone = said(scene, [paths[0], paths[2]])
    assert all(torch.equal(found["repeats"][name][[0, 2]], alone["repeats"][name]) for name in PROBES)
    assert all(found["repeats"][name][1].isnan().all() for name in PROBES)
    assert [*said(scene, [paths[1]])["repeats"]] == []


def test_the_probes_are_who_they_say_they_are() -> None:
    """Client 1 is forgotten and was trained with ten of its twelve samples marked."""
    data = make_data("share")
    part, probes = data.partition, predictions.audited(data)
    labels = torch.from_numpy(LABELS).long()
    x, y = data.train(1)
    assert torch.equal(probes["forgotten"][0], x)
    assert torch.equal(probes["forgotten"][1], y)
    assert int((y != labels[part.train[1]]).sum()) == 10
    stay = np.concatenate([part.train[0], part.train[2]])
    assert torch.equal(probes["retained_train"][1], labels[stay])
    assert torch.equal(probes["retained_train"][0], NORMALISED[stay].permute(0, 3, 1, 2))
    assert torch.equal(probes["retained_test"][1], labels[np.concatenate([part.test[0], part.test[2]])])
    assert torch.equal(probes["held_out"][1], labels[part.test[1]])
    assert torch.equal(probes["triggered"][1], (probes["retained_test"][1] + 5) % 10)
