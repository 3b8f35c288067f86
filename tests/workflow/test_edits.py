"""After an edit exactly the affected jobs are scheduled: the promise that this project makes.

What is affected is read off the plan's graph (who reads whose output), never off a digest.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.project import Job, Project

METHOD = '''"""Mine (our choice). Stores nothing; communicates one model."""

from pydantic import BaseModel

from fu.federation.task import State, Task

needs: set[str] = set()


class Params(BaseModel, extra="forbid"):
    """None."""


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Shrink."""
    return State(0.9 * task.original_model)
'''
EVALUATOR = '''"""Norm of the model (our choice)."""

from fu.evaluation.context import Context

METRICS = {
    "norm": {"label": "Norm", "unit": "1", "better": "neither", "formula": "||w||", "source": "our choice"},
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the norm."""
    return {"norm": context.theta.norm().item()}
'''
MINE = "{label: Mine, plugin: mine, in_paper: false, source: a test, shown_in: [utility]}"


def of_plugin(job: Job, *methods: str) -> bool:
    """Whether a job unlearns with one of these plug-ins."""
    return job.stage == "unlearn" and job.specs[0]["method"]["name"] in methods


def following(project: Project, *stages: str) -> set[str]:
    """All jobs of these stages and what follows from them."""
    graph = project.graph()
    return graph.with_downstream(graph.where(lambda job: job.stage in stages))


def published(project: Project, *artefacts: str) -> set[str]:
    return project.graph().where(lambda job: job.names.get("artefact") in artefacts)


def showing(project: Project, metric: str) -> set[str]:
    """The artefacts that show a metric."""
    return project.graph().where(
        lambda job: job.stage == "publish" and metric in {shown["name"] for shown in job.spec["metrics"]}
    )


# ---- nothing -------------------------------------------------------------------------------------------------------


def test_a_finished_run_has_nothing_to_do(toy: Project) -> None:
    toy.expect([])


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("fu/federation/driver.py", "    device = task.fed", "    # why\n    device = task.fed"),
        ("fu/federation/driver.py", "The one loop around every method", "The single loop around each method"),
        ("fu/errors.py", '"is missing"', '"is absent"'),
        ("fu/contents.py", "there is no such file", "no such file exists"),
        ("fu/federation/model_files.py", "the weights file is truncated or broken", "the file is torn"),
        ("fu/federation/progress.py", "s a round", "seconds a round"),
        ("fu/federation/progress.py", "every_seconds: float = 10.0", "every_seconds: float = 20.0"),
        ("fu/models/mlp.py", '"step_ms": 4.0', '"step_ms": 5.0'),
        ("fu/models/mlp.py", "FedOSD's code (the paper: layers of 400)", "FedOSD's code; the paper: layers of 400"),
        ("fu/pipeline/estimates.py", "BASE_MB = 500", "BASE_MB = 900"),
        ("fu/pipeline/settings/records.py", "if number >= present:", "if number > present - 1:"),
        ("fu/pipeline/settings/types.py", '("must differ from each other")', '("twice")'),
        ("fu/pipeline/grid.py", "within six digits", "within the first six digits"),
        ("fu/pipeline/catalogue.py", "KINDS = tuple(NEEDED)", 'KINDS = (*NEEDED, "samplers")'),
        ("fu/pipeline/certificate.py", "PATIENCE_S = 10.0", "PATIENCE_S = 20.0"),
        ("fu/pipeline/pending.py", "has changed since it was made", "has other contents than were made"),
        ("fu/pipeline/plan.py", " MB of disk.", " MB on disk."),
        ("fu/pipeline/engine/screen.py", "EVERY_SECONDS = 0.05, 10.0", "EVERY_SECONDS = 0.05, 20.0"),
        ("fu/pipeline/digest.py", "constants that only the plan reads", "constants for the plan alone"),
        ("fu/pipeline/engine/fork_server.py", "the job's process was killed", "somebody killed the job"),
        ("config.yaml", "threads: 1 ", "threads: 2 "),
        ("config.yaml", "device: auto ", "device: cpu "),
        ("fu/pipeline/engine/rules.py", "cluster.minutes(job.minutes, attempt, self.limit)", "2 * job.minutes"),
        ("workflow/papers/toy.yaml", "  unlearning:\n    rounds: {value: 2, source: a test}",
         "  unlearning:\n    rounds: {value: 2, source: another source}"),
    ],
)  # fmt: skip
def test_what_cannot_change_a_result_runs_nothing(project: Project, path: str, old: str, new: str) -> None:
    file = project.root / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    project.expect([])


def test_touching_every_source_file_runs_nothing(project: Project) -> None:
    for folder in ("fu", "workflow", "profiles", "envs"):
        for path in (project.root / folder).rglob("*"):
            path.touch()
    (project.root / "Snakefile").touch()
    project.expect([])


def test_another_folder_with_the_same_archives_runs_nothing(toy: Project, tmp_path: Path) -> None:
    toy.expect([], "--config", f"data_dir={tmp_path}")


def test_plug_ins_that_nothing_names_run_nothing(project: Project) -> None:
    copies = {
        "methods": "retrain", "training": "fedavg", "models": "lenet5", "datasets": "mnist", "partitions": "iid",
        "attacks": "patch", "histories": "update_sums", "projections": "away_from_original", "artefacts": "losses",
    }  # fmt: skip
    for kind, name in copies.items():
        shutil.copy2(project.root / f"fu/{kind}/{name}.py", project.root / f"fu/{kind}/mine.py")
    (project.root / "fu/evaluation/mine.py").write_text(EVALUATOR)
    project.expect([])


# ---- code ----------------------------------------------------------------------------------------------------------


def test_a_constant_of_a_method_runs_that_method_and_what_shows_it(project: Project) -> None:
    project.edit("fu/methods/fedosd.py", "RANK_TOLERANCE = 2e-7", "RANK_TOLERANCE = 3e-7")
    graph = project.graph()
    affected = graph.with_downstream(graph.where(lambda job: of_plugin(job, "fedosd")))
    assert {key.split()[0] for key in affected} == {"unlearn", "recover", "evaluate", "select", "publish"}
    assert not any("fupga" in key or "retraining" in key for key in affected)
    project.expect(affected)


def test_the_projection_runs_post_training_with_it_alone(project: Project) -> None:
    project.edit("fu/projections/away_from_original.py", "SPAN_TOLERANCE = 1e-6", "SPAN_TOLERANCE = 2e-6")
    graph = project.graph()
    guarded = graph.where(lambda job: job.stage == "recover" and job.specs[0]["projection"] is not None)
    assert guarded
    project.expect(graph.with_downstream(guarded))


@pytest.mark.parametrize(
    ("path", "old", "new", "stages"),
    [
        ("fu/federation/local.py", "return (share / share.sum()) @ updates.delta", "return updates.delta.mean(0)",
         ("train", "unlearn", "recover")),
        ("fu/federation/recovery.py", "theta + aggregate", "theta + 0.5 * aggregate", ("recover",)),
        ("fu/training/fedavg.py", "theta + aggregate", "theta + 0.5 * aggregate", ("train",)),
        ("fu/histories/last_local_models.py", "theta + updates", "theta - updates", ("train",)),
        ("fu/evaluation/backdoor.py", '{"asr": attack', '{"asr": -attack',
         ("train", "unlearn", "recover", "evaluate")),
        ("fu/models/mlp.py", "nn.ReLU()", "nn.Tanh()", ("train", "unlearn", "recover", "evaluate")),
        ("fu/datasets/digits.py", "1_797,", "1_798,", ("data", "partition")),
        ("fu/data/sources.py", "255 / 16", "255 / 15", ("data",)),
        ("fu/attacks/patch.py", "rng.random((p.size", "1 - rng.random((p.size", ("partition", "train", "unlearn")),
        ("fu/evaluation/selection.py", "round(found, 9)", "round(found, 8)", ("select",)),
    ],
)  # fmt: skip
def test_code_runs_the_stages_that_can_read_it_and_what_follows(
    project: Project, path: str, old: str, new: str, stages: tuple[str, ...]
) -> None:
    file = project.root / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    affected = following(project, *stages)
    if path.endswith(("patch.py", "digits.py")):  # artefacts that show data read it themselves
        assert published(project, "triggers") <= affected
    if path.endswith("local.py"):
        affected |= following(project, "evaluate")
    project.expect(affected)


def test_a_partition_kind_runs_what_is_drawn_by_it(project: Project) -> None:
    project.edit("fu/partitions/pat.py", "room = [each] * clients", "room = [each + 0] * clients")
    graph = project.graph()
    drawn = graph.where(lambda job: job.stage == "partition" and job.spec["partition"]["name"] == "pat")
    assert len(drawn) == 1
    project.expect(graph.with_downstream(drawn))


def test_counting_conflicts_runs_the_unlearning_that_counts_them(project: Project) -> None:
    project.edit("fu/evaluation/conflicts.py", "< -rounding", "<= -rounding")
    graph = project.graph()
    counting = graph.where(lambda job: job.stage == "unlearn" and job.specs[0]["watch"] == "conflicts")
    assert counting
    project.expect(graph.with_downstream(counting))


def test_a_kind_of_artefact_runs_its_artefacts(project: Project) -> None:
    project.edit("fu/artefacts/curves.py", "FAR = 10", "FAR = 20")
    project.expect(published(project, "rounds"))


def test_a_file_handed_over_in_another_role_runs_what_reads_it(project: Project) -> None:
    """The same files are read as before, one of them as what it is not."""
    project.edit(
        "fu/pipeline/plan.py",
        '"unlearned": self.paths("unlearn", "model", run=run, trial=planned.unlearned),',
        '"unlearned": self._shared(run, planned)["original"],',
    )
    affected = following(project, "recover")
    assert {key.split()[0] for key in affected} == {"recover", "evaluate", "publish"}
    project.expect(affected)


# ---- metrics and evaluators ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "new"),
    [("label", "Least"), ("unit", "1"), ("better", "neither"), ("formula", "least of all"), ("source", "Table 5")],
)
def test_what_is_said_of_a_metric_runs_the_artefacts_that_show_it(project: Project, key: str, new: str) -> None:
    file = project.root / "fu/evaluation/utility.py"
    before, entry, after = file.read_text().partition('    "r_acc_worst": {\n')
    file.write_text(before + entry + re.sub(rf'"{key}": "[^"]*"', f'"{key}": "{new}"', after, count=1))
    affected = showing(project, "r_acc_worst")
    assert affected == published(project, "utility", "bars")
    project.expect(affected)


def test_a_new_evaluator_runs_its_evaluations_and_what_shows_it(project: Project) -> None:
    (project.root / "fu/evaluation/mine.py").write_text(EVALUATOR)
    before = project.graph()
    project.override("{toy: {settings: {evaluations: {mine: [mine]}}, artefacts: {utility: {metrics: [r_acc, norm]}}}}")
    graph = project.graph()
    new = graph.where(lambda job: job.has(evaluation="mine"))
    assert new == graph.where(lambda job: True) - before.where(lambda job: True)
    assert {key.rpartition("trial=")[2].partition("+")[0] for key in new} == {"original", "fupga", "fedosd.m5"}
    project.expect(new | published(project, "utility"))


def test_a_new_evaluator_beside_others_in_one_file_runs_that_files_evaluations(project: Project) -> None:
    (project.root / "fu/evaluation/mine.py").write_text(EVALUATOR)
    project.override("{toy: {settings: {evaluations: {evaluation: [backdoor, utility, distance, mine]}}}}")
    project.expect(following(project, "evaluate"))


# ---- settings ------------------------------------------------------------------------------------------------------


def test_a_value_of_one_methods_grid_runs_that_trial_and_what_shows_it(project: Project) -> None:
    before = project.graph().where(lambda job: True)
    project.edit("workflow/papers/toy.yaml", "value: [0.02, 0.005]", "value: [0.02, 0.006]")
    graph = project.graph()
    new = graph.where(lambda job: True) - before
    assert {key.rpartition("trial=")[2] for key in new} == {"fedosd+lr0.006"}
    affected = graph.with_downstream(new)
    assert {key.rpartition("trial=")[2] for key in affected if key.startswith("unlearn")} == {
        "fedosd+lr0.006",
        "fedosd+chosen",
    }
    project.expect(affected)


def test_a_point_that_is_not_chosen_computes_nothing_but_its_own_comparison(project: Project) -> None:
    """What follows from the choice is planned, but ends at once: it is the same point of the same contents."""
    selection = project.root / "results/toy/toy/pat/fedosd.selected.json"
    chosen = json.loads(selection.read_text())["selected"]
    other = {"fedosd+lr0.02": "[0.02, 1.0e-8]", "fedosd+lr0.005": "[1.0e-8, 0.005]"}[chosen]
    models = project.root.glob("results/toy/toy/pat/seed0/*+chosen.*.safetensors")
    before = {path: path.read_bytes() for path in models}
    assert {path.name.partition(".safe")[0] for path in before} == {
        "fedosd+chosen.unlearned",
        "fedosd+chosen.recovered",
        "fedosd.m5+chosen.recovered",
    }
    project.edit("workflow/papers/toy.yaml", "value: [0.02, 0.005]", f"value: {other}")
    project.snakemake()
    assert json.loads(selection.read_text())["selected"] == chosen
    assert {path: path.read_bytes() for path in before} == before
    logs = project.root / "results/toy/logs/toy/pat/seed0"
    for stem in ("fedosd+chosen.unlearned", "fedosd+chosen.recovered", "fedosd.m5+chosen.recovered"):
        assert "taken over from" in (logs / f"{stem}.log").read_text()
    project.expect([])


def test_the_chosen_point_is_what_its_own_job_makes_on_seeds_that_compare_nothing(project: Project) -> None:
    project.edit("workflow/papers/toy.yaml", "seeds: {value: [0]", "seeds: {value: [0, 1]")
    project.snakemake("--", "toy_utility")
    folder = project.root / "results/toy/toy/pat"
    chosen = json.loads((folder / "fedosd.selected.json").read_text())["selected"]
    assert [path.name for path in (folder / "seed1").glob("fedosd+*.unlearned.safetensors")] == [
        "fedosd+chosen.unlearned.safetensors"
    ]
    project.snakemake("--", f"results/toy/toy/pat/seed1/{chosen}.unlearned.safetensors")
    for seed in ("seed0", "seed1"):
        own, taken = (folder / seed / f"{name}.unlearned.safetensors" for name in (chosen, "fedosd+chosen"))
        assert own.read_bytes() == taken.read_bytes()


def test_a_setting_of_one_method_runs_that_method_and_what_shows_it(project: Project) -> None:
    project.override("{toy: {methods: {fupga: {settings: {unlearning: {lr_decay: 0.99}}}}}}")
    graph = project.graph()
    project.expect(graph.with_downstream(graph.where(lambda job: of_plugin(job, "fupga"))))


@pytest.mark.parametrize("method", ["fupga", "fedosd"])
def test_a_post_training_rate_leaves_unlearning_alone(project: Project, method: str) -> None:
    """FedOSD has a grid in one scenario, and other methods begin from its unlearned models."""
    project.override(f"{{toy: {{methods: {{{method}: {{settings: {{recovery: {{lr: 0.01}}}}}}}}}}}}")
    graph = project.graph()
    heirs = {"fupga": ("fupga+",), "fedosd": ("fedosd+", "fedosd.m5+")}[method]  # rates sets its own
    trained = graph.where(lambda job: job.stage == "recover" and job.names["trial"].startswith(heirs))
    affected = graph.with_downstream(trained)
    assert trained
    assert not any(key.startswith("unlearn") for key in affected)
    assert not published(project, "rates") & affected
    project.expect(affected)


def test_a_grid_over_post_training_rates_leaves_unlearning_alone(project: Project) -> None:
    before = project.graph().where(lambda job: True)
    project.override("{toy: {methods: {fedosd: {settings: {grid: {recovery.lr: [0.01, 0.02]}}}}}}")
    graph = project.graph()
    new = graph.where(lambda job: True) - before
    assert {key.split()[0] for key in new} == {"unlearn", "recover", "evaluate", "select"}
    own = {key.rpartition("=")[2] for key in new if key.startswith("unlearn")}
    assert own == {"fedosd+chosen", "fedosd.m5+chosen"}  # taken over
    chosen = graph.where(lambda job: job.stage == "select")  # among other trials
    project.expect(graph.with_downstream(new | chosen) | published(project, "numbers", "rounds", "utility"))


def test_a_caption_runs_its_artefact_alone(project: Project) -> None:
    project.edit("workflow/papers/toy.yaml", "R-Acc alone.", "R-Acc by itself.")
    project.expect(published(project, "utility"))


def test_a_style_draws_all_pictures_again_and_runs_nothing_else(project: Project) -> None:
    (project.root / "my.mplstyle").write_text("axes.grid: True\n")
    project.edit("config.yaml", "figures: {}", "figures: {width: 3.25, style: my.mplstyle}")
    project.expect(project.graph().where(lambda job: job.stage == "publish"))


def test_a_change_of_a_published_number_runs_its_table_alone(project: Project) -> None:
    project.edit("workflow/published/toy/numbers.csv", "asr,0.001", "asr,0.002")
    project.expect(published(project, "numbers"))


def test_one_artefact_can_be_asked_for_by_name(project: Project) -> None:
    for name in ("losses", "utility"):
        (project.root / f"results/toy/artefacts/toy/{name}.png").unlink()
    project.expect(published(project, "losses"), "toy_losses")
    project.expect(published(project, "losses", "utility"), "toy")


# ---- methods of one's own --------------------------------------------------------------------------------------------


def test_a_method_from_outside_runs_its_own_jobs_and_what_shows_it(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "methods").mkdir(parents=True)
    file = folder / "methods/mine.py"
    file.write_text(METHOD)
    before = project.graph().where(lambda job: True)
    project.edit("config.yaml", "plugins: null", f"plugins: {folder}")
    project.expect([])
    project.override(f"{{toy: {{methods: {{mine: {MINE}}}}}}}")
    new = project.graph().where(lambda job: True) - before
    assert {key.split()[0] for key in new} == {"unlearn", "recover", "evaluate"}
    affected = new | published(project, "utility")
    project.expect(affected)
    project.snakemake("toy_utility")
    assert "| Mine¹ *" in (project.root / "results/toy/artefacts/toy/utility.md").read_text()
    project.expect([])
    file.write_text(METHOD.replace('"""Shrink."""', '"""Shrink a little."""'))
    project.expect([])
    file.write_text(METHOD.replace("0.9 *", "0.8 *"))
    project.expect(affected)


def test_a_scenario_of_plug_ins_from_outside_runs_its_own_jobs(project: Project, tmp_path: Path) -> None:
    kinds = {"models": "mlp", "datasets": "digits", "partitions": "pat", "training": "fedavg", "attacks": "patch"}
    for kind, name in kinds.items():
        (tmp_path / "mine" / kind).mkdir(parents=True)
        shutil.copy2(project.root / f"fu/{kind}/{name}.py", tmp_path / f"mine/{kind}/mine.py")
    before = project.graph().where(lambda job: True)
    project.edit("config.yaml", "plugins: null", f"plugins: {tmp_path / 'mine'}")
    data = "dataset: mine, attack: {name: mine}, partition: {name: mine, params: {class_share: 0.5}}"
    settings = (
        f"{{data: {{{data}}}, model: {{name: mine, params: {{hidden: 8}}}}, training: {{method: {{name: mine}}}}}}"
    )
    shown = "{kind: table, title: T, caption: C, scenarios: [mine], methods: [fupga], metrics: [asr]}"
    scenario = f"{{label: Mine, base: iid, settings: {settings}}}"
    project.override(f"{{toy: {{scenarios: {{mine: {scenario}}}, artefacts: {{mine: {shown}}}}}}}")
    new = project.graph().where(lambda job: True) - before
    assert {key.split()[0] for key in new} == {
        "data", "partition", "train", "unlearn", "recover", "evaluate", "publish",
    }  # fmt: skip
    project.expect(new)
    project.snakemake("toy_mine")
    assert "| FUPGA²" in (project.root / "results/toy/artefacts/toy/mine.md").read_text()
    project.expect([])


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "suffix"), [("data/digits", "npz"), ("toy/iid/seed0/original.trained", "safetensors")]
)
def test_an_output_made_again_with_equal_bytes_runs_nothing(project: Project, target: str, suffix: str) -> None:
    path = project.root / f"results/toy/{target}.{suffix}"
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    subprocess.run(shlex.split(project.show(target).stdout), cwd=project.root, check=True, capture_output=True)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns > when
    project.expect([])


def test_a_changed_model_is_made_again_and_what_follows_from_it(project: Project) -> None:
    name = "results/toy/toy/iid/seed0/fupga+lr0.02.unlearned.safetensors"
    before = (project.root / name).read_bytes()
    (project.root / name).write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    graph = project.graph()
    project.expect(graph.with_downstream(graph.where(lambda job: name in job.outputs)))
    project.snakemake()
    assert (project.root / name).read_bytes() == before
    project.expect([])


def test_an_absent_intermediate_is_made_where_it_is_needed(project: Project) -> None:
    folder = project.root / "results/toy/toy/iid/seed0"
    for model in [*folder.glob("*.safetensors"), folder.parents[2] / "data/digits.npz"]:
        model.unlink()
    project.expect([])
    project.edit(
        "fu/methods/fupga.py", "theta + torch.stack(deltas).mean(0)", "theta + 0.5 * torch.stack(deltas).mean(0)"
    )
    graph = project.graph()
    edited = graph.with_downstream(graph.where(lambda job: of_plugin(job, "fupga")))
    absent = graph.where(lambda job: job.stage == "data" or (job.stage == "train" and "iid" in job.names["run"]))
    project.expect(edited | absent)
    project.snakemake()
    project.expect([])


def test_a_job_whose_code_was_edited_after_planning_refuses(project: Project) -> None:
    command = shlex.split(project.show("toy/iid/seed0/original.trained").stdout)
    done = subprocess.run([*command, "--code", "0" * 16], cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: train: the code was edited after this job was planned; run snakemake again.\n"


def test_a_run_killed_after_the_first_affected_job_leaves_the_rest_scheduled(project: Project) -> None:
    edited = time.time_ns()
    project.edit(
        "fu/methods/fupga.py", "theta + torch.stack(deltas).mean(0)", "theta + 0.5 * torch.stack(deltas).mean(0)"
    )
    graph = project.graph()
    affected = graph.with_downstream(graph.where(lambda job: of_plugin(job, "fupga")))
    project.expect(affected)
    target = project.root / "results/toy/toy/iid/seed0/fupga+lr0.02.unlearned.safetensors"
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
    killed = "a killed run has left this folder locked; remove the lock with `make unlock`, and start again."
    assert (locked.stdout + locked.stderr).splitlines()[-1] == f"error: {killed}"
    assert "LockException" not in locked.stdout + locked.stderr
    assert project.make("unlock").returncode == 0

    left = set(project.scheduled())
    paths = {job.key: [project.root / path for path in job.outputs] for job in graph.jobs if job.key in affected}
    done = {key for key in affected if all(p.exists() and p.stat().st_mtime_ns > edited for p in paths[key])}
    assert affected - done <= left <= affected
    assert left
    project.snakemake()
    project.expect([])
