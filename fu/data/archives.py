"""The offline archive format: one npz file of plain arrays, checked whenever it is read, its headers first."""

import io
import math
import struct
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fu.contents import require_file
from fu.data.dataset import Dataset, about
from fu.errors import UserError

Arrays = dict[str, NDArray[np.generic]]
KEYS = ("x_train", "y_train", "x_test", "y_test")
OWNERS = ("client_train", "client_test")
HEADER_BYTES = 4096  # at most; numpy writes 128 for an array of numbers
LENGTHS = struct.Struct("<HH")  # of the name and of the extra field, the end of what precedes a member of a zip file
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """What is known of an array before it is read."""

    member: zipfile.ZipInfo
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    length: int  # of the header itself
    by_columns: bool


def read(path: Path, dataset: str, mapped: bool = False) -> Arrays:
    """Read and check an archive of `dataset`.

    Returns x_train, x_test: uint8 [n, height, width, channel], of text [n, length], and y_train, y_test: uint8 [n]; of
    naturally federated data client_train, client_test: int32 [n], of text vocabulary: one string, whose character k
    is class k. `mapped`: x_train and x_test stay in the file, as memory maps, where it holds them as they are (as the
    archives of the results do): their checksums are then not compared.
    Raises `UserError` for a file that is truncated, holds objects, lacks a key, or has a wrong type or shape.
    """
    with _opened(path) as archive:
        headers = _headers(path, archive, _keys(about(dataset)))
        _samples(path, dataset, headers)
        arrays = {
            key: _mapped(path, header) if mapped and key[0] == "x" and _mappable(header) else _array(archive, header)
            for key, header in headers.items()
        }
    facts = about(dataset)
    classes = _characters(path, arrays["vocabulary"], facts) if facts.text else facts.classes
    for split in ("train", "test"):
        x, highest = arrays[f"x_{split}"], int(arrays[f"y_{split}"].max())
        arrays[f"x_{split}"] = x if x.ndim == 4 or facts.text else x[..., None]
        if highest >= classes:
            raise UserError(f"{path}: y_{split} holds class {highest}, but {dataset} has classes 0 to {classes - 1}.")
        if facts.text and x.max() >= classes:
            raise UserError(f"{path}: x_{split} holds character {x.max()}, but the vocabulary has only {classes}.")
        if facts.owners and (first := int(arrays[f"client_{split}"].min())) < 0:
            raise UserError(f"{path}: client_{split} holds client {first}, but clients count from 0.")
    return arrays


def owners(path: Path, dataset: str) -> NDArray[np.int64] | None:
    """Return the owner of each sample of an archive, training samples first [n]; None where samples have no owners."""
    if not about(dataset).owners:
        return None
    with _opened(path) as archive:
        parts = [_array(archive, header) for header in _headers(path, archive, OWNERS).values()]
    return np.concatenate(parts).astype(np.int64)


def _keys(facts: Dataset) -> tuple[str, ...]:
    """Return the names of the arrays that an archive of a data set must hold."""
    return (*KEYS, *(OWNERS if facts.owners else ()), *(("vocabulary",) if facts.text else ()))


def _characters(path: Path, vocabulary: NDArray[np.generic], facts: Dataset) -> int:
    """Return how many characters a vocabulary has."""
    text = str(vocabulary)
    if len(set(text)) < len(text) or not 2 <= len(text) <= facts.classes:
        raise UserError(
            f"{path}: vocabulary must be 2 to {facts.classes} different characters, but has {len(text)}, of which "
            f"{len(set(text))} are different."
        )
    return len(text)


def check(path: Path, dataset: str) -> int:
    """Check an archive of `dataset` as `read` does, by its headers alone; return how many samples it holds."""
    with _opened(path) as archive:
        return _samples(path, dataset, _headers(path, archive, _keys(about(dataset))))


def load_arrays(path: Path) -> Arrays:
    """Load all arrays of an npz file that numpy's `savez` wrote; `UserError` where it is missing or damaged."""
    with _opened(path) as archive:
        headers = _headers(path, archive)
        if sum(header.member.file_size for header in headers.values()) > path.stat().st_size:  # no bomb is unpacked
            raise UserError(
                f"{path}: the arrays are longer than the file, damaged or compressed; write it again with numpy.savez."
            )
        return {key: _array(archive, header) for key, header in headers.items()}


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    require_file(path)
    try:
        with warnings.catch_warnings(action="ignore"), path.open("rb") as file, zipfile.ZipFile(file) as archive:
            yield archive
    except (UserError, MemoryError):
        raise
    except Exception:  # damaged bytes make zipfile and numpy raise a dozen kinds
        raise UserError(f"{path}: the file is truncated or not an npz archive; make or copy it again.") from None


