"""After an edit exactly the affected jobs are scheduled: the promise that this project makes."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.workflow.conftest import Project

pytestmark = pytest.mark.xdist_group("workflow")

SCENARIOS = ("mnist-pat20", "mnist-pat50", "mnist-iid")
RECOVERING = ("ewcsga", "fupga", "fedosd", "fedosd.as-published-code")
METHODS = ("retraining", *RECOVERING)
SHOWING_MODELS = ("table8", "mnist_curves")


def runs() -> list[str]:
    return [f"fedosd/{scenario}/seed0" for scenario in SCENARIOS]


def method_jobs(methods: Iterable[str], scenarios: Iterable[str] = SCENARIOS) -> set[str]:
    jobs = set()
    for scenario in scenarios:
        for method in methods:
            stages = ("unlearn", "recover", "evaluate") if method in RECOVERING else ("unlearn", "evaluate")
            jobs |= {f"{stage} fedosd/{scenario}/seed0 {method}" for stage in stages}
    return jobs


def published(*artefacts: str) -> set[str]:
    return {f"publish fedosd {artefact}" for artefact in artefacts}


def everything_trained() -> set[str]:
    training = {f"train_target_model {run}" for run in runs()}
    return training | {f"evaluate {run} original" for run in runs()} | method_jobs(METHODS) | published(*SHOWING_MODELS)


def expect(project: Project, jobs: set[str], *arguments: str) -> None:
    assert project.scheduled(*arguments) == Counter(jobs)


def test_a_finished_run_has_nothing_to_do(project: Project) -> None:
    expect(project, set())


def test_comments_and_docstrings_in_the_training_loop_run_nothing(project: Project) -> None:
    project.edit(
        "fu/federation/driver.py",
        "    device = task.federation.device\n",
        "    # why\n    device = task.federation.device\n",
    )
    project.edit("fu/federation/driver.py", "The one loop around every method", "The single loop around each method")
    expect(project, set())


def test_a_constant_of_fedosd_runs_fedosd_and_what_shows_it(project: Project) -> None:
    project.edit("fu/methods/fedosd.py", "RANK_TOLERANCE = 2e-7", "RANK_TOLERANCE = 3e-7")
    expect(project, method_jobs(["fedosd", "fedosd.as-published-code"]) | published(*SHOWING_MODELS))


def test_a_learning_rate_of_one_method_runs_that_method_and_what_shows_it(project: Project) -> None:
    project.edit(
        "config.yaml",
        "overrides: {}  ",
        "overrides: {fedosd: {methods: {fedosd: {settings: {unlearning: {lr: 0.01}}}}}}  ",
    )
    expect(project, method_jobs(["fedosd"]) | published(*SHOWING_MODELS))


def test_a_post_training_rate_leaves_unlearning_alone(project: Project) -> None:
    project.edit(
        "config.yaml",
        "overrides: {}  ",
        "overrides: {fedosd: {methods: {fupga: {settings: {recovery: {lr: 0.01}}}}}}  ",
    )
    jobs = {job for job in method_jobs(["fupga"]) if not job.startswith("unlearn")}
    expect(project, jobs | published(*SHOWING_MODELS))


def test_a_caption_runs_its_artefact_alone(project: Project) -> None:
    project.edit(
        "workflow/papers/fedosd.yaml", "Samples of the forgotten client", "Some samples of the forgotten client"
    )
    expect(project, published("fig7"))


def test_memory_and_threads_run_nothing(project: Project) -> None:
    project.edit("fu/plan/resources.py", "BASE_MB = 500", "BASE_MB = 900")
    project.edit("config.yaml", "threads: 1 ", "threads: 2 ")
    project.edit("workflow/rules/evaluate.smk", "runtime=10", "runtime=20")
    expect(project, set())


def test_the_aggregation_runs_all_training_and_what_follows(project: Project) -> None:
    project.edit(
        "fu/federation/local.py", "return (share / share.sum()) @ updates.delta", "return updates.delta.mean(0)"
    )
    expect(project, everything_trained())


def test_a_metric_of_the_evaluation_runs_evaluations_only(project: Project) -> None:
    project.edit(
        "fu/evaluation/distance.py",
        "distance(context.task, context.theta)}",
        "2 * distance(context.task, context.theta)}",
    )
    evaluations = {f"evaluate {run} {model}" for run in runs() for model in ("original", *METHODS)}
    expect(project, evaluations | published("table8"))


def test_a_new_method_runs_its_own_jobs_and_artefacts(project: Project) -> None:
    source = (project.root / "fu/methods/retrain.py").read_text()
    (project.root / "fu/methods/mine.py").write_text(source)
    project.edit(
        "workflow/papers/fedosd.yaml",
        "\nartefacts:\n",
        "  mine:\n    label: Mine\n    plugin: mine\n    in_paper: false\n    source: a test\n\nartefacts:\n",
    )
    project.edit(
        "workflow/papers/fedosd.yaml",
        "methods: [retraining, ewcsga, fupga, fedosd, fedosd.as-published-code]",
        "methods: [retraining, ewcsga, fupga, fedosd, fedosd.as-published-code, mine]",
    )
    new = {f"{stage} {run} mine" for run in runs() for stage in ("unlearn", "recover", "evaluate")}
    expect(project, new | published("table8"))


def test_touching_every_source_file_runs_nothing(project: Project) -> None:
    for folder in ("fu", "workflow", "profiles", "envs"):
        for path in (project.root / folder).rglob("*"):
            path.touch()
    (project.root / "Snakefile").touch()
    expect(project, set())


def test_a_run_killed_after_the_first_affected_job_leaves_the_rest_scheduled(project: Project) -> None:
    project.edit("fu/methods/fupga.py", "radius = p.radius_share *", "radius = 0.5 * p.radius_share *")
    affected = method_jobs(["fupga"]) | published(*SHOWING_MODELS)
    expect(project, affected)
    target = project.root / "results/smoke/fedosd/mnist-pat50/seed0/fupga.unlearned.safetensors"
    before = target.stat().st_mtime_ns

    def made_again() -> bool:  # Snakemake removes an output before it runs its job
        return target.exists() and target.stat().st_mtime_ns != before

    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--prioritize", target.relative_to(project.root)],
        cwd=project.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not made_again() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # Snakemake writes its own record of the job after the job's end
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    locked = project.snakemake("--quiet", check=False)
    assert locked.returncode != 0
    assert "--unlock" in locked.stdout + locked.stderr
    assert "Traceback" not in locked.stdout + locked.stderr
    project.snakemake("--unlock")

    left = set(project.scheduled())
    assert left <= affected
    must = {job for job in affected if not job.startswith("unlearn")}
    assert must <= left
    assert affected - left <= {"unlearn fedosd/mnist-pat50/seed0 fupga", *(affected - must)}
    assert len(affected - left) <= 2
    project.snakemake()
    expect(project, set())


def command_of(project: Project, path: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "workflow/show.py", "cell", path], cwd=project.root, capture_output=True, text=True, check=True
    )
    return shlex.split(done.stdout)


@pytest.mark.parametrize("cell", ["data/digits", "fedosd/mnist-pat50/seed0/original"])
def test_an_output_made_again_with_equal_bytes_runs_nothing(project: Project, cell: str) -> None:
    suffix = ".npz" if cell.startswith("data") else ".safetensors"
    path = project.root / "results/smoke" / f"{cell}{suffix}"
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    subprocess.run(command_of(project, cell), cwd=project.root, check=True, capture_output=True)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns > when
    expect(project, set())


def test_the_equal_bytes_above_were_more_than_snakemake_compares_unasked(finished: Project) -> None:
    assert (finished.root / "results/smoke/data/digits.npz").stat().st_size > 1_000_000


def test_a_changed_archive_runs_what_follows_from_it(project: Project) -> None:
    path = project.root / "results/smoke/fedosd/mnist-iid/seed0/fedosd.unlearned.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    run = "fedosd/mnist-iid/seed0"
    expect(project, {f"recover {run} fedosd", f"evaluate {run} fedosd", *published("table8")})


def test_a_missing_intermediate_is_seen(project: Project) -> None:
    (project.root / "results/smoke/fedosd/mnist-iid/seed0/ewcsga.recovered.safetensors").unlink()
    run = "fedosd/mnist-iid/seed0"
    expect(project, {f"recover {run} ewcsga", f"evaluate {run} ewcsga", *published("table8")})


def test_one_artefact_can_be_asked_for_by_name(project: Project) -> None:
    (project.root / "results/smoke/artefacts/fedosd/fig3.png").unlink()
    (project.root / "results/smoke/artefacts/fedosd/table8.png").unlink()
    expect(project, published("fig3"), "fedosd_fig3")
    expect(project, published("fig3", "table8"), "fedosd")


def test_another_folder_with_the_same_archives_runs_nothing(project: Project, tmp_path: Path) -> None:
    expect(project, set(), "--config", f"data_dir={tmp_path}")
