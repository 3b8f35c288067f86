"""Small random data sets in the formats of MNIST, CIFAR and the archive; no network."""

import hashlib
import pickle
import struct
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from numpy.typing import NDArray

from fu.data.archives import Arrays
from fu.data.dataset import about
from fu.data.torchvision_import import datasets

Bytes = NDArray[np.uint8]


def refuse_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def images(number: int, shape: tuple[int, ...], seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (number, *shape), dtype=np.uint8)


def labels(number: int, classes: int, seed: int) -> Bytes:
    return np.random.default_rng(seed).integers(0, classes, number).astype(np.uint8)


def arrays_of(dataset: str, train: int = 12, test: int = 5) -> Arrays:
    facts = about(dataset)
    arrays: Arrays = {}
    for split, number, seed in (("train", train, 1), ("test", test, 3)):
        x = labels(number * facts.shape[0], facts.classes, seed).reshape(-1, *facts.shape) if facts.text else None
        arrays[f"x_{split}"] = images(number, facts.shape, seed) if x is None else x
        arrays[f"y_{split}"] = labels(number, facts.classes, seed + 1)
        if facts.owners:
            arrays[f"client_{split}"] = (np.arange(number) % 3).astype(np.int32)
    if facts.text:
        arrays["vocabulary"] = np.array("".join(map(chr, range(32, 32 + facts.classes))))
    return arrays


def same(found: Arrays, expected: Arrays) -> None:
    assert set(found) == set(expected)
    for key, array in expected.items():
        assert found[key].dtype == array.dtype
        np.testing.assert_array_equal(found[key], array)


def idx(array: Bytes) -> bytes:
    """Return an array in the format of MNIST's files."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, arrays: Arrays) -> None:
    folder.mkdir(parents=True)
    for name, split in (("train", "train"), ("t10k", "test")):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(arrays[f"x_{split}"][..., 0].astype(np.uint8)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(arrays[f"y_{split}"].astype(np.uint8)))


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
    meta = write_pickle(folder / str(kind.meta["filename"]), {kind.meta["key"]: ["name"] * about(dataset).classes})
    monkeypatch.setattr(kind, "train_list", train)
    monkeypatch.setattr(kind, "test_list", test)
    monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": meta[1]})
    return folder
