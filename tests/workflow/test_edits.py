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

# What every artefact shows, written down once more: the plan must come to the same.
OWN_ROUNDS = ("retraining", "federaser")
UNLEARNING = ("fedrecovery", "mode", "ewcsga", "fupga", "fedosd")
ALL = (*OWN_ROUNDS, *UNLEARNING)
NOT_RECOVERING = (*OWN_ROUNDS, "fedosd.m1", "fedosd.m2", "fedosd.m3", "fedosd.m4", "fedosd.m6")
VARIANTS = ("fedosd.m1", "fedosd.m2", "fedosd.m3", "fedosd.m4", "fedosd.m5")
RATES = tuple(f"{name}.rates-{way}" for name in ("fedosd", "fedrecovery", "fupga") for way in ("projected", "free"))
BEGIN_FROM = {"fedosd.m5": "fedosd", **{name: name.partition(".")[0] for name in RATES}}


def three(data: str, suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{data}-{part}{suffix}" for part in ("pat20", "pat50", "iid"))


PAT50 = ("fmnist-pat50", "cifar10-pat50", "cifar100-pat50")
ARTEFACTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "table1": ((*three("fmnist"), *three("cifar10")), ALL),
    "table2": (three("fmnist"), ("sfu",)),
    "table3": (("mnist-pat20", "cifar100-pat20"), UNLEARNING),
    "table4": (("cifar10-pat50", "cifar10-pat50-m20", "cifar10-pat50-m50"), ALL),
    "table5": (PAT50, ("fedosd", *VARIANTS)),
    "table6": (three("fmnist"), ALL),
    "table7": (three("cifar10"), ALL),
    "table8": (three("mnist"), (*ALL, "fedosd.as-published-code")),
    "table9": (three("cifar100"), ALL),
    "table10": (three("fmnist", "-e5"), ALL),
    "table11": (PAT50, ("fedosd", "fedosd.m6")),
    "table12": (PAT50, ALL),
    "fig5": (("cifar10-pat50",), UNLEARNING),
    "fig8": (("cifar10-pat20",), UNLEARNING),
    "fig9": (("cifar10-iid",), UNLEARNING),
    "fig6": (("cifar10-pat10", "cifar100-pat10"), ALL),
    "mnist_curves": (("mnist-pat50",), (*UNLEARNING, "fedosd.as-published-code")),
    "recovery_rate": (("mnist-pat50",), RATES),
    "architectures": (
        ("cifar10-pat50", "cifar10-pat50-dropout", "cifar100-pat50", "cifar100-pat50-two-stage"),
        ("retraining", "fedosd"),
    ),
}
CHOSEN = ("mnist_curves",)  # from traces, but a point of two is chosen by evaluations
FROM_TRACES = ("table12", "fig5", "fig8", "fig9", "mnist_curves")
SCENARIOS = tuple(dict.fromkeys(scenario for scenarios, _ in ARTEFACTS.values() for scenario in scenarios))


def methods_of(scenario: str) -> set[str]:
    """The methods that run in a scenario, those that others begin from included."""
    shown = {method for scenarios, methods in ARTEFACTS.values() if scenario in scenarios for method in methods}
    return shown | {BEGIN_FROM[method] for method in shown if method in BEGIN_FROM}


def points(scenario: str, method: str) -> list[str]:
    """The points of a method's grid at `smoke`."""
    if method in (*OWN_ROUNDS, "fedosd.as-published-code"):
        return [method]
    lr = {"ewcsga": "0.0003", "fupga": "0.0005", "sfu": "0.001"}.get(method.partition(".")[0], "0.02")
    if method in RATES:
        return [f"{method}+lr{lr}-recovery-lr{rate}" for rate in ("1e-06", "0.02")]
    several = {("mnist-pat50", "fedosd"): ["0.02", "0.005"], ("mnist-pat50", "mode"): ["0.1", "0.02"]}
    return [f"{method}+lr{rate}" for rate in several.get((scenario, method), [lr])]


def run_of(scenario: str) -> str:
    return f"fedosd/{scenario}/seed0"


