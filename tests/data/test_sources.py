"""Sources: torchvision's real readers on small files, what is said without a network, the embedded digits."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from fu.data import sources, torchvision_import
from fu.data.archives import Arrays
from fu.data.dataset import Dataset, about
from fu.errors import UserError
from tests.data.files import arrays_of, refuse_network, same, write_idx
from tests.mistakes import sentence


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_network(monkeypatch)


def fetch(dataset: str, data_dir: Path) -> Arrays:
    return sources.fetch(dataset, about(dataset), data_dir)


@pytest.mark.parametrize(("dataset", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_files_of_mnist_are_read_through_torchvision(tmp_path: Path, dataset: str, folder: str) -> None:
    expected = arrays_of(dataset)
    write_idx(tmp_path / "torchvision" / folder / "raw", expected)
    same(fetch(dataset, tmp_path), expected)


def test_images_of_colour_are_read_through_torchvision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its class for CIFAR gives an array, and classes as a list."""
    expected = arrays_of("cifar10")

    def cifar(root: str, train: bool, download: bool) -> SimpleNamespace:
        split = "train" if train else "test"
        return SimpleNamespace(data=expected[f"x_{split}"], targets=expected[f"y_{split}"].tolist())

    monkeypatch.setattr(torchvision_import, "datasets", lambda: SimpleNamespace(CIFAR10=cifar))
    same(fetch("cifar10", tmp_path), expected)


@pytest.mark.parametrize("dataset", ["mnist", "cifar100"])
def test_what_is_torn_or_cannot_be_downloaded_names_the_archive_to_put_in_place(tmp_path: Path, dataset: str) -> None:
    write_idx(tmp_path / "torchvision" / "MNIST" / "raw", arrays_of("mnist"))
    (tmp_path / "torchvision" / "MNIST" / "raw" / "train-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03")
    text = sentence(lambda: fetch(dataset, tmp_path))
    assert text.startswith(f"{dataset} could not be downloaded to {tmp_path / 'torchvision'} (")
    assert text.endswith(f"put the archive {tmp_path / dataset}.npz in place (its format: docs/data.md).")


SMALL = np.round(load_digits().images * 255 / 16).astype(np.uint8)


def embedded(dataset: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all images and classes of a stand-in."""
    arrays = sources.digits(about(dataset))
    assert {array.dtype.name for array in arrays.values()} == {"uint8"}
    assert (len(arrays["y_train"]), len(arrays["y_test"])) == (1540, 257)
    return (
        np.concatenate([arrays["x_train"], arrays["x_test"]]),
        np.concatenate([arrays["y_train"], arrays["y_test"]]),
    )


@pytest.mark.parametrize(("dataset", "channels"), [("digits", 1), ("digits_rgb", 3)])
def test_embedded_digits_are_enlarged_pixels(dataset: str, channels: int) -> None:
    x, y = embedded(dataset)
    assert x.shape == (1797, 20, 20, channels)
    np.testing.assert_array_equal(y, load_digits().target)
    inner = x[:, 2:-2, 2:-2]
    assert int(x.sum()) == int(inner.sum())
    for down in range(2):
        for right in range(2):
            for channel in range(channels):
                np.testing.assert_array_equal(inner[:, down::2, right::2, channel], SMALL)


def test_stand_ins_differ_by_shifts_noise_and_classes() -> None:
    (plain, y), (shifted, _), (noisy, _) = (embedded(name) for name in ("digits", "digits_shifted", "digits_noisy"))
    moves = {(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)}
    moved = [
        {move for move in moves if (np.roll(x, move, (0, 1)) == z).all()} for x, z in zip(plain, shifted, strict=True)
    ]
    assert all(len(found) == 1 for found in moved)
    assert set().union(*moved) == moves
    assert (noisy >= plain).all()
    assert int((noisy * (plain == 0)).max()) == 64
    (colour, _), (twenty, classes) = embedded("digits_rgb"), embedded("digits_rgb_20")
    np.testing.assert_array_equal(twenty[::2], colour[::2])
    np.testing.assert_array_equal(twenty[1::2], 255 - colour[1::2])
    np.testing.assert_array_equal(classes, y + 10 * (np.arange(1797) % 2))


def test_embedded_text_is_the_alphabet_with_skips() -> None:
    arrays = fetch("letters", Path("nowhere"))
    assert str(arrays["vocabulary"]) == "abcdefghijklmnopqrstuvwxyz"
    follows = []
    for split, (least, most) in (("train", (32, 128)), ("test", (8, 32))):
        x, y, owners = (arrays[f"{name}_{split}"].astype(int) for name in ("x", "y", "client"))
        assert (min(np.bincount(owners)), max(np.bincount(owners))) == (least, most)
        same = owners[1:] == owners[:-1]
        np.testing.assert_array_equal(x[1:, -1][same], y[:-1][same])
        np.testing.assert_array_equal(x[1:, :-1][same], x[:-1, 1:][same])
        skips = y != (x[:, -1] + 1) % 26
        assert set(((y - owners) % 26)[skips].tolist()) == set(range(7))
        follows.append(1 - skips.mean())
    assert follows == pytest.approx([0.9, 0.9], abs=0.03)


def test_a_data_set_comes_from_where_it_says(tmp_path: Path) -> None:
    same(fetch("digits", tmp_path), sources.digits(about("digits")))
    same(fetch("letters", tmp_path), sources.letters(about("letters")))
    with pytest.raises(UserError, match=r"^fernweh: put the archive .*fernweh\.npz in place \(its format: docs/data"):
        sources.fetch("fernweh", Dataset((28, 28, 1), 10, 100), tmp_path)
