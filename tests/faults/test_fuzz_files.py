"""Damaged files are read right or told, as counted; a failure ends with the seed of its case."""

import time
from pathlib import Path

import pytest

from fu.data import archives
from tests.faults import fuzz_files


def test_the_first_failure_is_told_by_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archives, "UserError", KeyError)
    assert fuzz_files.main(["--cases", "200"]) == 1
    text = capsys.readouterr().err
    assert ", seed " in text.splitlines()[0]
    assert "KeyError: " in text


def test_a_hang_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fuzz_files, "SECONDS", 0.05)
    assert "HangError: more than 0.05 s" in fuzz_files.end_of(lambda _: time.sleep(5), tmp_path)
