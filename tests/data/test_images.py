"""Images that stay bytes until they are used are, to the bit, those that are held as float32."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fu.data import archives, clients, dataset
from fu.data.clients import ClientData
from fu.data.dataset import about
from fu.data.images import Streamed
from fu.errors import UserError
from tests.data.draws import LABELS, draw
from tests.data.files import arrays_of, same
from tests.factories import make_federation


def loaded(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, resident: int) -> ClientData:
    """Return clients' data with a backdoor; images of more bytes than `resident` are streamed."""
    archive, file = folder / f"{name}.npz", folder / "partition.npz"
    arrays = arrays_of(name, len(LABELS) - 100, 100)
    np.savez(archive, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    np.savez(file, allow_pickle=False, **draw(attacked=(2,)).arrays())  # type: ignore[arg-type]
    monkeypatch.setattr(dataset, "RESIDENT_BYTES", resident)
    return clients.load(archive, file, name, "patch", torch.device("cpu"), "share")


def seen(data: ClientData) -> list[torch.Tensor]:
    """Return whatever training, evaluation and artefacts ask for."""
    pairs = [data.train(client) for client in (0, 2)]
    pairs += [data.train(client, torch.tensor([5, 0, 3])) for client in (0, 2)]
    pairs += [data.held_out(1, "test"), data.global_test, data.backdoored(2), data.trained_on(LABELS[:9])]
    return [of for pair in pairs for of in pair]


@pytest.mark.parametrize("name", ["digits", "digits_rgb", "mnist"])
def test_streamed_images_are_those_that_are_held(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held, streamed = (loaded(tmp_path, name, monkeypatch, resident) for resident in (1 << 40, 0))
    assert isinstance(streamed.inputs, Streamed)
    assert (streamed.shape, streamed.inputs.shape, streamed.device) == (held.shape, held.x.shape, held.device)
    with pytest.raises(UserError, match=r"ClientData.x: images of this data set are streamed.*request some of them"):
        _ = streamed.x
    for one, other in zip(seen(held), seen(streamed), strict=True):
        assert torch.equal(one, other)


def test_a_model_trains_on_streamed_images_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    for resident in (1 << 40, 0):
        federation = make_federation(loaded(tmp_path, "digits", monkeypatch, resident))
        theta = federation.network.weights.clone()
        found.append(federation.local_updates(theta, [0, 2], 0).delta)
    assert torch.equal(*found)


def test_a_data_set_is_streamed_where_its_images_take_more_than_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name in ("mnist", "cifar10", "cifar100", "femnist", "shakespeare") if about(name).streamed] == [
        "femnist"
    ]
    needed = 4 * 70_000 * 28 * 28
    for resident, expected in ((needed, False), (needed - 1, True)):
        monkeypatch.setattr(dataset, "RESIDENT_BYTES", resident)
        assert about("mnist").streamed is expected


def test_a_mapped_array_is_read_as_it_was_written_and_changes_no_file(tmp_path: Path) -> None:
    path, arrays = tmp_path / "cifar10.npz", arrays_of("cifar10")
    np.savez(path, allow_pickle=False, **arrays)
    before = path.read_bytes()
    found = archives.read(path, "cifar10", mapped=True)
    same(found, arrays)
    assert [key for key, array in found.items() if isinstance(array, np.memmap)] == ["x_train", "x_test"]
    found["x_train"][:] = 0
    assert path.read_bytes() == before


def test_an_array_that_no_map_can_show_is_read(tmp_path: Path) -> None:
    path, arrays = tmp_path / "cifar10.npz", arrays_of("cifar10")
    arrays["x_test"] = np.asfortranarray(arrays["x_test"])
    np.savez(path, allow_pickle=False, **arrays)
    found = archives.read(path, "cifar10", mapped=True)
    same(found, arrays)
    np.savez_compressed(path, allow_pickle=False, **arrays)
    same(archives.read(path, "cifar10", mapped=True), arrays)
