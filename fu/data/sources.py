"""Where a data set comes from without an archive: a verified download, LEAF's files, or what other packages ship."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data import leaf
from fu.data.archives import KEYS, OWNERS, Arrays
from fu.data.dataset import Dataset
from fu.errors import UserError

STRIDE, MOST = 8, 300  # characters from a window of a topic to the next, and windows


def fetch(name: str, dataset: Dataset, data_dir: Path) -> Arrays:
    """Return a data set's arrays as in the archive format; `UserError` where it comes from an archive alone."""
    if dataset.embedded:
        return topics(dataset) if dataset.text else embedded(dataset)
    if dataset.owners and leaf.exists(data_dir / name):
        return leaf.read(data_dir / name, name, dataset)
    if dataset.torchvision:
        return download(name, dataset.torchvision, data_dir)
    files = f" or LEAF's files in {data_dir / name}" if dataset.owners else ""
    raise UserError(f"{name}: put the archive {data_dir / (name + '.npz')}{files} in place (its format: docs/data.md).")


def download(name: str, torchvision: str, data_dir: Path) -> Arrays:
    """Download by a class of torchvision, which verifies the checksums."""
    from fu.data.torchvision_import import datasets

    root = data_dir / "torchvision"
    arrays: Arrays = {}
    try:
        for split in ("train", "test"):
            source = getattr(datasets(), torchvision)(root=str(root), train=split == "train", download=True)
            images = np.asarray(source.data, dtype=np.uint8)
            arrays[f"x_{split}"] = images if images.ndim == 4 else images[..., None]
            arrays[f"y_{split}"] = np.asarray(source.targets).astype(np.uint8)
    except Exception as error:  # of a torn file torchvision's readers raise anything
        reason = str(error).splitlines()[0].rstrip(".: ") if str(error) else type(error).__name__
        raise UserError(
            f"{name} could not be downloaded to {root} ({reason}); without a network put the archive "
            f"{data_dir / (name + '.npz')} in place (its format: docs/data.md)."
        ) from None
    return arrays


def embedded(dataset: Dataset) -> Arrays:
    """Return the 1,797 handwritten digits that scikit-learn ships, enlarged to the data set's shape.

    Each of the 8 x 8 pixels becomes a square of 3 (28 x 28, margin 2) or of 4 (32 x 32), with equal channels.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)
    height, _, channels = dataset.shape
    scale = height // 8
    margin = (height - 8 * scale) // 2
    large = np.kron(images, np.ones((1, scale, scale), np.uint8))
    x = np.pad(large, ((0, 0), (margin, margin), (margin, margin)))[..., None].repeat(channels, axis=3)
    y = digits.target.astype(np.uint8)
    cut = len(x) * 6 // 7
    return {"x_train": x[:cut], "y_train": y[:cut], "x_test": x[cut:], "y_test": y[cut:]}


def topics(dataset: Dataset) -> Arrays:
    """Return windows of Python's 79 help topics (`pydoc_data`) and the character after each; an owner is a topic.

    Windows begin at every eighth character of a topic, at most 300. Of each the last fifth is for testing, less those
    that share a character with a training window. Each version of Python has its own text: 103 characters in 3.11, 104
    in 3.12 and 3.13.
    """
    from pydoc_data.topics import topics as texts  # type: ignore[import-untyped]

    length = dataset.shape[0]
    vocabulary = "".join(sorted({character for text in texts.values() for character in text}))
    number = {character: k for k, character in enumerate(vocabulary)}
    parts: dict[str, list[NDArray[Any]]] = {key: [] for key in (*KEYS, *OWNERS)}
    for owner, name in enumerate(sorted(texts)):
        codes = np.array([number[character] for character in texts[name]], np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(codes, length + 1)[::STRIDE][:MOST]
        cut = len(windows) * 4 // 5
        for split, rows in (("train", windows[:cut]), ("test", windows[cut + length // STRIDE :])):
            parts[f"x_{split}"].append(rows[:, :length])
            parts[f"y_{split}"].append(rows[:, length])
            parts[f"client_{split}"].append(np.full(len(rows), owner, np.int32))
    return {"vocabulary": np.array(vocabulary), **{key: np.concatenate(rows) for key, rows in parts.items()}}
