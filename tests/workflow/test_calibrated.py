"""What `make calibrate` has measured reaches the run-time limits of jobs, and no result."""

import json
import re
from pathlib import Path

from fu.pipeline import estimates
from tests.workflow.project import with_toy


def test_a_measured_machine_changes_limits(tmp_path: Path) -> None:
    project = with_toy(tmp_path / "project")
    model = "results/toy/toy/iid/seed0/original.trained.safetensors"

    def limit() -> int:
        text = project.snakemake("-n", model).stdout
        (found,) = re.findall(r"^rule train:\n(?:.*\n)*?.*runtime=(\d+)", text, re.M)
        return int(found)

    assert limit() < 25
    device = {"kind": "cpu", "name": "a slow one", "threads": 1, "job_s": 3600.0, "load_s": 1.0, "speeds": []}
    content = {"date": "2026-01-02", "libraries": estimates.libraries(), "devices": [device]}
    (project.root / estimates.CALIBRATION).parent.mkdir(parents=True, exist_ok=True)
    (project.root / estimates.CALIBRATION).write_text(json.dumps(content))
    assert 20 + 4 * 60 <= limit() < 25 + 4 * 60
