"""A run on a machine with GPUs that are not there: which jobs take one, and how many at a time."""

import os
from pathlib import Path

import pytest

from tests.test_gpus import put_tool
from tests.workflow.project import Project, with_toy

pytestmark = pytest.mark.whole

NOTED = """                os.environ[VISIBLE] = name
                with open("taken.log", "a") as log:
                    print(name, os.getpid(), file=log)
"""
WITH_MODELS = {"train", "shadow", "unlearn", "recover", "evaluate", "predict", "relearn"}


def run(project: Project, tools: Path) -> None:
    """Run Snakemake with tools of one's own, and a torch that says it was built for CUDA."""
    about = tools / "torch-2.13.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cu126\n")
    path = f"{tools}:{os.environ['PATH']}"
    project.run("-m", "snakemake", "--cores", "2", PYTHONPATH=str(tools), PATH=path, TMPDIR=str(tools))


@pytest.mark.parametrize("number", [1, 4])
def test_jobs_that_compute_share_the_gpus_and_none_starts_that_would_wait(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    project, tools = with_toy(tmp_path / "project"), tmp_path / "tools"
    tools.mkdir()
    names = [f"GPU-{k}" for k in range(number)]
    listed = "".join(f"GPU {k}: A100 (UUID: {name})\n" for k, name in enumerate(names))
    put_tool(tools, listed, "40960\n" * number)
    project.edit("config.yaml", "device: auto", "device: auto\njobs_per_gpu: 1")
    project.edit("fu/gpus.py", "                os.environ[VISIBLE] = name\n", NOTED)
    computing = project.graph().where(lambda job: job.stage in WITH_MODELS)
    run(project, tools)
    taken = [line.split() for line in (project.root / "taken.log").read_text().splitlines()]
    assert {name for name, _ in taken} == ({names[0]} if number == 1 else {names[0], names[1]})
    assert len({pid for _, pid in taken}) == len(taken)
    assert 0 < len(taken) <= len(computing)
    logs = [path.read_text() for path in (project.root / "results").rglob("*.log")]
    assert len(logs) > len(computing)
    assert not [text for text in logs if "waiting for a free one" in text]
