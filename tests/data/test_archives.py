"""Archives: what is read is what was written, and what is no archive of the data set is told in one sentence."""

import io
import os
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fu.contents import checksum
from fu.data import archives
from fu.data.archives import Arrays
from fu.errors import UserError
from fu.pipeline.provenance.catalogue import available
from tests.data.files import arrays_of, same
from tests.mistakes import digits_like, halve, has, sentence, write_archive


@pytest.mark.parametrize("dataset", available("datasets"))
def test_an_archive_is_read_as_it_was_written_without_further_arrays(tmp_path: Path, dataset: str) -> None:
    path = tmp_path / f"{dataset}.npz"
    np.savez_compressed(path, allow_pickle=False, **arrays_of(dataset), notes=np.zeros(3))
    same(archives.read(path, dataset), arrays_of(dataset))


def test_owners_are_those_of_training_samples_and_then_of_test_samples(tmp_path: Path) -> None:
    path, owned = tmp_path / "x.npz", {"client_train": np.arange(12), "client_test": np.arange(20, 25)}
    arrays = {**arrays_of("femnist"), **{key: value.astype(np.int32) for key, value in owned.items()}}
    np.savez(path, allow_pickle=False, **arrays)
    found = archives.owners(path, "femnist")
    assert found is not None
    assert found.tolist() == [*range(12), *range(20, 25)]
    assert archives.owners(path, "mnist") is None


def test_an_archive_of_grey_images_may_lack_the_channel(tmp_path: Path) -> None:
    path, expected = tmp_path / "mnist.npz", arrays_of("mnist")
    np.savez(path, allow_pickle=False, **{key: array.squeeze() for key, array in expected.items()})
    same(archives.read(path, "mnist"), expected)


def test_a_checksum_is_the_sha256_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4's example
    assert checksum(tmp_path / "abc") == wanted


FEW: Arrays = {
    "vocabulary": np.array("abc"),
    "x_train": np.full((12, 80), 2, np.uint8),
    "y_train": np.full(12, 2, np.uint8),
    "x_test": np.full((5, 80), 2, np.uint8),
    "y_test": np.full(5, 2, np.uint8),
}
TEXT = "x_train, y_train, x_test, y_test, client_train, client_test, vocabulary"
LACKS = np.empty(0, object)  # in place of an array that is left out
MALFORMED: list[tuple[str, Arrays, str]] = [
    ("digits", {"x_test": LACKS, "y_test": LACKS},
     "the archive lacks x_test, y_test; it must hold x_train, y_train, x_test, y_test"),
    ("digits", {"x_train": np.zeros((6, 32, 32, 3), np.uint8)},
     "x_train must be [n, 20, 20, 1] for digits, but is [6, 32, 32, 3]"),
    ("digits", {"y_train": np.zeros(7, np.uint8)}, "y_train must be [6] like x_train and not empty, but is [7]"),
    ("digits", {"x_test": np.zeros((0, 20, 20, 1), np.uint8), "y_test": np.zeros(0, np.uint8)},
     "y_test must be [0] like x_test and not empty"),
    ("digits", {"x_test": np.zeros((1797, 20, 20), np.uint8), "y_test": np.zeros(1797, np.uint8)},
     "the archive holds 1803 samples, but digits has 1797"),
    ("digits", {"y_test": np.arange(4)}, "y_test must be uint8, but is int64"),
    ("digits", {"y_train": np.array([None] * 6)}, "'y_train' holds Python objects; plain numeric arrays are allowed"),
    ("digits", {"y_train": np.full(6, 10, np.uint8)}, "y_train holds class 10, but digits has classes 0 to 9"),
    ("shakespeare", {"client_test": LACKS, "vocabulary": LACKS},
     f"the archive lacks client_test, vocabulary; it must hold {TEXT}"),
    ("shakespeare", {"x_train": np.zeros((12, 80, 1), np.uint8)},
     "x_train must be [n, 80] for shakespeare, but is [12, 80, 1]"),
    ("shakespeare", {"client_test": np.zeros(5, np.int64)},
     "client_test must be int32 [5] like y_test, but is int64 [5]"),
    ("shakespeare", {"client_train": np.zeros(11, np.int32)},
     "client_train must be int32 [12] like y_train, but is int32 [11]"),
    ("shakespeare", {"client_train": np.full(12, -1, np.int32)},
     "client_train holds client -1, but clients count from 0"),
    ("shakespeare", {"vocabulary": np.array(["a", "b"])}, "vocabulary must be one string, but is <U1 [2]"),
    ("shakespeare", {"vocabulary": np.array("abca")},
     "vocabulary must be 2 to 80 different characters, but has 4, of which 3 are different"),
    ("shakespeare", {**FEW, "x_test": np.full((5, 80), 3, np.uint8)},
     "x_test holds character 3, but the vocabulary has only 3"),
    ("shakespeare", {"vocabulary": np.array("abc"), "y_train": np.full(12, 3, np.uint8)},
     "y_train holds class 3, but shakespeare has classes 0 to 2"),
]  # fmt: skip


