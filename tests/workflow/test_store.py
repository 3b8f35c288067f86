"""A folder that keeps what was computed: for a setting that is switched back and forth, another checkout and preset."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.workflow.project import Project, with_toy

STAGES = {"trained": "train", "unlearned": "unlearn", "recovered": "recover"}
TAKEN = "; nothing is computed."


def run(project: Project) -> tuple[Counter[str], Counter[str]]:
    """Make the bars; return how many jobs of each computing stage ran, and how many of these took what they make."""
    logs = project.root / "results"
    for log in logs.glob("*/logs/**/*.log"):
        log.unlink()
    project.snakemake("toy_bars")
    ran, taken = Counter[str](), Counter[str]()
    for log in logs.glob("*/logs/**/*.log"):
        if stage := STAGES.get(log.stem.rpartition(".")[2]):
            ran[stage] += 1
            taken[stage] += TAKEN in log.read_text()
    return ran, taken


@pytest.fixture
def cached(tmp_path: Path) -> Project:
    """The toy project with a store, in which nothing was made."""
    project = with_toy(tmp_path / "project")
    project.edit("config.yaml", "cache: null", f"cache: {tmp_path}/cache")
    return project


def results(project: Project, preset: str) -> dict[str, bytes]:
    """Return all results that times play no part in, and the costs of what is computed."""
    root = project.root / "results" / preset
    files = (path for path in root.rglob("*") if path.suffix in (".safetensors", ".csv") or ".cost." in path.name)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_a_setting_switched_back_another_checkout_and_another_preset_compute_nothing_again(
    cached: Project, tmp_path: Path
) -> None:
    ran, taken = run(cached)
    assert ran == {"train": 1, "unlearn": 1, "recover": 1}
    assert taken.total() == 0
    before = results(cached, "toy")

    cached.override("{toy: {settings: {recovery: {lr_decay: 0.5}}}}")
    ran, taken = run(cached)
    assert ran == {"recover": 1}
    assert taken.total() == 0
    cached.edit("config.yaml", "{toy: {settings: {recovery: {lr_decay: 0.5}}}}", "{}")
    ran, taken = run(cached)
    assert ran == taken == {"recover": 1}
    assert results(cached, "toy") == before
    about = json.loads((cached.root / "results/toy/artefacts/toy/bars.json").read_text())
    assert set(about["taken"]) == {"results/toy/toy/iid/seed0/fupga+lr0.02.recovered.cost.json"}

    other = with_toy(tmp_path / "elsewhere")
    other.edit("config.yaml", "cache: null", f"cache: {tmp_path}/cache")
    shutil.copy(other.root / "workflow/presets/toy.yaml", other.root / "workflow/presets/another.yaml")
    other.edit("config.yaml", "preset: toy", "preset: another")
    ran, taken = run(other)
    assert ran == taken == {"train": 1, "unlearn": 1, "recover": 1}
    assert results(other, "another") == before
