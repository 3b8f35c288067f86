"""Small random data sets in the formats of MNIST, CIFAR and the archive; no network."""

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
