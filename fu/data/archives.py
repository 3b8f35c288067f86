"""The offline archive format: one npz file of plain arrays, checked whenever it is read."""

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fu.data.dataset import about
from fu.errors import UserError

Arrays = dict[str, NDArray[np.generic]]
KEYS = ("x_train", "y_train", "x_test", "y_test")


def read(path: Path, dataset: str) -> Arrays:
    """Read and check an archive of `dataset`.

    Returns x_train, x_test: uint8 [n, height, width, channel] and y_train, y_test: uint8 [n].
    Raises `UserError` for a file that is truncated, holds objects, lacks a key, or has a wrong type or shape.
    """
    arrays = load_arrays(path)
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise UserError(
            f"{path}: the archive lacks {', '.join(missing)}; it must hold {', '.join(KEYS)} (see docs/data.md)."
        )
    facts = about(dataset)
    height, width, channels = facts.shape
    for split in ("train", "test"):
        x, y = arrays[f"x_{split}"], arrays[f"y_{split}"]
        for key, array in ((f"x_{split}", x), (f"y_{split}", y)):
            if array.dtype != np.uint8:
                raise UserError(f"{path}: {key} must be uint8, but is {array.dtype}.")
        if x.ndim == 3 and channels == 1:
            x = arrays[f"x_{split}"] = x[..., None]
        if x.shape[1:] != (height, width, channels):
            raise UserError(
                f"{path}: x_{split} must be [n, {height}, {width}, {channels}] for {dataset}, but is {list(x.shape)}."
            )
        if y.shape != x.shape[:1] or len(y) == 0:
            raise UserError(
                f"{path}: y_{split} must be [{len(x)}] like x_{split} and not empty, but is {list(y.shape)}."
            )
        if int(y.max()) >= facts.classes:
            raise UserError(
                f"{path}: y_{split} holds class {int(y.max())}, but {dataset} has classes 0 to {facts.classes - 1}."
            )
    return {key: arrays[key] for key in KEYS}


def load_arrays(path: Path) -> Arrays:
    """Load all arrays of an npz file without pickle; `UserError` where it is missing, truncated or holds objects."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, TypeError, AttributeError, KeyError):
        raise UserError(f"{path}: the file is truncated or is no npz archive; make or copy it again.") from None
    except ValueError:
        raise UserError(
            f"{path}: the file holds Python objects or is no npz archive; plain numeric arrays are allowed."
        ) from None
    odd = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]  # numpy gives bytes
    if odd:
        raise UserError(f"{path}: {odd[0]} is no array; plain numeric arrays are allowed.")
    return arrays


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
