"""What the plan believes of a file, and when it reads it again."""

import os
from pathlib import Path

import pytest

from fu.contents import checksum
from fu.pipeline import pending
from fu.pipeline.certificate import Certificate
from fu.pipeline.pending import Seen, _differences


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, and a memory of its own."""
    monkeypatch.setattr(pending, "SEEN", tmp_path / "cache/seen.json")
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"as it was made")
    return path


def certified(path: Path, seal: str = "a seal") -> Certificate:
    """The certificate of a file as it is."""
    return Certificate("k", "train", {}, "c", {}, {}, {path.name: (path.stat().st_size, checksum(path))}, seal)


def rewritten(path: Path, content: bytes) -> None:
    """Write other contents under the same times."""
    about = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_a_file_is_read_where_it_does_not_look_as_before(model: Path) -> None:
    made, seen = certified(model), Seen()
    expected = checksum(model)
    assert seen.content(str(model), made) == expected
    rewritten(model, b"as it was MADE")
    assert seen.content(str(model), made) == checksum(model) != expected
    rewritten(model, b"as it was made")
    assert seen.content(str(model), made) == expected
    model.unlink()
    assert seen.content(str(model), made) is None


def test_what_was_seen_is_remembered(model: Path) -> None:
    made, seen = certified(model), Seen()
    seen.content(str(model), made)
    seen.remember()
    rewritten(model, b"as it was MADE")
    assert Seen().content(str(model), made) == checksum(model)


def test_at_first_sight_the_certificate_is_believed_unless_the_size_differs_or_all_is_read(model: Path) -> None:
    made = certified(model)
    expected = checksum(model)
    model.write_bytes(b"as it was MADE")
    assert Seen().content(str(model), made) == expected
    assert Seen().content(str(model), made, thorough=True) == checksum(model) != expected
    model.write_bytes(b"longer than it was made")
    assert Seen().content(str(model), made) == checksum(model)


def test_a_file_that_was_made_anew_is_believed_under_its_new_certificate(model: Path) -> None:
    seen = Seen()
    seen.content(str(model), certified(model))
    model.write_bytes(b"as it is made now")
    assert seen.content(str(model), certified(model, "another seal")) == checksum(model)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"lr": 0.1}, {"lr": 0.1}, []),
        ({"local": {"lr": 0.1, "rounds": 2}}, {"local": {"lr": 0.2, "rounds": 2}}, ["local.lr: 0.1 -> 0.2"]),
        ({"a": 1}, {"a": 1, "b": None}, ["b: absent -> null"]),
        ({"a": 1, "b": "x"}, {"a": 1}, ['b: "x" -> absent']),
        ([{"name": "x", "v": 1}, {"name": "y"}], [{"name": "x", "v": 2}, {"name": "y"}], ["x.v: 1 -> 2"]),
        ([{"name": "x"}, {"name": "y"}], [{"name": "y"}, {"name": "x"}], [': order: ["x", "y"] -> ["y", "x"]']),
        ({"a": "x" * 90}, {"a": 1}, [f'a: "{"x" * 56}... -> 1']),
    ],
)  # fmt: skip
def test_differences_are_told_by_their_place(old: object, new: object, told: list[str]) -> None:
    assert list(_differences(old, new)) == told
