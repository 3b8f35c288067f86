"""Checkpoints: a killed run goes on to the same bytes; what is not this run's checkpoint is ignored."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from fu.federation import model_files
from fu.federation.checkpoint import inside, state_of
from tests.federation.runs import Counted, KilledError, always, never, toy, train


@dataclass(frozen=True)
class Named(Counted):
    """A state with tensors by name."""

    bases: dict[str, Tensor]


@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path, killed_after: int) -> None:
    more: dict[str, Any] = {
        "evaluate_every": 2,
        "count_conflicts": True,
        "kinds": ("last_local_models",),
        "first_round": 5,
    }
    whole_task = toy()
    whole = train(whole_task, never(tmp_path), **more)
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path), killed_after, **more)
    task, seen = toy(), list[Tensor]()
    resumed = train(task, always(tmp_path), seen=seen, **more)
    assert len(seen) == 4 - killed_after
    assert resumed.state.theta.numpy().tobytes() == whole.state.theta.numpy().tobytes()
    assert isinstance(resumed.state, Counted)
    assert (resumed.state.rounds, resumed.state.third) == (9, 1 / 3)
    assert resumed.rows == whole.rows
    assert json.dumps(resumed.rows) == json.dumps(whole.rows)
    assert task.federation.cost == whole_task.federation.cost
    assert resumed.histories.keys() == whole.histories.keys() == {"last_local_models"}
    assert torch.equal(resumed.histories["last_local_models"]["theta"], whole.histories["last_local_models"]["theta"])


def test_a_checkpoint_of_another_key_is_ignored(tmp_path: Path) -> None:
    with pytest.raises(KilledError):
        train(toy(), always(tmp_path, "old"), 2)
    assert always(tmp_path, "new").load("cpu") is None
    assert always(tmp_path, "old").load("cpu") is not None
    seen: list[Tensor] = []
    outcome = train(toy(), always(tmp_path, "new"), seen=seen)
    assert len(seen) == 4
    assert torch.equal(outcome.state.theta, train(toy(), never(tmp_path / "other")).state.theta)


def test_a_checkpoint_that_is_cut_or_of_which_a_byte_or_shape_is_another_is_ignored(tmp_path: Path) -> None:
    checkpoint = always(tmp_path)
    checkpoint.save(Counted(torch.arange(6.0).reshape(2, 3), 3, 0.5), {"done": 2})
    content = checkpoint.path.read_bytes()
    changed = [content[:length] for length in range(len(content))]
    changed.append(content.replace(b'"shape":[2,3]', b'"shape":[3,2]'))
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        changed.append(bytes(flipped))
    for damaged in changed:
        assert damaged != content
        checkpoint.path.write_bytes(damaged)
        assert checkpoint.load("cpu") is None


@pytest.mark.parametrize(
    "write",
    [
        lambda path: save_file({}, path, metadata={"json": "[" * 5000}),
        lambda path: save_file({}, path, metadata={"json": '{"key": "key"}'}),
        lambda path: path.write_bytes(b"no checkpoint"),
        lambda path: model_files.save(path, toy().federation.layout, toy().original_model, None),
        Path.mkdir,
        os.mkfifo,
    ],
)
def test_what_is_no_checkpoint_is_ignored(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(always(tmp_path).path)
    assert always(tmp_path).load("cpu") is None


def test_a_checkpoint_keeps_tensors_numbers_and_notes_exactly(tmp_path: Path) -> None:
    shared = torch.randn(5).repeat(2, 1).T
    state = Named(shared, 3, 0.1 + 0.2, {"a.same": shared, "b": torch.ones(2)})  # tensors that share memory
    sums = {"sums": torch.arange(3.0)}
    notes = {"rows": [{"round": 1, "asr": 1 / 3, "nothing": None}], "done": 2}
    checkpoint = always(tmp_path)
    checkpoint.save(state, notes, {"update_sums": sums})
    found = checkpoint.load("cpu")
    assert found is not None
    loaded, said = found
    assert said == notes
    whole = state_of(Named, loaded)
    assert (whole.rounds, whole.third) == (3, 0.1 + 0.2)
    assert torch.equal(whole.theta, shared)
    assert whole.bases.keys() == {"a.same", "b"}
    assert torch.equal(whole.bases["a.same"], shared)
    assert torch.equal(inside(loaded, "history.update_sums")["sums"], sums["sums"])
    assert state_of(Named, {**vars(Counted(shared, 3, 0.5))}).bases == {}
    assert [path.name for path in tmp_path.iterdir()] == ["job.checkpoint"]
    checkpoint.clear()
    checkpoint.clear()
    assert list(tmp_path.iterdir()) == []
    assert checkpoint.load("cpu") is None
    assert checkpoint.due()
    assert not never(tmp_path).due()  # after its time alone
