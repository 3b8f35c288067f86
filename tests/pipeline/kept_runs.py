"""Kept runs for tests, as `make keep` writes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fu.contents import checksum
from fu.pipeline.documents.kept import ABOUT, About

PLAIN: dict[str, Any] = {
    "preset": "reduced",
    "seeds": [0, 1],
    "scenarios": {},
    "commits": ["c0ffee"],
    "edited": False,
    "hours": 1.5,
    "devices": ["cpu"],
    "versions": {},
}


def write(below: Path, paper: str, name: str, texts: Mapping[str, str], **about: Any) -> Path:
    """Write a run with these files; return its folder."""
    folder = below / paper / name
    folder.mkdir(parents=True)
    for file, text in texts.items():
        (folder / file).write_text(text)
    files = {file: checksum(folder / file) for file in texts}
    config = {"papers": [paper], **about.get("config", {})}
    made = About(**{**PLAIN, **about, "config": config, "files": files}).sealed()
    (folder / ABOUT).write_text(yaml.safe_dump(made.model_dump(mode="json"), sort_keys=False))
    return folder


def about_of(folder: Path) -> About:
    """Return what run.yaml states."""
    return About.model_validate(yaml.safe_load((folder / ABOUT).read_text()))
