"""A model of one's own: which files hold one, and that only retraining trains."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fu.contents import checksum
from fu.errors import UserError
from fu.federation.flat import tensors_of
from fu.training import checkpoint, fedavg
from tests.factories import builder, make_federation, make_task, params_of


def write(path: Path, changed: dict[str, Any] | None = None) -> Any:
    torch.manual_seed(5)
    tensors = {name: tensor.detach() for name, tensor in tensors_of(builder()()).items()} | (changed or {})
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return params_of(checkpoint, file=str(path), sha256=checksum(path))


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt"])
def test_the_original_model_is_that_of_the_file(tmp_path: Path, name: str) -> None:
    p, task = write(tmp_path / name), make_task(trained=False)
    checkpoint.check(builder()(), p)
    state = checkpoint.start(task, p)
    torch.manual_seed(5)
    expected = {name: tensor.detach() for name, tensor in tensors_of(builder()()).items()}
    found = task.federation.layout.views(state.theta)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[one], expected[one]) for one in expected)
    assert checkpoint.step(task, p, state, 0) is state
    assert set(task.federation.cost.record().values()) == {0}


def test_retraining_is_fedavg_from_a_fresh_model(tmp_path: Path) -> None:
    p, task, again = write(tmp_path / "model.pt"), make_task(), make_task()
    state = checkpoint.start(task, p)
    assert torch.equal(state.theta, task.first_model())
    expected = fedavg.step(again, params_of(fedavg), state, 1).theta
    torch.testing.assert_close(checkpoint.step(task, p, state, 1).theta, expected)
    assert task.federation.cost.forgotten_rounds == 0


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"1.bias": torch.zeros(9)}, r"the weights do not fit the model: '1.bias' is \(9,\)"),
        ({"9.bias": torch.zeros(9)}, r"the weights do not fit the model: '9.bias' is \(9,\)"),
        ({"1.bias": torch.tensor([0.0] * 7 + [torch.inf])}, "'1.bias' is not finite"),
        ({"1.bias": torch.full((8,), 1e300, dtype=torch.double)}, "'1.bias' is not finite"),
        ({"1.bias": 3}, r"must hold named tensors \(a state_dict\), got dict"),
    ],
)
def test_another_model_is_refused(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    p = write(tmp_path / "model.pt", changed)
    with pytest.raises(UserError, match=f"model.pt: {sentence}"):
        checkpoint.check(builder()(), p)


@pytest.mark.parametrize("name", ["model.safetensors", "model.pt"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"no model")
    p = params_of(checkpoint, file=str(tmp_path / name))
    with pytest.raises(UserError, match=f"{name}: is neither safetensors nor a state_dict written by torch.save"):
        checkpoint.check(builder()(), p)


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    p = write(tmp_path / "model.pt")
    write(tmp_path / "model.pt", {"1.bias": torch.ones(8)})
    with pytest.raises(UserError, match=r"model\.pt: the file has changed since the plan was made"):
        checkpoint.start(make_task(make_federation(), trained=False), p)