def method_jobs(methods: Iterable[str], stages: Iterable[str] = ("unlearn", "recover", "evaluate")) -> set[str]:
    """The jobs of methods in all scenarios in which they run, and of those that begin from their models."""
    jobs = set()
    wanted = set(methods)
    for scenario in SCENARIOS:
        for method in methods_of(scenario):
            begins = BEGIN_FROM.get(method)
            if method not in wanted and begins not in wanted:
                continue
            for point in points(scenario, method):
                for stage in stages:
                    if (stage == "unlearn" and begins) or (stage == "recover" and method in NOT_RECOVERING):
                        continue
                    jobs.add(f"{stage} {run_of(scenario)} {point}")
            if "evaluate" in stages and len(points(scenario, method)) > 1 and method not in RATES:
                jobs.add(f"select fedosd/{scenario} {method}")
    return jobs


def published(*artefacts: str) -> set[str]:
    return {f"publish fedosd {artefact}" for artefact in artefacts}


def showing(*methods: str) -> set[str]:
    """The artefacts that show one of the methods, or one that begins from its models."""
    wanted = {*methods, *(name for name, base in BEGIN_FROM.items() if base in methods)}
    return published(*(name for name, (_, shown) in ARTEFACTS.items() if wanted & set(shown)))


def everything_trained() -> set[str]:
    training = {f"train_target_model_update_norms_update_sums {run_of(scenario)}" for scenario in SCENARIOS}
    evaluated = {f"evaluate {run_of(scenario)} original" for scenario in SCENARIOS}
    every = {method for scenario in SCENARIOS for method in methods_of(scenario)}
    return training | evaluated | method_jobs(every) | published(*ARTEFACTS)


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
    family = {"fedosd", "fedosd.as-published-code", "fedosd.m6", *VARIANTS} - {"fedosd.m5"}
    expect(project, method_jobs(family) | showing(*family))


def test_a_value_of_one_methods_grid_runs_that_point_and_what_shows_it(project: Project) -> None:
    project.edit(
        "workflow/presets/smoke.yaml",
        "fedosd: {grid: {unlearning.lr: [0.02, 0.005]}}",
        "fedosd: {grid: {unlearning.lr: [0.02, 0.006]}}",
    )
    new = {f"{stage} {run_of('mnist-pat50')} fedosd+lr0.006" for stage in ("unlearn", "recover", "evaluate")}
    shown = published("table8", "mnist_curves")
    expect(project, {*new, "select fedosd/mnist-pat50 fedosd", *shown})


def test_a_setting_of_one_method_runs_that_method_and_what_shows_it(project: Project) -> None:
    project.edit(
        "config.yaml",
        "overrides: {}  ",
        "overrides: {fedosd: {methods: {mode: {settings: {unlearning: {lr_decay: 0.99}}}}}}  ",
    )
    expect(project, method_jobs(["mode"]) | showing("mode"))


def test_a_post_training_rate_leaves_unlearning_alone(project: Project) -> None:
    project.edit(
        "config.yaml",
        "overrides: {}  ",
        "overrides: {fedosd: {methods: {ewcsga: {settings: {recovery: {lr: 0.01}}}}}}  ",
    )
    expect(project, method_jobs(["ewcsga"], ("recover", "evaluate")) | showing("ewcsga"))


def test_the_projection_runs_post_training_with_it_alone(project: Project) -> None:
    project.edit("fu/projections/away_from_original.py", "SPAN_TOLERANCE = 1e-6", "SPAN_TOLERANCE = 2e-6")
    projected = {"fedosd", "fedosd.as-published-code", *(name for name in RATES if name.endswith("projected"))}
    jobs = {
        job
        for job in method_jobs(projected, ("recover", "evaluate"))
        if not any(name in job for name in ("fedosd.m5", "rates-free"))
    }
    expect(project, jobs | published(*(name for name, (_, shown) in ARTEFACTS.items() if projected & set(shown))))


def test_a_caption_runs_its_artefact_alone(project: Project) -> None:
    project.edit(
        "workflow/papers/fedosd.yaml", "Samples of the forgotten client", "Some samples of the forgotten client"
    )
    expect(project, published("fig7"))


