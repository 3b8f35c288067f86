"""What a run that submits jobs to a cluster tells them: its config, and which command of each it has planned.

A submitted job plans again, with the code and papers that are in the folder by then. If its command is no longer the
planned one, it fails with one sentence.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fu.errors import UserError

FOLDER = Path(".snakemake/submitted")
CONFIG, JOBS = FOLDER / "config.json", FOLDER / "jobs.json"
EDITED = (
    "code, a paper or a library was edited after this run was submitted; start the same command again. To edit while "
    "jobs wait, submit from a git worktree (docs/cluster.md)."
)


class Submitted(NamedTuple):
    """What was planned: the effective config, whether jobs are forced, and a digest of every command by certificate."""

    config: dict[str, Any]
    forced: bool
    commands: dict[str, str]


def digest(command: Iterable[str]) -> str:
    """Return the digest of a command."""
    return hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]


def write(config: Mapping[str, Any], forced: bool, commands: Mapping[str, str]) -> None:
    """Write what jobs read that are submitted from now on."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, content in ((CONFIG, config), (JOBS, {"forced": forced, "commands": commands})):
        part = path.with_suffix(".part")
        part.write_text(json.dumps(content))
        part.replace(path)


def read() -> Submitted:
    """Return what the run that submitted this job has written."""
    try:
        return Submitted(json.loads(CONFIG.read_text()), **json.loads(JOBS.read_text()))
    except (OSError, ValueError, TypeError):
        raise UserError(f"{FOLDER}: a file is missing or damaged; start the run that submits jobs again.") from None
