"""Data sets: the archive format, torchvision's real readers on small files, the embedded digits, normalisation."""

import gzip
import hashlib
import json
import pickle
import struct
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from fu.data import archives, clients, partition, sources
from fu.data.archives import Arrays
from fu.data.torchvision_import import datasets
from fu.errors import UserError
from fu.plan.datasets import DATASETS
from fu.stages import data as stage

Bytes = NDArray[np.uint8]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def images(number: int, shape: tuple[int, ...], seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (number, *shape), dtype=np.uint8)


def labels(number: int, classes: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, classes, number).astype(np.uint8)


def arrays_of(dataset: str, train: int = 12, test: int = 5) -> Arrays:
    about = DATASETS[dataset]
    return {
        "x_train": images(train, about.shape, 1),
        "y_train": labels(train, about.classes, 2),
        "x_test": images(test, about.shape, 3),
        "y_test": labels(test, about.classes, 4),
    }


def same(found: Arrays, expected: Arrays) -> None:
    assert set(found) == set(expected)
    for key, array in expected.items():
        assert found[key].dtype == np.uint8
        np.testing.assert_array_equal(found[key], array)


def made(spec: dict[str, Any], data_dir: Path, output: Path) -> Arrays:
    stage.main(["--spec", json.dumps(spec), "--data-dir", str(data_dir), "--output", str(output)])
    with np.load(output, allow_pickle=False) as archive:
        return dict(archive)


@pytest.mark.parametrize("dataset", DATASETS)
def test_an_archive_is_read_as_it_was_written(tmp_path: Path, dataset: str) -> None:
    path = tmp_path / f"{dataset}.npz"
    np.savez_compressed(path, allow_pickle=False, **arrays_of(dataset))
    same(archives.read(path, dataset), arrays_of(dataset))


def test_further_arrays_of_an_archive_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "mnist.npz"
    np.savez(path, allow_pickle=False, **arrays_of("mnist"), notes=np.zeros(3))
    assert set(archives.read(path, "mnist")) == {"x_train", "y_train", "x_test", "y_test"}


@pytest.mark.parametrize("dataset", ["mnist", "fashion_mnist"])
def test_an_archive_of_grey_images_may_lack_the_channel(tmp_path: Path, dataset: str) -> None:
    expected = arrays_of(dataset)
    flat = {key: array[..., 0] if array.ndim == 4 else array for key, array in expected.items()}
    assert flat["x_train"].shape == (12, 28, 28)
    np.savez(tmp_path / f"{dataset}.npz", allow_pickle=False, **flat)
    spec = {"dataset": dataset, "archive": archives.checksum(tmp_path / f"{dataset}.npz")}
    same(made(spec, tmp_path, tmp_path / "made" / "x.npz"), expected)


def test_an_archive_of_colour_images_may_not_lack_the_channel(tmp_path: Path) -> None:
    arrays = arrays_of("cifar10")
    np.savez(tmp_path / "cifar10.npz", allow_pickle=False, **{**arrays, "x_test": arrays["x_test"][..., 0]})
    with pytest.raises(UserError, match=r"x_test must be \[n, 32, 32, 3\] for cifar10, but is \[5, 32, 32\]\.$"):
        archives.read(tmp_path / "cifar10.npz", "cifar10")


def test_the_same_data_make_the_same_bytes(tmp_path: Path) -> None:
    spec = {"dataset": "digits", "archive": None}
    made(spec, tmp_path, tmp_path / "a.npz")
    made(spec, tmp_path, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def idx(array: Bytes) -> bytes:
    """Return an array in the format of MNIST's files."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, arrays: Arrays) -> None:
    folder.mkdir(parents=True)
    for name, split in (("train", "train"), ("t10k", "test")):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(arrays[f"x_{split}"][..., 0].astype(np.uint8)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(arrays[f"y_{split}"].astype(np.uint8)))


@pytest.mark.parametrize(("dataset", "folder"), [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_files_of_mnist_are_read_through_torchvision(tmp_path: Path, dataset: str, folder: str) -> None:
    expected = arrays_of(dataset)
    write_idx(tmp_path / "torchvision" / folder / "raw", expected)
    found = sources.download(dataset, tmp_path)
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
        sources.download("fashion_mnist", tmp_path)


def rows(x: NDArray[Any]) -> Bytes:
    """Return images [n, 32, 32, 3] as rows of CIFAR's files: first all red pixels, then green, then blue."""
    return np.stack([np.concatenate([image[..., channel].ravel() for channel in range(3)]) for image in x])


def write_pickle(path: Path, content: dict[str, Any]) -> list[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=2))
    return [path.name, hashlib.md5(path.read_bytes()).hexdigest()]


