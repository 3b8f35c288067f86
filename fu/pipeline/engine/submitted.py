"""What a run hands to the jobs that it submits to a cluster: its config, and a digest of the command of each job.

A submitted job plans again, from the code and papers that the folder has by then. If its command has changed, it fails
with one sentence.
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
    """The effective config, whether jobs are forced, and by certificate the digest of each planned command."""

    config: dict[str, Any]
    forced: bool
    commands: dict[str, str]


def digest(command: Iterable[str]) -> str:
    """Return the digest of a command."""
    return hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]


def write(config: Mapping[str, Any], forced: bool, commands: Mapping[str, str]) -> None:
    """Write what submitted jobs read."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, content in ((CONFIG, config), (JOBS, {"forced": forced, "commands": commands})):
        part = path.with_suffix(".part")
        part.write_text(json.dumps(content))
        part.replace(path)


def read() -> Submitted:
    """Return what the run that submitted this job wrote."""
    try:
        return Submitted(json.loads(CONFIG.read_text()), **json.loads(JOBS.read_text()))
    except (OSError, ValueError, TypeError):
        raise UserError(f"{FOLDER}: a file is missing or damaged; start the run that submits jobs again.") from None
