"""What all stages share: outputs written whole or not at all, with ordinary permissions."""

import stat
from pathlib import Path

import pytest

from fu.stages.common import whole


def test_outputs_appear_together_with_ordinary_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    first, second = tmp_path / "deep/first.csv", tmp_path / "second.csv"
    with whole(first, second) as (a, b):
        a.touch(mode=0o600)
        b.write_text("b")
        assert not first.exists()
    assert second.read_text() == "b"
    assert stat.S_IMODE(first.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("before")
    (tmp_path / ".part-1-old.csv").write_text("left by a killed job")

    def job() -> None:
        with whole(old, tmp_path / "new.csv") as (part, _):
            part.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        job()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old.csv": "before"}
