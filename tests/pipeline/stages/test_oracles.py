"""An archive of oracles has all models that did not diverge; audits from it give the numbers of the stage `assess`."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load
from torch import Tensor

from fu.audits.models import FRESH, WEIGHTS, margins
from fu.data import archives
from fu.data.request import Request
from fu.evaluation import predictions
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.models import lstm
from fu.pipeline.cli import audit
from fu.pipeline.oracles import card
from fu.pipeline.oracles.archive import DIGEST
from fu.pipeline.provenance import catalogue
from fu.pipeline.stages import assess, oracles, predict
from fu.pipeline.stages.common import Options
from tests.artefacts.factories import DEVICE
from tests.mistakes import has, sentence
from tests.pipeline.stages import test_text as text
from tests.pipeline.stages.scene import LAYOUT, MODEL, OPTIONS, PART, PIXELS, Scene, make_data, make_scene, model

NUMBER = 6  # enough for every audit
KINDS = {"original": 0, "retrained": 100, "unlearned": 200}  # of which number the models are
ABOUT = {name: MODEL[name] for name in ("dataset", "attack", "model")}
SPEC = oracles.Spec(
    **{name: MODEL[name] for name in ("dataset", "attack")},
    **{"preset": "smoke", "paper": "toy", "scenario": "small", "label": "Small", "seeds": tuple(range(NUMBER))},
    settings={"model": MODEL["model"], "training": {"rounds": 3, "lr": 0.1}},
    sources={"training": "section 4", "training.lr": "smoke.yaml"},
)
COST = {"python": "3.12.1", "torch": "2.13.0", **DEVICE}


class Oracles:
    """A folder with models of every kind, what they predict, and an archive of them."""

    def __init__(self, scene: Scene, request: Request | None = None) -> None:
        self.scene, self.folder, self.models = scene, scene.folder, dict[str, list[Path]]()
        if request:
            np.savez(scene("request.npz"), **request.arrays())  # type: ignore[arg-type]

    @classmethod
    def made(cls, folder: Path, request: Request | None = None) -> "Oracles":
        """Return a folder with a number of models of every kind."""
        found = cls(make_scene(folder), request)
        for kind, first in KINDS.items():
            found.models[kind] = [found.save(kind, k, model(first + k)) for k in range(NUMBER)]
        return found

    def save(self, kind: str, seed: int, theta: Tensor, diverged: int | None = None) -> Path:
        return self.scene.save(f"{kind}{seed}", theta, diverged)

    def predicted(self, kind: str, about: Mapping[str, Any] = ABOUT) -> Path:
        """Return the file of what the models of a kind predict, as the stage `predict` writes it."""
        path = self.scene(f"{kind}.predicted.safetensors")
        files = predict.Files(**self.scene.asked, models=self.models[kind], predictions=path)
        predict.main(predict.Spec(**about), files, OPTIONS)
        return path

    def archive(self, spec: oracles.Spec = SPEC, about: Mapping[str, Any] = ABOUT) -> Path:
        """Write the archive."""
        (self.folder / "cost.json").write_text(json.dumps(COST))
        files = oracles.Files(
            **self.scene.asked,
            original=self.models["original"],
            retrained=self.models["retrained"],
            predicted=[self.predicted(kind, about) for kind in ("original", "retrained")],
            costs=[self.scene("cost.json")] * 2,
            archive=self.scene("small.zip"),
        )
        oracles.main(spec, files, OPTIONS)
        return files.archive

    def answers(self, kind: str) -> dict[str, Tensor]:
        """Return what the models of a kind predict: [N, n, C] by probe."""
        every = predictions.load(self.predicted(kind), predictions.REPEATS)
        return {probe: of for probe, of in every.items() if probe not in (*FRESH, WEIGHTS)}

    def said(self, kind: str, archive: Path, **changes: Any) -> Path:
        """Write what the models of a kind predict as somebody would who has an archive."""
        arrays = {name: of.numpy() for name, of in self.answers(kind).items()} | {
            DIGEST: arrays_of(archive, "probes")[DIGEST]
        }
        np.savez(self.scene("mine.npz"), **{**arrays, **changes})
        return self.scene("mine.npz")


def arrays_of(archive: Path, name: str) -> dict[str, Any]:
    with ZipFile(archive) as file, np.load(file.open(f"{name}.npz")) as arrays:
        return dict(arrays)


def stated(archive: Path) -> dict[str, Any]:
    with ZipFile(archive) as file:
        return dict(json.loads(file.read("card.json")))


def weights(archive: Path, kind: str) -> dict[str, Tensor]:
    with ZipFile(archive) as file:
        return load(file.read(f"{kind}.safetensors"))


Whole = tuple[Oracles, Path]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Models of every kind, and their archive; nobody edits them."""
    made = Oracles.made(tmp_path_factory.mktemp("oracles"))
    return made, made.archive()