@pytest.mark.parametrize(("dataset", "changes", "words"), MALFORMED)
def test_a_malformed_archive_is_told_in_one_sentence(tmp_path: Path, dataset: str, changes: Arrays, words: str) -> None:
    path, usual = tmp_path / "x.npz", digits_like() if dataset == "digits" else arrays_of(dataset)
    np.savez(path, allow_pickle=True, **{key: one for key, one in {**usual, **changes}.items() if one is not LACKS})
    text = sentence(lambda: archives.read(path, dataset))
    has(text, f"{path}: {words}")
    if " holds c" not in text and "characters" not in text:  # the headers tell all else
        assert sentence(lambda: archives.check(path, dataset)) == text


def test_the_vocabulary_of_an_archive_may_be_smaller_than_that_of_its_data_set(tmp_path: Path) -> None:
    arrays: Arrays = {**arrays_of("shakespeare"), **FEW}
    np.savez(tmp_path / "x.npz", allow_pickle=False, **arrays)  # type: ignore[arg-type]
    same(archives.read(tmp_path / "x.npz", "shakespeare"), arrays)


def zip_texts(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for key in archives.KEYS:
            archive.writestr(f"{key}.npy", "no array")


def twice(path: Path) -> None:
    write_archive(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y_test", archive.read("y_test.npy"))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (halve, "the file is truncated or not an npz archive; make or copy it again"),
        (lambda path: path.write_text("hello"), "the file is truncated or not an npz archive; make or copy it again"),
        (os.mkfifo, "must be a regular file, not a folder, a pipe or a device"),
        (lambda path: path.symlink_to(path), "the file cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "there is no such file"),
        (twice, "the file holds 'y_test' twice; make or copy it again"),
        (zip_texts, "'x_train' is damaged or not an array; plain numeric arrays are allowed"),
    ],
    ids=["truncated", "text", "a pipe", "a circle of links", "a link to nothing", "a name twice", "a zip of texts"],
)
def test_a_file_that_is_no_archive_is_told_in_one_sentence(
    tmp_path: Path, write: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "digits.npz"
    write(path)
    for use in (archives.read, archives.check):
        has(sentence(partial(use, path, "digits")), f"{path}: {words}")


def with_header(path: Path, key: str, header: str, compression: int = zipfile.ZIP_STORED) -> None:
    """Give an array of the black images another header, and keep its data."""
    content = write_archive(path).read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w", compression) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == f"{key}.npy":
                data = data[:8] + struct.pack("<H", len(header)) + header.encode() + data[128:]
            new.writestr(name, data)


def header_of(shape: str = "(6,)") -> str:
    return f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}\n"


DAMAGED, LONG = "'y_train' is damaged or not an array", "'y_train' should be "


@pytest.mark.parametrize(
    ("header", "words"),
    [
        pytest.param(header_of("-" * 3900 + "1"), DAMAGED, id="RecursionError or MemoryError"),
        pytest.param(header_of("(-2, -3)"), LONG, id="two negative lengths"),
        pytest.param(header_of("(5,)"), LONG, id="one sample less"),
        pytest.param(header_of() + " " * 5000, DAMAGED, id="a long header"),
    ],
)
def test_a_damaged_header_is_told_in_one_sentence(tmp_path: Path, header: str, words: str) -> None:
    path = tmp_path / "digits.npz"
    with_header(path, "y_train", header_of())
    assert archives.check(path, "digits") == 10
    with_header(path, "y_train", header)
    for use in (archives.read, archives.check):
        has(sentence(partial(use, path, "digits")), f"{path}: {words}")


def test_an_archive_is_packed_as_numpy_packs(tmp_path: Path) -> None:
    path = tmp_path / "digits.npz"
    with_header(path, "y_train", header_of(), zipfile.ZIP_LZMA)
    has(sentence(lambda: archives.check(path, "digits")), f"{path}: 'x_train' is damaged or not an array")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_of_an_array_is_told(tmp_path: Path, save: Callable[..., None]) -> None:
    path, expected = tmp_path / "digits.npz", arrays_of("digits")
    save(path, allow_pickle=False, **expected)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start, length = content.index(b"x_train.npy"), archive.getinfo("x_train.npy").compress_size
    for at in range(start + 11, start + 31 + length, 7):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            same(archives.read(path, "digits"), expected)  # a field that nobody reads
        except UserError:
            continue


def test_a_check_reads_no_array(tmp_path: Path) -> None:
    train = {"x_train": np.zeros((60, 20, 20, 1), np.uint8), "y_train": np.zeros(60, np.uint8)}
    path = write_archive(tmp_path / "digits.npz", **train)
    content = bytearray(path.read_bytes())
    content[content.index(b"x_train.npy") + 20_000] ^= 1
    path.write_bytes(content)
    assert archives.check(path, "digits") == 64
    has(sentence(lambda: archives.read(path, "digits")), f"{path}: the file is truncated or not an npz archive")


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "digits.npz"
    np.savez_compressed(path, allow_pickle=False, **{**digits_like(), "x_train": np.zeros((60_000, 20, 20), np.uint8)})
    monkeypatch.setattr(archives, "_array", lambda *_: pytest.fail("an array was read"))
    has(sentence(lambda: archives.read(path, "digits")), "y_train must be [60000] like x_train", "but is [6]")
    has(sentence(lambda: archives.load_arrays(path)), f"{path}: the arrays are longer than the file")
