"""Where a data set comes from without an archive: torchvision's verified download, or the digits of scikit-learn."""

from pathlib import Path

import numpy as np

from fu.data.archives import Arrays
from fu.data.dataset import Dataset
from fu.errors import UserError


def fetch(name: str, dataset: Dataset, data_dir: Path) -> Arrays:
    """Return a data set's arrays as in the archive format; `UserError` where it comes from an archive alone."""
    if dataset.embedded:
        return embedded(dataset)
    if dataset.torchvision:
        return download(name, dataset.torchvision, data_dir)
    raise UserError(f"{name}: put the archive {data_dir / (name + '.npz')} in place (its format: docs/data.md).")


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
