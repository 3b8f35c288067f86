"""Slurm's commands as scripts that say what a test has told them, for tests without a Slurm."""

import os
from pathlib import Path

import pytest

PARTITIONS = ("usual*|1-00:00:00", "long|14-00:00:00", "short|30:00", "free|infinite", "a100|1:30:30")


class FakeSlurm:
    """`sinfo`, `squeue` and `scancel` first on the PATH; the working directory is where jobs were submitted."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._answers, self._programs = root / "project", root / "answers", root / "programs"
        for folder in (self.root, self._answers, self._programs):
            folder.mkdir()
        for name in ("sinfo", "squeue", "scancel"):
            (self._answers / name).touch()
            self._script(name, f'cat "{self._answers}/{name}"')
        self._script("scancel", f'echo "$@" > "{self._answers}/cancelled"; : > "{self._answers}/squeue"')
        (self._answers / "sinfo").write_text("".join(f"{line}\n" for line in PARTITIONS))
        monkeypatch.setenv("PATH", f"{self._programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.chdir(self.root)

    def _script(self, name: str, text: str) -> None:
        program = self._programs / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def queued(self, number: str, name: str = "fu_uuid", folder: str = "") -> None:
        """Add a job to the queue."""
        line = "|".join([number, name, folder or str(self.root)])
        with (self._answers / "squeue").open("a") as queue:
            print(line, file=queue)

    def fails(self, name: str, text: str) -> None:
        """Have a command fail."""
        self._script(name, f'echo "{text}" >&2; exit 1')

    def stubborn(self) -> None:
        """Have scancel end nothing."""
        self._script("scancel", "")

    def cancelled(self) -> list[str]:
        """Return the jobs that were cancelled."""
        return (self._answers / "cancelled").read_text().split()
