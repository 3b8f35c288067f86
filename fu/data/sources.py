"""Sources of data sets other than archives: verified downloads, LEAF's files, data shipped with other packages."""

import string
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fu.data import leaf
from fu.data.archives import KEYS, OWNERS, Arrays
from fu.data.dataset import Dataset
from fu.errors import UserError


def fetch(name: str, dataset: Dataset, data_dir: Path) -> Arrays:
    """Return a data set's arrays as in the archive format; `UserError` where it comes from an archive alone."""
    if dataset.embedded:
        return letters(dataset) if dataset.text else digits(dataset)
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


def digits(dataset: Dataset) -> Arrays:
    """Return the 1,797 handwritten digits that scikit-learn ships as 20 x 20 pixels.

    Each of the 8 x 8 pixels becomes a square of 2, in a margin of 2, with equal channels. In 20 classes every second
    image is dark on bright, and its class ten higher. Shifts and noise are drawn once for all.
    """
    from sklearn.datasets import load_digits

    source = load_digits()
    images = np.round(source.images * (255 / 16)).astype(np.uint8)
    large = np.kron(images, np.ones((1, 2, 2), np.uint8))
    x = np.pad(large, ((0, 0), (2, 2), (2, 2)))[..., None].repeat(dataset.shape[2], axis=3)
    y = source.target.astype(np.uint8)
    if dataset.classes == 20:
        x[1::2] = 255 - x[1::2]
        y[1::2] += 10
    random = np.random.default_rng(0)
    for image, shift in zip(x, random.integers(-dataset.shift, dataset.shift + 1, (len(x), 2)), strict=True):
        image[:] = np.roll(image, shift, (0, 1))
    x = np.maximum(x, random.integers(dataset.noise + 1, size=x.shape, dtype=np.uint8))
    cut = len(x) * 6 // 7
    return {"x_train": x[:cut], "y_train": y[:cut], "x_test": x[cut:], "y_test": y[cut:]}


def letters(dataset: Dataset) -> Arrays:
    """Return windows of letters and the letter that follows each; owners hold 40 to 160 windows, a fifth to test.

    A letter is the next one of the alphabet in nine of ten cases, else any of the owner's own seven. What an owner has
    for training and for testing are two texts.
    """
    length, owners = dataset.shape[0], dataset.owners or 1
    random = np.random.default_rng(0)
    parts: dict[str, list[NDArray[Any]]] = {key: [] for key in (*KEYS, *OWNERS)}
    for owner, number in enumerate(np.linspace(8, 32, owners).astype(int)):
        for split, windows in (("train", 4 * number), ("test", number)):
            text = [owner % dataset.classes]
            while len(text) < length + windows:
                skips = random.random() < 0.1
                text.append((owner + int(random.integers(7)) if skips else text[-1] + 1) % dataset.classes)
            rows = np.lib.stride_tricks.sliding_window_view(np.array(text, np.uint8), length + 1)
            parts[f"x_{split}"].append(rows[:, :length])
            parts[f"y_{split}"].append(rows[:, length])
            parts[f"client_{split}"].append(np.full(windows, owner, np.int32))
    vocabulary = np.array(string.ascii_lowercase[: dataset.classes])
    return {"vocabulary": vocabulary, **{key: np.concatenate(rows) for key, rows in parts.items()}}