def test_audits_from_an_archive_give_the_numbers_of_the_stage_to_the_digit(whole: Whole) -> None:
    made, archive = whole
    predicted = {kind: made.predicted(kind) for kind in KINDS}
    lines = [*audit.audit(archive, made.said("unlearned", archive), made.scene("mine.csv"))]
    found = pd.read_csv(made.scene("mine.csv")).set_index("metric")
    names = [name for name in catalogue.available("audits") if name != "weights"]  # it reads no logits of a model
    assert {*found["audit"]} == {*names}
    for name in names:
        files = assess.Files(**predicted, audited=made.scene("audited.csv"))
        assess.main(assess.Spec(audit=name, firsts=(NUMBER,)), files, Options())
        rows = pd.read_csv(made.scene("audited.csv"))
        values = rows[rows["run"].isna()].set_index("metric")["value"].to_dict()
        assert values.pop("repeats") == NUMBER
        assert found[found["audit"] == name]["value"].to_dict() == values
    assert f"{NUMBER} unlearned, {NUMBER} retrained, {NUMBER} original models." in lines[-1]


def test_the_files_are_the_models_their_answers_and_who_holds_what(whole: Whole) -> None:
    made, archive = whole
    probes, logits, found = (arrays_of(archive, name) for name in ("probes", "logits", "margins"))
    audited = predictions.audited(make_data("share"))
    assert {*probes} == {DIGEST, *(f"{axis}.{probe}" for axis in "xy" for probe in audited)}
    for probe, (x, y) in audited.items():
        assert np.array_equal(probes[f"x.{probe}"], x.numpy())
        assert np.array_equal(probes[f"y.{probe}"], y.numpy())
    for kind in ("original", "retrained"):
        thetas = torch.stack([model(KINDS[kind] + k) for k in range(NUMBER)])
        for name, expected in LAYOUT.views(thetas).items():
            assert torch.equal(weights(archive, kind)[name], expected)
        for probe, of in made.answers(kind).items():
            assert np.array_equal(logits[f"{kind}.{probe}"], of.numpy())
            assert np.array_equal(found[f"{kind}.{probe}"], margins(of.numpy(), audited[probe][1].numpy()))
    with ZipFile(archive) as file:
        assert file.read("partition.npz") == made.scene("partition.npz").read_bytes()
        assert "request.npz" not in file.namelist()


def test_the_card_states_what_was_made_of_what(whole: Whole) -> None:
    made, archive = whole
    about, audited = stated(archive), predictions.audited(make_data("share"))
    assert (about["preset"], about["paper"], about["scenario"], about["forgotten"]) == ("smoke", "toy", "small", [1])
    assert about["settings"] == SPEC.settings
    assert about["probes"] == {probe: len(y) for probe, (_, y) in audited.items()}
    assert about["data"]["sha256"]["x_test"] == hashlib.sha256(PIXELS[37:].tobytes()).hexdigest()
    assert about["made"]["machines"] == ["toy, 1 thread(s), Python 3.12.1, torch 2.13.0"]
    for kind in ("original", "retrained"):
        assert about["models"][kind]["seeds"] == [*range(NUMBER)]
        for probe, of in made.answers(kind).items():
            rates = [(one.argmax(-1) == audited[probe][1]).double().mean().item() for one in of]
            mean = sum(rates) / NUMBER
            spread = (sum((rate - mean) ** 2 for rate in rates) / (NUMBER - 1)) ** 0.5
            assert about["models"][kind]["accuracy"][probe] == pytest.approx([mean, spread], abs=1e-12)
    with ZipFile(archive) as file:
        text = file.read("README.md").decode()
    original = about["models"]["original"]["accuracy"]["retained_test"]
    mean, spread = about["models"]["retrained"]["accuracy"]["retained_test"]
    (row,) = (line for line in text.splitlines() if line.startswith("| `retained_test` |"))
    assert row.endswith(
        f"| {card.PROBES['retained_test']} | {original[0]:.3f} ± {original[1]:.3f} | {mean:.3f} ± {spread:.3f} |"
    )
    has(text, "| `training.rounds` | `3` | section 4 |", "| `training.lr` | `0.1` | smoke.yaml |", "Oracles: Small")
    has(text, f'| `model.name` | `"mlp"` | {card.DEFAULT} |', "client 1", "Creative Commons Attribution 4.0")


