"""Sources: torchvision's real readers on small files, what is said without a network, the embedded digits."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from fu.data import sources
from fu.data.archives import Arrays
from fu.data.dataset import Dataset, about
from fu.errors import UserError
from tests.data.files import arrays_of, refuse_network, same, write_cifar, write_idx


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_network(monkeypatch)


def fetch(dataset: str, data_dir: Path) -> Arrays:
    return sources.fetch(dataset, about(dataset), data_dir)


@pytest.mark.parametrize(("dataset", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_files_of_mnist_are_read_through_torchvision(tmp_path: Path, dataset: str, folder: str) -> None:
    expected = arrays_of(dataset)
    write_idx(tmp_path / "torchvision" / folder / "raw", expected)
    found = fetch(dataset, tmp_path)
    assert {key: array.shape for key, array in found.items()} == {
        "x_train": (12, 28, 28, 1),
        "y_train": (12,),
        "x_test": (5, 28, 28, 1),
        "y_test": (5,),
    }
    same(found, expected)


def test_fashion_mnist_is_not_taken_from_the_folder_of_mnist(tmp_path: Path) -> None:
    write_idx(tmp_path / "torchvision" / "MNIST" / "raw", arrays_of("mnist"))
    with pytest.raises(UserError, match=r"^fashion_mnist could not be downloaded"):
        fetch("fashion_mnist", tmp_path)


@pytest.mark.parametrize(("dataset", "batches"), [("cifar10", 5), ("cifar100", 1)])
def test_files_of_cifar_are_read_through_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, batches: int
) -> None:
    expected = arrays_of(dataset)
    folder = write_cifar(tmp_path, dataset, expected, monkeypatch)
    assert len(list(folder.iterdir())) == batches + 2
    found = fetch(dataset, tmp_path)
    assert found["x_train"].shape == (12, 32, 32, 3)
    assert found["x_test"].shape == (5, 32, 32, 3)
    same(found, expected)


def one_sentence(dataset: str, data_dir: Path) -> str:
    with pytest.raises(UserError) as caught:
        fetch(dataset, data_dir)
    text = str(caught.value)
    assert text.startswith(f"{dataset} could not be downloaded")
    assert text.endswith(f"put the archive {data_dir / dataset}.npz in place (its format: docs/data.md).")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_a_download_without_network_names_the_archive_to_put_in_place(tmp_path: Path, dataset: str) -> None:
    one_sentence(dataset, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_batch_of_another_checksum_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_cifar(tmp_path, "cifar10", arrays_of("cifar10"), monkeypatch)
    with (folder / "data_batch_3").open("ab") as file:
        file.write(b"x")
    assert "no network" in one_sentence("cifar10", tmp_path)


@pytest.mark.parametrize("length", [0, 6, 100])
def test_a_torn_file_of_mnist_is_told_in_one_sentence(tmp_path: Path, length: int) -> None:
    folder = tmp_path / "torchvision" / "MNIST" / "raw"
    write_idx(folder, arrays_of("mnist"))
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:length])
    assert str(tmp_path / "torchvision") in one_sentence("mnist", tmp_path)


@pytest.mark.parametrize("kind", range(7, 15))
def test_a_file_of_mnist_with_another_type_is_told_in_one_sentence(tmp_path: Path, kind: int) -> None:
    folder = tmp_path / "torchvision" / "MNIST" / "raw"
    write_idx(folder, arrays_of("mnist"))
    content = bytearray((folder / "train-labels-idx1-ubyte").read_bytes())
    content[2] = kind
    (folder / "train-labels-idx1-ubyte").write_bytes(content)
    if kind == 8:  # the right one
        assert fetch("mnist", tmp_path).keys() == arrays_of("mnist").keys()
    else:
        assert str(tmp_path / "torchvision") in one_sentence("mnist", tmp_path)


def test_a_torn_download_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(bytes(1000))

    def tear(*_: Any, **__: Any) -> None:
        gzip.decompress(packed[:-9])

    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", tear)
    one_sentence("mnist", tmp_path)


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
    expected = f"fernweh: put the archive {tmp_path / 'fernweh.npz'} in place (its format: docs/data.md)."
    with pytest.raises(UserError) as caught:
        sources.fetch("fernweh", Dataset((28, 28, 1), 10, 100), tmp_path)
    assert str(caught.value) == expected
