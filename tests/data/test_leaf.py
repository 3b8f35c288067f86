"""LEAF's files: what they hold is what is read, and what is none of them is told in one sentence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.data import archives, leaf, sources
from fu.data.archives import Arrays
from fu.data.dataset import about
from fu.errors import UserError
from tests.data.files import images, labels
from tests.data.leaf_files import Users, write, written
from tests.mistakes import has

IMAGES, LABELS = images(9, (28, 28, 1), 1), labels(9, 62, 2)
WINDOWS = ["ab" * 40, "ba" * 40, "c" * 80, "!" * 80, "b" * 80]


def fetch(name: str, data_dir: Path) -> Arrays:
    return sources.fetch(name, about(name), data_dir)


def writers(data_dir: Path) -> Path:
    """Nine images of three writers, in two files to train and one to test."""
    folder = data_dir / "femnist"
    write(folder, "train", 1, {"f0002_05": written(IMAGES[4:6], LABELS[4:6])})
    write(
        folder, "train", 0, {"f0001_41": written(IMAGES[:3], LABELS[:3]), "f0000_14": written(IMAGES[3:4], LABELS[3:4])}
    )
    test: Users = {"f0002_05": written(IMAGES[6:7], LABELS[6:7]), "f0001_41": written(IMAGES[7:], LABELS[7:])}
    write(folder, "test", 0, test)
    return folder


def roles(data_dir: Path) -> Path:
    """Five windows of two roles; LEAF names a play for each, and keeps the lines that it left out."""
    folder = data_dir / "shakespeare"
    play = {"hierarchies": ["A PLAY", "A PLAY"]}
    write(folder, "train", 1, {"NOBODY": ([], [])})
    write(folder, "train", 0, {"LEAR": (WINDOWS[:2], ["a", "!"]), "FOOL": (WINDOWS[2:3], ["d"])}, **play)
    write(folder, "test", 0, {"FOOL": (WINDOWS[3:4], ["\n"]), "LEAR": (WINDOWS[4:], ["a"])}, **play)
    return folder


def test_images_of_writers_are_read_in_the_order_of_the_files(tmp_path: Path) -> None:
    writers(tmp_path)
    found = fetch("femnist", tmp_path)
    assert {key: (array.dtype.name, array.shape) for key, array in found.items()} == {
        "x_train": ("uint8", (6, 28, 28, 1)),
        "y_train": ("uint8", (6,)),
        "client_train": ("int32", (6,)),
        "x_test": ("uint8", (3, 28, 28, 1)),
        "y_test": ("uint8", (3,)),
        "client_test": ("int32", (3,)),
    }
    np.testing.assert_array_equal(np.concatenate([found["x_train"], found["x_test"]]), IMAGES)
    np.testing.assert_array_equal(np.concatenate([found["y_train"], found["y_test"]]), LABELS)
    assert found["client_train"].tolist() == [0, 0, 0, 1, 2, 2]
    assert found["client_test"].tolist() == [2, 0, 0]


def test_windows_of_roles_are_read_as_bytes_with_their_vocabulary(tmp_path: Path) -> None:
    roles(tmp_path)
    found = fetch("shakespeare", tmp_path)
    vocabulary = str(found.pop("vocabulary"))
    assert vocabulary == "\n!abcd"
    assert {array.dtype.name for key, array in found.items() if key[0] in "xy"} == {"uint8"}
    texts = ["".join(vocabulary[k] for k in row) for split in ("train", "test") for row in found[f"x_{split}"]]
    assert texts == WINDOWS
    assert [vocabulary[k] for split in ("train", "test") for k in found[f"y_{split}"]] == ["a", "!", "d", "\n", "a"]
    assert (found["client_train"].tolist(), found["client_test"].tolist()) == ([0, 0, 1], [1, 0])


@pytest.mark.parametrize(("name", "make"), [("femnist", writers), ("shakespeare", roles)])
def test_what_is_read_is_an_archive(tmp_path: Path, name: str, make: Any) -> None:
    make(tmp_path)
    found = fetch(name, tmp_path)
    np.savez(tmp_path / "made.npz", allow_pickle=False, **found)  # type: ignore[arg-type]
    again = archives.read(tmp_path / "made.npz", name)
    assert set(again) == set(found)
    assert all(np.array_equal(again[key], found[key]) for key in found)


ONE: Users = {"f0001_41": written(IMAGES[:1], LABELS[:1])}
PIXELS = ONE["f0001_41"][0][0]


def one_user(x: list[Any], y: list[Any]) -> str:
    return json.dumps({"users": ["a"], "num_samples": [1], "user_data": {"a": {"x": x, "y": y}}})


BROKEN = [
    ("femnist", "hello", "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
    ("femnist", one_user([PIXELS], [1, 2]), "ValueError: a has 1 samples and 2 labels of 1"),
    ("femnist", one_user([[*PIXELS[:-1], float("nan")]], [1]), "pixel values must be from 0 to 1"),
    ("femnist", one_user([PIXELS], [62]), "labels must be integers from 0 to 61"),
    ("femnist", one_user([PIXELS], [1.5]), "labels must be integers from 0 to 61"),
    ("shakespeare", one_user(["a" * 79], ["b"]), "a window must have 80 characters, a label one"),
]


@pytest.mark.parametrize(("name", "text", "words"), BROKEN, ids=[words for *_, words in BROKEN])
def test_a_damaged_file_is_told_in_one_sentence(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = (writers if name == "femnist" else roles)(tmp_path) / "test" / "all_data_1.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        fetch(name, tmp_path)
    told = str(caught.value)
    has(told, f"{path}: damaged, or not a file of LEAF's {name} (", words, "); make it again.")
    assert "\n" not in told


def test_files_without_samples_are_told_and_a_folder_without_files_is_none(tmp_path: Path) -> None:
    folder = writers(tmp_path)
    for path in (folder / "test").iterdir():
        path.unlink()
    assert not leaf.exists(folder)
    with pytest.raises(UserError, match=r"femnist\.npz or LEAF's files in \S+femnist in place \(its format"):
        fetch("femnist", tmp_path)
    write(folder, "test", 0, {"a": ([], [])})
    with pytest.raises(UserError, match=r"femnist/test: LEAF's files have no samples; make them again\.$"):
        fetch("femnist", tmp_path)


def test_more_samples_or_characters_than_the_data_set_has_are_told(tmp_path: Path) -> None:
    folder, facts = roles(tmp_path), about("shakespeare")
    with pytest.raises(UserError, match="shakespeare: LEAF's files have 5 samples, but shakespeare has 4"):
        leaf.read(folder, "shakespeare", replace(facts, samples=4))
    with pytest.raises(UserError, match="shakespeare: LEAF's files have 6 characters, but shakespeare has 5"):
        leaf.read(folder, "shakespeare", replace(facts, classes=5))
    assert leaf.read(folder, "shakespeare", replace(facts, samples=5, classes=6))
