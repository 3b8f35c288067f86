"""LEAF's files (Caldas et al. 2019): `{train,test}/*.json`, as its `preprocess.sh` writes them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data.archives import Arrays
from fu.data.dataset import Dataset
from fu.errors import UserError

SPLITS = ("train", "test")
Bytes = NDArray[np.uint8]


def exists(folder: Path) -> bool:
    """Return whether a folder holds LEAF's files."""
    return all(any((folder / split).glob("*.json")) for split in SPLITS)


def read(folder: Path, name: str, dataset: Dataset) -> Arrays:
    """Return the arrays of a data set as in the archive format, read file by file.

    An image is a list of values from 0 to 1, row by row, with its class; text is a window, with the character that
    follows. Owners are the users, counted in the order of the files; those of the training files come first.
    Raises `UserError` where a file is damaged.
    """
    arrays: Arrays = {}
    owners: dict[str, int] = {}
    seen = np.zeros(256, np.bool_)
    for split in SPLITS:
        parts: list[tuple[Bytes, Bytes, NDArray[np.int32]]] = []
        for path in sorted((folder / split).glob("*.json")):
            try:
                for user, x, y in _users(path, dataset):
                    parts.append((x, y, np.full(len(y), owners.setdefault(user, len(owners)), np.int32)))
            except MemoryError:
                raise
            except Exception as error:  # of a file of another form Python and numpy raise a dozen kinds
                reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
                raise UserError(f"{path}: damaged, or not a file of LEAF's {name} ({reason}); make it again.") from None
        if not sum(len(y) for _, y, _ in parts):
            raise UserError(f"{folder / split}: LEAF's files have no samples; make them again.")
        for k, what in enumerate(("x", "y", "client")):
            arrays[f"{what}_{split}"] = np.concatenate([part[k] for part in parts])
        for x, y, _ in parts if dataset.text else ():
            seen[x.ravel()] = seen[y] = True
    samples, characters = len(arrays["y_train"]) + len(arrays["y_test"]), int(seen.sum())
    if samples > dataset.samples or characters > dataset.classes:
        what = f"{samples} samples" if samples > dataset.samples else f"{characters} characters"
        most = dataset.samples if samples > dataset.samples else dataset.classes
        raise UserError(f"{folder}: LEAF's files have {what}, but {name} has {most}.")
    if dataset.text:
        arrays |= {key: (np.cumsum(seen) - 1).astype(np.uint8)[arrays[key]] for key in arrays if key[0] in "xy"}
        arrays["vocabulary"] = np.array(bytes(np.flatnonzero(seen).tolist()).decode("latin-1"))
    return arrays


def _users(path: Path, dataset: Dataset) -> Iterator[tuple[str, Bytes, Bytes]]:
    """Yield the users of a file with their samples x [n, ...] and labels y [n]; of text the bytes of characters."""
    content = json.loads(path.read_text())
    for user, number in zip(content["users"], content["num_samples"], strict=True):
        held: dict[str, Any] = content["user_data"].pop(user)
        x, y = (_text(held, dataset) if dataset.text else _images(held, dataset)) if number else _nothing(dataset)
        if not len(x) == len(y) == number:
            raise ValueError(f"{user} has {len(x)} samples and {len(y)} labels of {number}")
        yield str(user), x, y


def _nothing(dataset: Dataset) -> tuple[Bytes, Bytes]:
    return np.empty((0, *dataset.shape), np.uint8), np.empty(0, np.uint8)


def _text(held: dict[str, Any], dataset: Dataset) -> tuple[Bytes, Bytes]:
    windows, after = held["x"], held["y"]
    if {*map(len, windows)} != {dataset.shape[0]} or {*map(len, after)} != {1}:
        raise ValueError(f"a window must have {dataset.shape[0]} characters, a label one")
    x, y = (np.frombuffer("".join(texts).encode("latin-1"), np.uint8) for texts in (windows, after))
    return x.reshape(-1, *dataset.shape), y


def _images(held: dict[str, Any], dataset: Dataset) -> tuple[Bytes, Bytes]:
    values, labels = np.array(held["x"], np.float32), np.array(held["y"])
    if not (values.min() >= 0 and values.max() <= 1):
        raise ValueError("pixel values must be from 0 to 1")
    if labels.dtype.kind != "i" or not (labels.min() >= 0 and labels.max() < dataset.classes):
        raise ValueError(f"labels must be integers from 0 to {dataset.classes - 1}")
    return np.rint(values * 255).astype(np.uint8).reshape(-1, *dataset.shape), labels.astype(np.uint8)
