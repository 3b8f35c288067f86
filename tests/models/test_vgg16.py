"""VGG16: its size, its maps, and where its weights come from."""

import hashlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fu.errors import UserError
from fu.models import vgg16, vgg16_bn
from fu.models.vgg16 import Params
from fu.pipeline.provenance import cached
from tests.data.files import refuse_network
from tests.factories import COLOUR, GREY

WIDTHS = [64, 64, 128, 128, *[256] * 3, *[512] * 6]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    refuse_network(monkeypatch)
    monkeypatch.setattr(torch.hub, "urlopen", urllib.request.urlopen)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    vgg16._features.cache_clear()
    yield
    vgg16._features.cache_clear()


def on_meta(shape: tuple[int, int, int] = COLOUR, **params: Any) -> nn.Module:
    with torch.device("meta"):
        return vgg16.build(shape, 10, Params(**params))


def test_vgg16_has_its_layers_and_no_normalisation() -> None:
    net = on_meta()
    assert sum(p.numel() for p in net.parameters()) == 14_719_818
    assert [layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d)] == WIDTHS
    kinds = {type(layer).__name__ for layer in net.modules()}
    assert kinds == {"Sequential", "Conv2d", "ReLU", "MaxPool2d", "Flatten", "Linear"}
    pools = [k for k, layer in enumerate(net[0]) if isinstance(layer, nn.MaxPool2d)]  # type: ignore[index, arg-type]
    assert pools == [4, 9, 16, 23, 30]  # as in torchvision, whose names the file has


def test_vgg16_bn_normalises_after_every_convolution_and_reads_no_file() -> None:
    net = vgg16_bn.build(COLOUR, 10, vgg16_bn.Params())
    assert sum(p.numel() for p in net.parameters()) == 14_719_818 + 2 * sum(WIDTHS) == 14_728_266
    kinds = [type(layer).__name__ for layer in net.children()]
    assert kinds[:7] == [*["Conv2d", "BatchNorm2d", "ReLU"] * 2, "MaxPool2d"]
    assert kinds.count("BatchNorm2d") == kinds.count("Conv2d") == 13
    assert net.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_the_plan_measures_vgg16_without_its_weights() -> None:
    found = cached.size("vgg16", {}, COLOUR, 10)
    assert found is not None
    assert found.parameters == 14_719_818


def test_random_weights_keep_the_scale_of_an_image_to_the_end() -> None:
    torch.manual_seed(0)
    net = vgg16.build(COLOUR, 10, Params(weights="random"))
    outputs = net[0](torch.randn(4, 3, 32, 32))  # type: ignore[index, operator]
    assert outputs.shape == (4, 512, 1, 1)
    assert 0.01 < outputs.std() < 1  # torch's own for convolutions: below 1e-4


def test_a_narrow_vgg16_has_random_weights() -> None:
    net = on_meta(weights="random", channels=(4, 4, 8, 8, 16))
    assert [layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d)] == [
        *[4] * 4,
        *[8] * 6,
        *[16] * 3,
    ]
    with pytest.raises(ValidationError, match=r"weights of ImageNet need \[64, 128, 256, 512, 512\]"):
        Params(channels=(4, 4, 8, 8, 16))


def weights_file(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bool = False) -> dict[str, Tensor]:
    """Put a file of weights in the cache of torch.hub, named by its checksum, and let the model expect it."""
    random = torch.Generator().manual_seed(5)
    names = on_meta().state_dict()
    weights = {
        f"features.{name.removeprefix('0.')}": torch.randn(value.shape, generator=random)
        for name, value in names.items()
        if name.startswith("0.")
    }
    path = folder / "hub" / "checkpoints" / "weights"
    path.parent.mkdir(parents=True)
    torch.save({**weights, "classifier.0.weight": torch.zeros(2)}, path)
    name = f"vgg16-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}.pth"
    path = path.rename(path.with_name(name))
    if damage:
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(vgg16, "PRETRAINED", name)
    return weights


def test_the_features_are_those_of_the_file_and_the_last_layer_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = weights_file(tmp_path, monkeypatch)
    torch.manual_seed(1)
    one = vgg16.build(COLOUR, 10, Params())
    for name, value in weights.items():
        assert torch.equal(one.state_dict()[name.replace("features", "0")], value)
    torch.manual_seed(2)
    other = vgg16.build(COLOUR, 10, Params())
    assert not torch.equal(one[2].weight, other[2].weight)  # type: ignore[index, arg-type]
    grey = vgg16.build(GREY, 10, Params())
    x = torch.randn(2, 1, 28, 28)
    torch.testing.assert_close(
        grey[0][0](x),  # type: ignore[index, operator]
        one[0][0](x.expand(-1, 3, -1, -1)),  # type: ignore[index, operator]
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("there", [False, True], ids=["absent", "damaged"])
def test_weights_that_are_not_there_are_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        weights_file(tmp_path, monkeypatch, damage=True)
    with pytest.raises(UserError) as caught:
        vgg16.build(COLOUR, 10, Params())
    path = tmp_path / "hub" / "checkpoints" / vgg16.PRETRAINED
    reason = "the file is damaged: its SHA-256 does not match" if there else "<urlopen error no network>"
    assert str(caught.value) == (
        f"{path}: missing pretrained weights ({reason}); download "
        f"https://download.pytorch.org/models/{vgg16.PRETRAINED} to this path or use random weights "
        "(model.params.weights: random)."
    )
    vgg16.build(COLOUR, 10, Params(weights="random"))
