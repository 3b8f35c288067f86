"""Given: the samples of each client are read from a file (our choice: for a split of your own).

The file is an .npz with one array of indices per client, named 0, 1, 2, ...: rows of the data set, training samples
first, then test samples (`split: official`: of its training samples alone). Every sample is in exactly one of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from fu.contents import verified
from fu.data.archives import load_arrays
from fu.data.partition import Indices
from fu.errors import UserError

FILE = "file"  # the hyper-parameter that names a file; the plan adds its checksum


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    file: str = Field(min_length=1, examples=["split.npz"], description="path of the .npz")
    sha256: str = Field("", description="checksum of the file: added by the plan (our choice: an edit must be noticed)")


def check(clients: int, classes: int, p: Params) -> None:
    """Raise `ValueError` unless the file has indices for each client, none of them twice."""
    _read(clients, p)


def check_samples(samples: int, clients: int, p: Params) -> None:
    """Raise `ValueError` unless the clients share so many samples, each of which is in one list."""
    rows = np.sort(np.concatenate(_read(clients, p)))
    if len(rows) and rows[-1] >= samples:
        raise ValueError(f"{p.file}: there is no sample {rows[-1]}; there are 0 to {samples - 1}")
    if len(rows) < samples:
        missing = np.flatnonzero(~np.isin(np.arange(samples), rows))
        raise ValueError(f"{p.file}: {len(missing)} of {samples} samples are in no list, the first is {missing[0]}")


def deal(labels: NDArray[Any], classes: int, clients: int, p: Params, rng: np.random.Generator) -> list[Indices]:
    """Return the samples of each client; nothing is drawn."""
    try:
        check_samples(len(labels), clients, p)
        return _read(clients, p)
    except ValueError as error:
        raise UserError(f"partition: {error}.") from None


def _read(clients: int, p: Params) -> list[Indices]:
    try:
        arrays = load_arrays(verified(Path(p.file).expanduser(), p.sha256))
    except UserError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    if arrays.keys() != {str(client) for client in range(clients)}:
        raise ValueError(
            f"{p.file}: must have one array for each of {clients} clients, named 0 to {clients - 1}; it has "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    lists = [arrays[str(client)] for client in range(clients)]
    for client, rows in enumerate(lists):
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
            raise ValueError(f"{p.file}: client {client}: must be a list of indices, got {rows.dtype} {[*rows.shape]}")
        if wrong := [end for end in (rows.min(), rows.max()) if not 0 <= end < 2**63]:
            raise ValueError(f"{p.file}: client {client}: {wrong[0]} is no index")
    every = np.sort(np.concatenate(lists))
    twice = every[1:][every[1:] == every[:-1]]
    if len(twice):
        raise ValueError(f"{p.file}: sample {twice[0]} is listed twice")
    return [rows.astype(np.int64) for rows in lists]
