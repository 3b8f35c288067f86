"""What users type: make, make show, a stage's own command, a kill in the middle."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.workflow.conftest import REPOSITORY, Project


def show(project: Project, cell: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "workflow/show.py", "cell", cell],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=check,
    )


def test_results_end_with_the_first_table(finished: Project) -> None:
    done = subprocess.run(
        [sys.executable, "workflow/show.py", "results"], cwd=finished.root, capture_output=True, text=True, check=True
    )
    assert "results/smoke/artefacts/fedosd/table1.{md,csv,pdf,png}" in done.stdout
    assert "| FedOSD²" in done.stdout


def test_every_artefact_has_its_five_files_and_states_preset_and_data(finished: Project) -> None:
    folder = finished.root / "results/smoke/artefacts/fedosd"
    names = {*(f"table{k}" for k in range(1, 13)), *(f"fig{k}" for k in (3, 5, 6, 7, 8, 9))}
    names |= {"mnist_curves", "recovery_rate", "architectures"}
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.{suffix}" for name in names for suffix in ("csv", "md", "pdf", "png", "json")
    }
    for name in names:
        assert "Preset smoke" in (folder / f"{name}.md").read_text()
        about = json.loads((folder / f"{name}.json").read_text())
        assert about["preset"] == "smoke"
        assert set(about["versions"]) >= {"python", "torch", "numpy", "snakemake"}
    about = json.loads((folder / "table8.json").read_text())
    assert (
        len(about["inputs"]) == 31
    )  # the original and eight methods in three scenarios; two points twice, two choices
    assert len(about["costs"]) == 49  # three originals, 24 + 2 unlearned and 18 + 2 recovered models
    assert max(cost["peak_memory_mib"] for cost in about["costs"].values()) < 1536


def test_the_conflicts_of_fedosd_are_none_and_of_ascent_are_some(finished: Project) -> None:
    folder = finished.root / "results/smoke/fedosd/mnist-pat20/seed0"

    def conflicts(method: str) -> float:
        rows = [line.split(",") for line in (folder / f"{method}.evaluation.csv").read_text().splitlines()]
        return next(float(value) for _, metric, value in rows[1:] if metric == "conflicts")

    assert conflicts("fedosd+lr0.02") == 0
    assert conflicts("fupga+lr0.0005") > 0


def test_the_html_report_holds_every_artefact(finished: Project) -> None:
    finished.snakemake("--report", "report.html")
    text = (finished.root / "report.html").read_text()
    assert all(f"{name}.png" in text for name in ("table8", "table12", "fig3", "fig6", "recovery_rate"))


def test_an_unknown_cell_names_the_nearest(finished: Project) -> None:
    done = show(finished, "fedosd/mnist-pat50/seed0/fedosd+lr0.02.unlearnt", check=False)
    assert done.returncode != 0
    assert "did you mean 'fedosd/mnist-pat50/seed0/fedosd+lr0.02.unlearned'?" in done.stderr
    assert "Traceback" not in done.stderr


def start_and_kill(command: list[str], project: Project, checkpoint: Path) -> None:
    process = subprocess.Popen(command, cwd=project.root, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    assert process.poll() is None, "the job ended before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()


def test_a_killed_job_goes_on_to_the_same_bytes_and_an_edited_one_starts_anew(project: Project) -> None:
    run = project.root / "results/smoke/fedosd/mnist-pat50/seed0"
    command = shlex.split(show(project, "fedosd/mnist-pat50/seed0/original").stdout)
    command += ["--checkpoint-seconds", "0"]
    outputs = [run / name for name in ("original.safetensors", "original.csv", "history.target_model.safetensors")]
    expected = [path.read_bytes() for path in outputs]
    for path in outputs:
        path.unlink()
    checkpoint = run / ".original.checkpoint"

    start_and_kill(command, project, checkpoint)
    assert not any(path.exists() for path in outputs)
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    assert "resumed after round" in done.stderr
    assert [path.read_bytes() for path in outputs] == expected
    assert not checkpoint.exists()
    assert "\r" not in done.stderr

    start_and_kill(command, project, checkpoint)
    project.edit("fu/training/fedavg.py", '{"theta": theta + aggregate', '{"theta": theta + 0.5 * aggregate')
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=True)
    assert "resumed" not in done.stderr
    resumed_after_edit = outputs[0].read_bytes()
    assert resumed_after_edit != expected[0]
    subprocess.run(command, cwd=project.root, capture_output=True, check=True)
    assert outputs[0].read_bytes() == resumed_after_edit


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


def test_the_papers_preset_is_planned_with_everything_the_paper_states(finished: Project) -> None:
    done = finished.snakemake("-n", "fedosd_table8", "--config", "preset=paper")
    text = done.stdout + done.stderr
    # a run: partition, training, its evaluation; two methods of two jobs, five of three at four rates, one of three
    jobs = 3 * 5 * (3 + 2 * 2 + 5 * 4 * 3 + 3)
    choices, others = 3 * 5, 3  # a choice for five methods in three scenarios; data, table, target
    assert f"total {jobs + choices + others}" in " ".join(text.split())