def write_cifar(data_dir: Path, dataset: str, arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small batches in CIFAR's format and let torchvision expect their checksums."""
    kind = getattr(datasets(), dataset.upper())
    folder = data_dir / "torchvision" / str(kind.base_folder)
    names = [str(name) for name, _ in kind.train_list]
    key = "labels" if dataset == "cifar10" else "fine_labels"
    parts = zip(
        names, np.array_split(arrays["x_train"], len(names)), np.array_split(arrays["y_train"], len(names)), strict=True
    )
    train = [write_pickle(folder / name, {"data": rows(x), key: y.tolist(), "coarse": []}) for name, x, y in parts]
    content = {"data": rows(arrays["x_test"]), key: arrays["y_test"].tolist()}
    test = [write_pickle(folder / str(kind.test_list[0][0]), content)]
    meta = write_pickle(folder / str(kind.meta["filename"]), {kind.meta["key"]: ["name"] * DATASETS[dataset].classes})
    monkeypatch.setattr(kind, "train_list", train)
    monkeypatch.setattr(kind, "test_list", test)
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": meta[1]})
    return folder


@pytest.mark.parametrize(("dataset", "batches"), [("cifar10", 5), ("cifar100", 1)])
def test_files_of_cifar_are_read_through_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset: str, batches: int
) -> None:
    expected = arrays_of(dataset)
    folder = write_cifar(tmp_path, dataset, expected, monkeypatch)
    assert len(list(folder.iterdir())) == batches + 2
    found = sources.download(dataset, tmp_path)
    assert found["x_train"].shape == (12, 32, 32, 3)
    assert found["x_test"].shape == (5, 32, 32, 3)
    same(found, expected)


def test_what_torchvision_read_is_an_archive_after_the_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = arrays_of("cifar100")
    write_cifar(tmp_path, "cifar100", expected, monkeypatch)
    output = tmp_path / "made.npz"
    same(made({"dataset": "cifar100", "archive": None}, tmp_path, output), expected)
    same(archives.read(output, "cifar100"), expected)


def one_sentence(dataset: str, data_dir: Path) -> str:
    with pytest.raises(UserError) as caught:
        sources.download(dataset, data_dir)
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


def test_a_torn_download_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(bytes(1000))

    def tear(*_: Any, **__: Any) -> None:
        gzip.decompress(packed[:-9])

    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", tear)
    one_sentence("mnist", tmp_path)


@pytest.mark.parametrize(
    ("dataset", "shape", "margin", "scale"), [("digits", (28, 28, 1), 2, 3), ("digits_rgb", (32, 32, 3), 0, 4)]
)
def test_embedded_digits_are_enlarged_pixels(
    dataset: str, shape: tuple[int, int, int], margin: int, scale: int
) -> None:
    arrays = sources.embedded(dataset)
    x = np.concatenate([arrays["x_train"], arrays["x_test"]])
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    assert (x.shape, y.shape) == ((1797, *shape), (1797,))
    assert {array.dtype.name for array in arrays.values()} == {"uint8"}
    assert (len(arrays["y_train"]), len(arrays["y_test"])) == (1540, 257)
    assert (int(x.min()), int(x.max())) == (0, 255)
    assert set(y.tolist()) == set(range(10))
    small = load_digits()
    np.testing.assert_array_equal(y, small.target)
    inner = x[:, margin : 28 - margin, margin : 28 - margin] if margin else x
    assert int(x.sum()) == int(inner.sum())
    for down in range(scale):
        for right in range(scale):
            for channel in range(shape[2]):
                pixels = inner[:, down::scale, right::scale, channel]
                np.testing.assert_array_equal(pixels, np.round(small.images * 255 / 16))


def test_embedded_digits_have_the_number_of_samples_that_the_plan_counts_with() -> None:
    for dataset in ("digits", "digits_rgb"):
        arrays = sources.embedded(dataset)
        assert len(arrays["y_train"]) + len(arrays["y_test"]) == DATASETS[dataset].samples


UNCHANGED = ([0.0], [1.0])
CHANNELS = ([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010])


@pytest.mark.parametrize(
    ("dataset", "statistics"),
    [
        ("mnist", UNCHANGED),
        ("fashion_mnist", UNCHANGED),
        ("digits", UNCHANGED),
        ("cifar10", CHANNELS),
        ("cifar100", CHANNELS),
        ("digits_rgb", CHANNELS),
    ],
)
def test_every_data_set_is_normalised_with_its_statistics(
    tmp_path: Path, dataset: str, statistics: tuple[list[float], list[float]]
) -> None:
    archive, part = tmp_path / "x.npz", tmp_path / "partition.npz"
    arrays = arrays_of(dataset)
    np.savez(archive, allow_pickle=False, **arrays)
    merged = np.concatenate([arrays["y_train"], arrays["y_test"]])
    spec = {
        "seed": 0,
        "clients": 1,
        "partition": {"kind": "iid"},
        "train_share": 0.5,
        "validation_share": 0.0,
        "forget": {"clients": 1},
        "backdoor": None,
    }
    np.savez(part, allow_pickle=False, **partition.draw(merged, DATASETS[dataset].classes, spec).arrays())
    loaded = clients.load(archive, part, dataset, torch.device("cpu"), "share")
    mean, std = statistics
    pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
    expected = (pixels.astype(np.float64) / 255 - mean) / std
    assert (loaded.x.dtype, loaded.y.dtype) == (torch.float32, torch.int64)
    np.testing.assert_allclose(loaded.x.numpy(), expected, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(loaded.y.numpy(), merged)
    assert (loaded.classes, loaded.shape) == (DATASETS[dataset].classes, DATASETS[dataset].shape)


def test_the_table_of_data_sets_states_their_published_sizes() -> None:
    assert {name: (about.shape, about.classes, about.samples) for name, about in DATASETS.items()} == {
        "mnist": ((28, 28, 1), 10, 70_000),
        "fashion_mnist": ((28, 28, 1), 10, 70_000),
        "cifar10": ((32, 32, 3), 10, 60_000),
        "cifar100": ((32, 32, 3), 100, 60_000),
        "digits": ((28, 28, 1), 10, 1_797),
        "digits_rgb": ((32, 32, 3), 10, 1_797),
    }
