"""Model files: what is loaded is what was saved, and what is no weights file is told in one sentence."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fu.federation import model_files
from fu.federation.flat import Layout
from fu.models import mlp
from tests.factories import GREY, builder
from tests.mistakes import has, sentence

CPU = torch.device("cpu")


def lenet() -> Layout:
    return Layout(builder("lenet5", GREY)())


def mlp_weights(path: Path) -> None:
    model = mlp.build((28, 28, 1), 10, mlp.Params(hidden=4))
    save_file({name: tensor.detach().clone() for name, tensor in model.named_parameters()}, path)


def test_a_model_is_loaded_as_it_was_saved_under_the_names_of_its_parameters(tmp_path: Path) -> None:
    path, layout = tmp_path / "original.safetensors", lenet()
    theta = torch.arange(layout.size, dtype=torch.float32)
    model_files.save(path, layout, theta, None)
    found, diverged = model_files.load(path, layout)
    assert diverged is None
    assert torch.equal(found, theta)  # type: ignore[arg-type]
    tensors = load_file(path)
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == layout.shapes
    assert all(torch.equal(tensors[name], view) for name, view in layout.views(theta).items())


def test_the_file_of_a_diverged_run_holds_its_round_and_no_tensors(tmp_path: Path) -> None:
    path, layout = tmp_path / "original.safetensors", lenet()
    model_files.save(path, layout, torch.zeros(layout.size), 7)
    assert model_files.load(path, layout) == (None, 7)
    assert load_file(path) == {}


def test_histories_of_all_kinds_lie_in_one_file_and_are_loaded_apart(tmp_path: Path) -> None:
    path = tmp_path / "original.history.safetensors"
    norms = {"norms": torch.tensor([0.0, 1.0, math.inf])}  # a squared norm may overflow
    sums = {"norms": torch.ones(2, 2).t(), "weights": torch.tensor([4, 5])}
    model_files.save_histories(path, {"update_norms": norms, "update_sums": sums})
    assert set(load_file(path)) == {"update_norms.norms", "update_sums.norms", "update_sums.weights"}
    for kind, record in {"update_norms": norms, "update_sums": sums}.items():
        found = model_files.load_history(path, kind, CPU)
        assert set(found) == set(record)
        assert all(torch.equal(found[name], value) for name, value in record.items())
    text = sentence(lambda: model_files.load_history(path, "update", CPU))
    has(text, f"{path}: the file has no history 'update'; delete it")


def noted(notes: str, **tensors: torch.Tensor) -> Callable[[Path], None]:
    """Return what writes a file with these notes."""
    return lambda path: save_file(tensors, path, metadata={"fu": notes})


def cut_in_two(path: Path) -> None:
    mlp_weights(path)
    path.write_bytes(path.read_bytes()[:200])


def with_nan(path: Path) -> None:
    theta = torch.zeros(lenet().size)
    theta[-1] = torch.nan
    model_files.save(path, lenet(), theta, None)


def with_doubles(path: Path) -> None:
    named = lenet().named(torch.zeros(lenet().size))
    save_file({**named, "0.bias": named["0.bias"].double()}, path)


BROKEN = "the weights file is truncated or damaged; delete it and start the run again"


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (cut_in_two, BROKEN),
        *((noted(notes), BROKEN) for notes in ("no JSON", "7", "[" * 5000, '{"diverged": true}')),
        (noted('{"diverged": 3}', x=torch.ones(1)), BROKEN),
        (mlp_weights, "the weights do not fit the model: '0.bias' is absent, expected (6,)"),
        (with_nan, "some weights are not finite; delete"),
        (with_doubles, "'0.bias' is torch.float64, but weights are float32"),
        (lambda path: None, "there is no such file"),
    ],
)
def test_what_holds_no_weights_of_the_model_is_told_in_one_sentence(
    tmp_path: Path, write: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "original.safetensors"
    write(path)
    has(sentence(lambda: model_files.load(path, lenet())), f"{path}: ", words)
