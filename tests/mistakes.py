"""What is told of a person's mistake, one sentence, and the files to make one with."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fu.data.archives import Arrays
from fu.errors import UserError
from fu.pipeline.provenance.digest import ROOT


def sentence(action: Callable[[], Any]) -> str:
    """Return the one sentence that an action ends with."""
    with pytest.raises(UserError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert not re.search(r"[.!?] +[A-Z]", text), "more than one sentence"
    assert "Traceback" not in text
    return text


def has(text: str, *words: str) -> None:
    """Assert that a text has all these words."""
    assert [word for word in words if word not in text] == [], text


def digits_like() -> Arrays:
    """Return an archive of ten black images, one of every class."""
    return {
        "x_train": np.zeros((6, 20, 20, 1), np.uint8),
        "y_train": np.arange(6, dtype=np.uint8),
        "x_test": np.zeros((4, 20, 20, 1), np.uint8),
        "y_test": np.arange(6, 10, dtype=np.uint8),
    }


def write_archive(path: Path, **changes: Any) -> Path:
    """Write the black images, some arrays replaced."""
    np.savez(path, allow_pickle=False, **{**digits_like(), **changes})
    return path


def halve(path: Path) -> None:
    """Write the first half of an archive."""
    content = write_archive(path).read_bytes()
    path.write_bytes(content[: len(content) // 2])


def python(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    """Run Python in a folder; return its status and all that it prints."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def process(folder: Path, *command: str) -> tuple[int, str]:
    """Run a module in a folder; return its status and all that it prints."""
    return python(folder, "-m", *command)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every file's bytes, and None for a folder."""
    found = [path for path in folder.rglob("*") if ".snakemake" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}
