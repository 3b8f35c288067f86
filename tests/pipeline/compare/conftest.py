"""Each test has a folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which results lie."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