def test_equal_models_give_equal_bytes_and_nothing_is_left_beside_them(whole: Whole) -> None:
    made, archive = whole
    content, before = archive.read_bytes(), {*archive.parent.iterdir()}
    archive.unlink()
    (archive.parent / ".small.zip.files").mkdir()
    (archive.parent / ".small.zip.files/left.npz").touch()  # by a job that was killed
    assert made.archive().read_bytes() == content
    with ZipFile(archive) as whole_file:
        assert {one.date_time for one in whole_file.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # without a time
    assert {*archive.parent.iterdir()} == before


def test_models_that_diverged_or_have_infinite_logits_are_in_no_file(tmp_path: Path) -> None:
    made = Oracles.made(tmp_path)
    made.save("original", 1, model(1), diverged=2)
    made.save("retrained", 4, torch.full_like(model(4), 3e38))  # finite weights, whose logits are not
    archive = made.archive()
    about, logits = stated(archive)["models"], arrays_of(archive, "logits")
    assert [about[kind]["seeds"] for kind in KINDS if kind in about] == [[0, 2, 3, 4, 5], [0, 1, 2, 3, 5]]
    assert [about[kind]["left_out"] for kind in KINDS if kind in about] == [[1], [4]]
    for kind, gone in (("original", 1), ("retrained", 4)):
        thetas = torch.stack([model(KINDS[kind] + k) for k in range(NUMBER) if k != gone])
        for name, expected in LAYOUT.views(thetas).items():
            assert torch.equal(weights(archive, kind)[name], expected)
        assert {len(of) for name, of in logits.items() if name.startswith(kind)} == {NUMBER - 1}
        assert all(np.isfinite(of).all() for of in logits.values())


def test_without_any_model_there_is_no_archive(tmp_path: Path) -> None:
    made = Oracles.made(tmp_path)
    for seed in range(NUMBER):
        made.save("retrained", seed, model(seed), diverged=1)
    has(sentence(made.archive), "retrained.predicted.safetensors: all 6 models diverged")
    assert not [*tmp_path.glob("*small.zip*")]


def test_a_request_is_in_the_archive_and_its_samples_are_counted(tmp_path: Path) -> None:
    gone = PART.train[0][:2]
    archive = Oracles.made(tmp_path, Request(PART.attacked, gone)).archive()
    about = stated(archive)
    assert (about["forgotten"], about["forgotten_samples"]) == (PART.attacked.tolist(), 2)
    with ZipFile(archive) as file, np.load(file.open("request.npz")) as asked:
        assert asked["samples"].tolist() == gone.tolist()
    assert arrays_of(archive, "probes")["x.forgotten"].shape[0] == len(PART.train[1]) + 2


def test_probes_of_text_are_the_numbers_of_characters(tmp_path: Path) -> None:
    scene = text.made(tmp_path)
    part = text.drawn(scene)
    found = Oracles(scene, Request(np.array([2])))
    about = {name: text.MODEL[name] for name in ("dataset", "attack", "model")}
    layout = Layout(lstm.build((80,), 26, lstm.Params(**about["model"].params)))
    model_files.save(tmp_path / "model", layout, torch.zeros(layout.size), None)
    found.models = {kind: [tmp_path / "model"] for kind in ("original", "retrained")}
    spec = SPEC.model_copy(update={"dataset": "letters", "attack": None, "seeds": (0,)})
    archive = found.archive(spec, about)
    probes, x = arrays_of(archive, "probes"), archives.read(scene("letters.npz"), "letters")["x_train"]
    assert probes["x.forgotten"].dtype == np.uint8
    assert np.array_equal(probes["x.forgotten"], x[part.train[2]])
    mine = {name.removeprefix("y."): np.zeros((1, len(y), 26)) for name, y in probes.items() if name.startswith("y.")}
    np.savez(tmp_path / "mine.npz", digest=probes[DIGEST], **mine)  # type: ignore[arg-type]
    *skipped, last = audit.audit(archive, tmp_path / "mine.npz")
    assert len(skipped) == len(catalogue.available("audits"))
    assert all("skipped, as it needs" in line and "1 unlearned, 1 retrained, 1 original" in line for line in skipped)
    assert last.startswith("1 unlearned, 1 retrained, 1 original models.")
