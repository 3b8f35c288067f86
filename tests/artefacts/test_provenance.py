"""Where an artefact comes from: which commit, and whether it was clean."""

import json
import subprocess
from pathlib import Path

import pytest

from fu.artefacts import provenance
from fu.artefacts.provenance import COMMIT, commit


def test_the_commit_is_clean_until_a_file_of_it_is_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMMIT, raising=False)
    monkeypatch.setattr(provenance, "CODE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() == {"commit": None, "clean": None}
    for name in ("file", "config.yaml"):
        (tmp_path / name).write_text("one")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "One"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    made = commit()
    assert (len(made["commit"]), made["clean"]) == (40, True)
    (tmp_path / "other").write_text("not part of it")
    (tmp_path / "config.yaml").write_text("settings, which the spec has")
    assert commit() == made
    (tmp_path / "file").write_text("two")
    assert commit() == {**made, "clean": False}
    monkeypatch.setenv(COMMIT, json.dumps({"commit": "told", "clean": True}))
    assert commit() == {"commit": "told", "clean": True}
