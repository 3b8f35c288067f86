"""Archives: what is read is what was written, and what is no archive of the data set is told in one sentence."""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fu.data import archives
from fu.data.archives import Arrays
from fu.pipeline.catalogue import available
from tests.data.files import arrays_of, same
from tests.mistakes import digits_like, halve, has, sentence


@pytest.mark.parametrize("dataset", available("datasets"))
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
    path, expected = tmp_path / f"{dataset}.npz", arrays_of(dataset)
    flat = {key: array[..., 0] if array.ndim == 4 else array for key, array in expected.items()}
    assert flat["x_train"].shape == (12, 28, 28)
    np.savez(path, allow_pickle=False, **flat)
    same(archives.read(path, dataset), expected)


def test_an_archive_of_colour_images_may_not_lack_the_channel(tmp_path: Path) -> None:
    path, arrays = tmp_path / "cifar10.npz", arrays_of("cifar10")
    np.savez(path, allow_pickle=False, **{**arrays, "x_test": arrays["x_test"][..., 0]})
    text = sentence(lambda: archives.read(path, "cifar10"))
    assert text.endswith("x_test must be [n, 32, 32, 3] for cifar10, but is [5, 32, 32].")


def test_a_checksum_is_the_sha256_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4's example
    assert archives.checksum(tmp_path / "abc") == wanted


ARCHIVES: dict[str, tuple[Arrays, tuple[str, ...], tuple[str, ...]]] = {
    "missing keys": (
        {},
        ("x_test", "y_test"),
        ("the archive lacks x_test, y_test", "it must hold x_train, y_train, x_test, y_test"),
    ),
    "images of another data set": (
        {"x_train": np.zeros((6, 32, 32, 3), np.uint8)},
        (),
        ("x_train must be [n, 28, 28, 1] for digits, but is [6, 32, 32, 3]",),
    ),
    "images as one number": ({"x_test": np.array(1, np.uint8)}, (), ("x_test must be [n, 28, 28, 1]", "but is []")),
    "more labels than images": (
        {"y_train": np.zeros(7, np.uint8)},
        (),
        ("y_train must be [6] like x_train and not empty, but is [7]",),
    ),
    "no sample": (
        {"x_test": np.zeros((0, 28, 28, 1), np.uint8), "y_test": np.zeros(0, np.uint8)},
        (),
        ("y_test must be [0] like x_test and not empty",),
    ),
    "images as NaN": (
        {"x_train": np.full((6, 28, 28, 1), math.nan, np.float32)},
        (),
        ("x_train must be uint8, but is float32",),
    ),
    "labels as int64": ({"y_test": np.arange(4)}, (), ("y_test must be uint8, but is int64",)),
    "labels as Python objects": (
        {"y_train": np.array([None] * 6)},
        (),
        ("the file holds Python objects or is no npz archive; plain numeric arrays are allowed",),
    ),
    "a label out of range": (
        {"y_train": np.full(6, 10, np.uint8)},
        (),
        ("y_train holds class 10, but digits has classes 0 to 9",),
    ),
}


@pytest.mark.parametrize(("changes", "without", "words"), ARCHIVES.values(), ids=ARCHIVES)
def test_a_malformed_archive_is_told_in_one_sentence(
    tmp_path: Path, changes: Arrays, without: tuple[str, ...], words: tuple[str, ...]
) -> None:
    path = tmp_path / "digits.npz"
    arrays = {key: array for key, array in {**digits_like(), **changes}.items() if key not in without}
    np.savez(path, allow_pickle=True, **arrays)
    has(sentence(lambda: archives.read(path, "digits")), f"{path}: ", *words)


def save_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def zip_texts(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for key in archives.KEYS:
            archive.writestr(f"{key}.npy", "no array")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (halve, "the file is truncated or is no npz archive; make or copy it again"),
        (Path.touch, "the file is truncated or is no npz archive; make or copy it again"),
        (lambda path: path.write_text("hello"), "the file holds Python objects or is no npz archive; plain"),
        (save_one_array, "the file is truncated or is no npz archive; make or copy it again"),
        (zip_texts, "x_train is no array; plain numeric arrays are allowed"),
    ],
    ids=["truncated", "empty", "text", "one array", "a zip of texts"],
)
def test_a_file_that_is_no_archive_is_told_in_one_sentence(
    tmp_path: Path, write: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "digits.npz"
    write(path)
    has(sentence(lambda: archives.read(path, "digits")), f"{path}: {words}")


def test_a_missing_archive_is_told_in_one_sentence(tmp_path: Path) -> None:
    text = sentence(lambda: archives.read(tmp_path / "none.npz", "digits"))
    has(text, f"{tmp_path / 'none.npz'}: there is no such file")
