"""Models of a run that consists of their files and certificates alone."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fu import results
from fu.contents import checksum
from fu.errors import UserError
from fu.federation import model_files
from fu.federation.flat import Layout
from fu.pipeline.provenance import certificate, digest
from fu.pipeline.provenance.certificate import Certificate
from fu.pipeline.provenance.paths import certificate_of
from tests.factories import DIGITS, builder

PARTS = digest.parts("fu.models.mlp")


def make(root: Path, name: str, theta: Tensor, diverged: int | None = None, parts: dict[str, str] = PARTS) -> Path:
    """Write a model of the scenario `s` on digits and its certificate."""
    path = root / f"here/p/s/seed0/{name}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    model_files.save(path, Layout(builder(shape=DIGITS)()), theta, diverged)
    spec = {"dataset": "digits", "model": {"name": "mlp", "params": {"hidden": 8}}}
    original = [[f"results/here/p/s/seed0/original.trained{path.suffix}", ""]]
    outputs = {path.name: (path.stat().st_size, checksum(path))}
    stage = "train" if name.endswith("trained") else "unlearn"
    certificate.write(certificate_of(path), Certificate("", stage, spec, "", parts, {"original": original}, outputs))
    return path


@pytest.fixture
def thetas(tmp_path: Path) -> dict[str, Tensor]:
    """The weights of the models of a method, by role, whose files are in `tmp_path`."""
    torch.manual_seed(0)
    size = Layout(builder(shape=DIGITS)()).size
    ends = {"original.trained": "original", "m+lr0.1.unlearned": "unlearned", "m+lr0.1.recovered": "recovered"}
    thetas = {role: torch.randn(size) for role in ends.values()}
    for name, role in ends.items():
        make(tmp_path, name, thetas[role])
    return thetas


def theta(model: nn.Module) -> Tensor:
    """Return the weights of a model [d]."""
    return Layout(model).flatten(dict(model.named_parameters()))


def test_the_last_model_is_returned_unless_a_role_is_named(tmp_path: Path, thetas: dict[str, Tensor]) -> None:
    state = torch.random.get_rng_state()
    models = {role: results.model("p", "s", "m", role=role, root=tmp_path) for role in ("unlearned", "recovered")}
    models["original"] = results.model("p", "s", root=tmp_path)
    assert all(torch.equal(theta(model), thetas[role]) for role, model in models.items())
    assert torch.equal(theta(results.model("p", "s", "m", root=tmp_path)), thetas["recovered"])
    assert not any(model.training for model in models.values())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_of_several_points_one_must_be_chosen_or_named(tmp_path: Path, thetas: dict[str, Tensor]) -> None:
    make(tmp_path, "m+lr0.2.unlearned", 2 * thetas["unlearned"])
    with pytest.raises(UserError, match=r"/here/p: no grid point of 'm' was chosen; pass one: lr0\.1, lr0\.2\.$"):
        results.model("p", "s", "m", root=tmp_path)
    named = results.model("p", "s", "m", point="lr0.2", root=tmp_path)
    assert torch.equal(theta(named), 2 * thetas["unlearned"])


def test_a_model_that_is_not_as_its_job_made_it_is_refused(tmp_path: Path, thetas: dict[str, Tensor]) -> None:
    def refused(reason: str) -> None:
        with pytest.raises(UserError, match=rf"original\.trained\.safetensors: {reason} "):
            results.model("p", "s", root=tmp_path)

    path = make(tmp_path, "original.trained", thetas["original"], parts={**PARTS, "fu.models.mlp": "00000000"})
    refused(r"fu\.models\.mlp was edited after this model")
    make(tmp_path, "original.trained", thetas["original"], diverged=3)
    refused("the run diverged in round 3, so this")
    content = path.read_bytes()
    path.unlink()
    refused("there is no such file; make it")
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(r"the content does not match original\.trained\.made\.json;")
    certificate_of(path).unlink()
    refused(r"its certificate original\.trained\.made\.json")
