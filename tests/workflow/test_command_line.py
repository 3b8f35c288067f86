"""What users type: make, make show, a stage's own command, a kill in the middle."""

import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.workflow.project import Project, from_repository, until


def test_show_prints_the_command_that_the_rule_runs(project: Project) -> None:
    files = {
        "data/digits": "npz",
        "toy/iid/seed0/partition": "npz",
        "toy/pat/fedosd.selected": "json",
        "artefacts/toy/numbers": "json",
    }
    paths = {target: f"results/toy/{target}.{suffix}" for target, suffix in files.items()}
    for path in paths.values():
        (project.root / path).unlink()
    text = project.snakemake("-n", "-p", *paths.values()).stdout
    for target in paths:
        shown = shlex.split(project.show("show", CELL=target))
        shown = shown[shown.index("-m") + 1 :]
        line = next(line for line in text.splitlines() if f" {shown[0]} " in line)
        ran = shlex.split(line.split(f" {shown[0]} ")[1].rpartition(" 2> ")[0])
        place, same = ran.index("--code"), ran.index("--unless-made")
        ran = [word for k, word in enumerate(ran) if k not in (place, place + 1, same, len(ran) - 1)]  # and --plugins
        assert ran == shown[1 : 1 + len(ran)]


@pytest.mark.whole
def test_a_killed_job_goes_on_to_the_same_bytes_and_an_edited_one_starts_anew(project: Project) -> None:
    project.edit("workflow/papers/toy.yaml", "    rounds: {value: 4,", "    rounds: {value: 200,")
    run = project.root / "results/toy/toy/iid/seed0"
    command = [*shlex.split(project.show("show", CELL="toy/iid/seed0/original.trained")), "--checkpoint-seconds", "0"]
    outputs = [run / f"original.trained.{suffix}" for suffix in ("safetensors", "csv", "history.safetensors")]
    checkpoint = run / ".original.trained.checkpoint"

    def finished() -> str:
        return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True).stderr

    finished()
    expected = [path.read_bytes() for path in outputs]
    for path in outputs:
        path.unlink()
    process = subprocess.Popen(command, cwd=project.root, stderr=subprocess.DEVNULL)
    until(lambda: checkpoint.exists() or process.poll() is not None)
    assert process.poll() is None, "the job ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not any(path.exists() for path in outputs)
    kept = checkpoint.read_bytes()

    told = finished()
    assert "resumed after round" in told
    assert [path.read_bytes() for path in outputs] == expected
    assert not checkpoint.exists()
    assert "\r" not in told

    checkpoint.write_bytes(kept)
    project.edit("fu/training/fedavg.py", "State(theta + task", "State(theta + 0.5 * task")
    assert "resumed" not in finished()
    assert outputs[0].read_bytes() != expected[0]


@pytest.mark.whole
def test_the_papers_preset_is_planned_whole(tmp_path: Path) -> None:
    project = from_repository(tmp_path / "project")
    done = project.snakemake("-n", "--quiet", "rules", "--config", "preset=paper")
    jobs = len(project.graph(preset="paper").jobs)
    assert f"total {jobs + 1}" in " ".join((done.stdout + done.stderr).split())
