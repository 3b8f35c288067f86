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


@pytest.mark.parametrize("left", [0, 1, 20, 100])
def test_a_memory_that_is_cut_off_is_none(model: Path, left: int) -> None:
    made, seen = certified(model), Seen()
    seen.content(str(model), made)
    seen.remember()
    pending.SEEN.write_bytes(pending.SEEN.read_bytes()[:left])
    rewritten(model, b"as it was MADE")
    assert Seen().content(str(model), made) == made.outputs[model.name][1]  # as at first sight


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


BEFORE = "Mean accuracy of all clients on their own test data"  # a long text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"lr": 0.1}, {"lr": 0.1}, []),
        ({"local": {"lr": 0.1, "rounds": 2}}, {"local": {"lr": 0.2, "rounds": 2}}, ["local.lr: 0.1 -> 0.2"]),
        ({"a": 1}, {"a": 1, "b": None}, ["b: absent -> null"]),
        ({"a": 1, "b": "x"}, {"a": 1}, ["b: x -> absent"]),
        ({"a": [{"name": "x", "v": 1}, {"name": "y"}]}, {"a": [{"name": "x", "v": 2}, {"name": "y"}]},
            ["a.x.v: 1 -> 2"]),
        ({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "x"}]}, ["a: order: x, y -> y, x"]),
        ({"a": [{"name": "x"}]}, {"a": [{"name": "x"}, {"name": "z", "v": {"w": 1}}]}, ["a.z: new"]),
        ({"a": {"x": {"v": 1}, "y": {"v": 1}}}, {"a": {"x": {"v": 1}}}, ["a.y: gone"]),
        ({"a": [{"v": 1}, {"v": 2}]}, {"a": [{"v": 1}, {"v": 3}]}, ["a.2.v: 2 -> 3"]),
        ({"a": [{"name": "x"}, {"name": "x", "v": 1}]}, {"a": [{"name": "x"}, {"name": "x", "v": 2}]},
            ["a.2.v: 1 -> 2"]),
        ({"attack": None}, {"attack": {"name": "patch", "params": {"size": 3}}}, ["attack: null -> patch"]),
        ({"forget": {"clients": 1, "samples": None}}, {"forget": None}, ["forget: 2 values -> null"]),
        ({"a": []}, {"a": [{"name": "x"}]}, ["a.x: new"]),
        ({"a": {"size": 3}}, {"a": {"width": 2}}, ["a.size: 3 -> absent", "a.width: absent -> 2"]),
        ({"a": {}}, {"a": None}, ["a: 0 values -> null"]),
        ({"a": ["asr", "r_acc"], "b": [["x", 1]]}, {"a": ["asr"], "b": [["x", -1], ["y", 1]]},
            ["a: asr, r_acc -> asr", "b: (x, 1) -> (x, -1), (y, 1)"]),
        ({"a": ""}, {"a": True}, ["a: none -> true"]),
        ({"a": "x" * 90}, {"a": 1}, [f"a: {'x' * 57}... -> 1"]),
        ({"a": f"{BEFORE}, in percent"}, {"a": f"{BEFORE}, in points"},
            ["a: ... own test data, in percent -> ... own test data, in points"]),
    ],
)  # fmt: skip
def test_differences_are_told_by_their_place(old: object, new: object, told: list[str]) -> None:
    assert list(map(str, _differences(old, new))) == told