def _headers(path: Path, archive: zipfile.ZipFile, keys: Iterable[str] | None = None) -> dict[str, Header]:
    """Return the headers of the arrays `keys` (None: of all), each as long as its header says and free of objects."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        key = member.filename.removesuffix(".npy")
        if key in members:
            raise UserError(f"{path}: the file holds {key!r} twice; make or copy it again.")
        members[key] = member
    missing = [key for key in keys or () if key not in members]
    if missing:
        raise UserError(
            f"{path}: the archive lacks {', '.join(missing)}; it must hold {', '.join(keys or ())} (see docs/data.md)."
        )
    return {key: _header(path, key, archive, members[key]) for key in keys or members}


def _header(path: Path, key: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    try:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("numpy writes no other")
        with archive.open(member) as file:
            start = io.BytesIO(file.read(HEADER_BYTES))
        shape, by_columns, dtype = HEADERS[npy.read_magic(start)](start)
        length = start.tell() + math.prod(shape) * dtype.itemsize
    except Exception:  # MemoryError and RecursionError, too: Python's parser reads the header
        raise UserError(f"{path}: {key!r} is damaged or not an array; plain numeric arrays are allowed.") from None
    if dtype.hasobject:
        raise UserError(f"{path}: {key!r} holds Python objects; plain numeric arrays are allowed.")
    if length != member.file_size or any(n < 0 for n in shape):
        raise UserError(
            f"{path}: {key!r} should be {list(shape)} of {dtype}, but has {member.file_size} bytes; "
            "make or copy the file again."
        )
    return Header(member, dtype, shape, start.tell(), by_columns)


def _array(archive: zipfile.ZipFile, header: Header) -> NDArray[np.generic]:
    with archive.open(header.member) as file:
        array: NDArray[np.generic] = npy.read_array(file, allow_pickle=False)
        file.read()  # at the end zipfile checks the CRC
    return array


def _mappable(header: Header) -> bool:
    return header.member.compress_type == zipfile.ZIP_STORED and not header.by_columns


def _mapped(path: Path, header: Header) -> NDArray[np.generic]:
    """Return an array as a memory map; what is written to it changes no file."""
    with path.open("rb") as file:
        file.seek(header.member.header_offset + LOCAL_HEADER.size - LENGTHS.size)
        name, extra = LENGTHS.unpack(file.read(LENGTHS.size))
        return np.memmap(file, header.dtype, "c", file.tell() + name + extra + header.length, header.shape)


def _samples(path: Path, dataset: str, headers: dict[str, Header]) -> int:
    """Return how many samples an archive of `dataset` holds; `UserError` where its arrays are not those."""
    facts = about(dataset)
    for split in ("train", "test"):
        x, y = headers[f"x_{split}"], headers[f"y_{split}"]
        for key, header in ((f"x_{split}", x), (f"y_{split}", y)):
            if header.dtype != np.uint8:
                raise UserError(f"{path}: {key} must be uint8, but is {header.dtype}.")
        images = (*x.shape, 1) if len(x.shape) == 3 and facts.shape[-1] == 1 else x.shape
        if images[1:] != facts.shape:
            wanted = ", ".join(map(str, facts.shape))
            raise UserError(f"{path}: x_{split} must be [n, {wanted}] for {dataset}, but is {list(x.shape)}.")
        if y.shape != x.shape[:1] or y.shape == (0,):
            raise UserError(
                f"{path}: y_{split} must be [{x.shape[0]}] like x_{split} and not empty, but is {list(y.shape)}."
            )
        if (owner := headers.get(f"client_{split}")) and (owner.dtype != np.int32 or owner.shape != y.shape):
            raise UserError(
                f"{path}: client_{split} must be int32 [{y.shape[0]}] like y_{split}, but is {owner.dtype} "
                f"{list(owner.shape)}."
            )
    if (text := headers.get("vocabulary")) and (text.dtype.kind, text.shape) != ("U", ()):
        raise UserError(f"{path}: vocabulary must be one string, but is {text.dtype} {list(text.shape)}.")
    samples = headers["y_train"].shape[0] + headers["y_test"].shape[0]
    if samples > facts.samples:
        raise UserError(f"{path}: the archive holds {samples} samples, but {dataset} has {facts.samples}.")
    return samples