def test_memory_and_threads_run_nothing(project: Project) -> None:
    project.edit("fu/plan/resources.py", "BASE_MB = 500", "BASE_MB = 900")
    project.edit("config.yaml", "threads: 1 ", "threads: 2 ")
    project.edit("workflow/rules/evaluate.smk", "runtime=30", "runtime=20")
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
    every = {method for scenario in SCENARIOS for method in methods_of(scenario)}
    evaluations = {f"evaluate {run_of(scenario)} original" for scenario in SCENARIOS}
    expect(
        project,
        evaluations | method_jobs(every, ["evaluate"]) | published(*(set(ARTEFACTS) - set(FROM_TRACES)), *CHOSEN),
    )


def test_a_new_method_runs_its_own_jobs_and_artefacts(project: Project) -> None:
    source = (project.root / "fu/methods/retrain.py").read_text()
    (project.root / "fu/methods/mine.py").write_text(source)
    project.edit(
        "workflow/papers/fedosd.yaml",
        "\nartefacts:\n",
        "  mine:\n    label: Mine\n    plugin: mine\n    in_paper: false\n    source: a test\n\nartefacts:\n",
    )
    project.edit("workflow/papers/fedosd.yaml", "    methods: [sfu]", "    methods: [sfu, mine]")
    runs = [run_of(scenario) for scenario in three("fmnist")]
    new = {f"{stage} {run} mine+lr0.02" for run in runs for stage in ("unlearn", "recover", "evaluate")}
    expect(project, new | published("table2"))


def test_touching_every_source_file_runs_nothing(project: Project) -> None:
    for folder in ("fu", "workflow", "profiles", "envs"):
        for path in (project.root / folder).rglob("*"):
            path.touch()
    (project.root / "Snakefile").touch()
    expect(project, set())


def test_a_run_killed_after_the_first_affected_job_leaves_the_rest_scheduled(project: Project) -> None:
    project.edit("fu/methods/fupga.py", "theta + updates.delta.mean(0)", "theta + 0.5 * updates.delta.mean(0)")
    affected = method_jobs(["fupga"]) | showing("fupga")
    expect(project, affected)
    target = project.root / "results/smoke/fedosd/mnist-pat50/seed0/fupga+lr0.0005.unlearned.safetensors"
    before = target.stat().st_mtime_ns

    def made_again() -> bool:  # Snakemake removes an output before it runs its job
        return target.exists() and target.stat().st_mtime_ns != before

    ordered = ["--scheduler-subsample", "100000", "--prioritize", str(target.relative_to(project.root))]
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", *ordered],
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
    assert affected - left <= {"unlearn fedosd/mnist-pat50/seed0 fupga+lr0.0005", *(affected - must)}
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
    path = project.root / "results/smoke/fedosd/fmnist-iid/seed0/fedosd+lr0.02.unlearned.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    run = run_of("fmnist-iid")
    expect(project, {f"recover {run} fedosd+lr0.02", f"evaluate {run} fedosd+lr0.02", *published("table1", "table6")})


def test_a_missing_intermediate_is_seen(project: Project) -> None:
    (project.root / "results/smoke/fedosd/fmnist-iid/seed0/ewcsga+lr0.0003.recovered.safetensors").unlink()
    run, point = run_of("fmnist-iid"), "ewcsga+lr0.0003"
    expect(project, {f"recover {run} {point}", f"evaluate {run} {point}", *published("table1", "table6")})


def test_a_change_of_a_published_number_runs_its_table_alone(project: Project) -> None:
    project.edit(
        "workflow/published/fedosd/table2.csv",
        "fmnist-iid,sfu,recovered,asr,0.386",
        "fmnist-iid,sfu,recovered,asr,0.387",
    )
    expect(project, published("table2"))


def test_one_artefact_can_be_asked_for_by_name(project: Project) -> None:
    (project.root / "results/smoke/artefacts/fedosd/fig3.png").unlink()
    (project.root / "results/smoke/artefacts/fedosd/table8.png").unlink()
    expect(project, published("fig3"), "fedosd_fig3")
    expect(project, published("fig3", "table8"), "fedosd")


def test_another_folder_with_the_same_archives_runs_nothing(project: Project, tmp_path: Path) -> None:
    expect(project, set(), "--config", f"data_dir={tmp_path}")
