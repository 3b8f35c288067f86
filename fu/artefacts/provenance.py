"""Where an artefact comes from: commit, spec, digests, versions, devices, seconds, inputs."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fu.artefacts.entry import Entry

COMMIT = "FU_COMMIT"  # set where there is no git: in a container
CODE = Path(__file__).parent  # in the repository that git is asked about
PACKAGES = ("torch", "numpy", "pandas", "snakemake", "matplotlib", "safetensors")


def git(*arguments: str) -> str | None:
    """Return what git prints about the code, or None where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=CODE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def commit() -> dict[str, Any]:
    """Return the commit of the code, and whether it was clean."""
    if told := os.environ.get(COMMIT):
        return dict(json.loads(told))
    edits = edited()
    return {"commit": git("rev-parse", "HEAD"), "clean": None if edits is None else not edits}


def edited() -> str | None:
    """Return what git says of edited files, without config.yaml, whose values are in every spec."""
    return git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)config.yaml")


def describe(entry: Entry, code: str, inputs: Mapping[str, str], costs: Iterable[Path]) -> dict[str, Any]:
    """Return the provenance of one artefact.

    `inputs`: path -> SHA-256; `costs`: files of the models behind it.
    """
    spent = {str(path): json.loads(path.read_text()) for path in costs}
    return {
        **commit(),
        "preset": entry.preset,
        "spec": entry.model_dump(mode="json"),
        "code": code,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "seconds": round(sum(cost["seconds"] for cost in spent.values()), 3),
        "devices": sorted({cost["device"] for cost in spent.values()}),
        "threads": sorted({cost["threads"] for cost in spent.values()}),
        "inputs": dict(inputs),
        "costs": spent,
    }
