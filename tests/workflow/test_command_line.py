"""What users type: make, make show, a stage's own command, a kill in the middle."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tests.workflow.project import REPOSITORY, Project, from_repository


def test_an_unknown_cell_names_the_nearest(toy: Project) -> None:
    done = toy.show("toy/iid/seed0/fedosd+lr0.02.unlearnt", check=False)
    assert done.returncode != 0
    assert "did you mean 'toy/iid/seed0/fedosd+lr0.02.unlearned'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_show_prints_the_command_that_the_rule_runs(project: Project) -> None:
    for target in ("data/digits", "toy/iid/seed0/partition", "toy/pat/fedosd.selected", "artefacts/toy/numbers"):
        (path,) = [
            path for path in (project.root / "results/toy").glob(f"{target}.*") if path.suffix in (".npz", ".json")
            and ".made." not in path.name
        ]  # fmt: skip
        shown = shlex.split(project.show(target).stdout)
        shown = shown[shown.index("-m") + 1 :]
        path.unlink()
        text = project.snakemake("-n", "-p", str(path.relative_to(project.root))).stdout
        line = next(line for line in text.splitlines() if f" {shown[0]} " in line)
        ran = shlex.split(line.split(f" {shown[0]} ")[1].rpartition(" 2> ")[0])
        place, same = ran.index("--code"), ran.index("--unless-made")
        ran = [word for k, word in enumerate(ran) if k not in (place, place + 1, same, len(ran) - 1)]  # and --plugins
        assert ran == shown[1 : 1 + len(ran)]


def start_and_kill(command: list[str], project: Project, checkpoint: Path) -> None:
    process = subprocess.Popen(command, cwd=project.root, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "the job ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()


def test_a_killed_job_goes_on_to_the_same_bytes_and_an_edited_one_starts_anew(project: Project) -> None:
    project.edit("workflow/papers/toy.yaml", "    rounds: {value: 4,", "    rounds: {value: 1500,")
    run = project.root / "results/toy/toy/iid/seed0"
    command = [*shlex.split(project.show("toy/iid/seed0/original.trained").stdout), "--checkpoint-seconds", "0"]
    outputs = [
        run / name
        for name in ("original.trained.safetensors", "original.trained.csv", "original.trained.history.safetensors")
    ]
    checkpoint = run / ".original.trained.checkpoint"
    subprocess.run(command, cwd=project.root, capture_output=True, check=True)
    expected = [path.read_bytes() for path in outputs]
    for path in outputs:
        path.unlink()

    start_and_kill(command, project, checkpoint)
    assert not any(path.exists() for path in outputs)
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    assert "resumed after round" in done.stderr
    assert [path.read_bytes() for path in outputs] == expected
    assert not checkpoint.exists()
    assert "\r" not in done.stderr

    start_and_kill(command, project, checkpoint)
    project.edit("fu/training/fedavg.py", "State(theta + aggregate", "State(theta + 0.5 * aggregate")
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    assert "resumed" not in done.stderr
    assert outputs[0].read_bytes() != expected[0]


def test_another_python_gets_one_clear_sentence(tmp_path: Path) -> None:
    shutil.copy2(REPOSITORY / "Makefile", tmp_path)
    (tmp_path / "envs").mkdir()
    shutil.copy2(REPOSITORY / "envs/lock.txt", tmp_path / "envs")
    fake = tmp_path / "python3.9"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.1"\nexit 1\n')
    fake.chmod(0o755)
    done = subprocess.run(
        ["make", "reproduce", f"PYTHON={fake}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": ""},
    )
    assert done.returncode != 0
    assert "fu needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "Python 3.9.1" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_papers_preset_is_planned_whole(tmp_path: Path) -> None:
    project = from_repository(tmp_path / "project")
    done = project.snakemake("-n", "--quiet", "rules", "--config", "preset=paper")
    project.edit("config.yaml", "preset: smoke", "preset: paper")
    assert f"total {len(project.graph().jobs) + 1}" in " ".join((done.stdout + done.stderr).split())
