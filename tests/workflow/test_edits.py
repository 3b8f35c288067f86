"""After an edit exactly the affected jobs are due: the promise that this project makes.

What is affected is read off the plan's graph (who reads whose output), never off a digest.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages import files, page
from tests.workflow.project import Graph, Job, Project, until

METHOD = files(page("adding-a-method"))["my_plugins/methods/mine.py"]
EVALUATOR = files(page("adding-an-evaluator"))["my_plugins/evaluation/surprise.py"]
MINE = "{label: Mine, plugin: mine, in_paper: false, source: a test, shown_in: [utility]}"
STEP = "theta + torch.stack(deltas).mean(0)"  # of FUPGA
Matches = Callable[[Job], bool]


def of_plugin(*methods: str) -> Matches:
    """Match the jobs that unlearn with one of these plug-ins."""
    return lambda job: job.stage == "unlearn" and job.specs[0]["method"]["name"] in methods


def of_stages(*stages: str) -> Matches:
    return lambda job: job.stage in stages


def of_artefacts(*artefacts: str) -> Matches:
    return lambda job: job.names.get("artefact") in artefacts


def everything(graph: Graph) -> set[str]:
    return graph.where(lambda job: True)


def follows(project: Project, matches: Matches, *artefacts: str) -> set[str]:
    """Assert that exactly the jobs that match, what follows from them, and these artefacts are due; return these."""
    graph = project.graph()
    first = graph.where(matches)
    assert first
    assert graph.due == graph.with_downstream(first) | graph.where(of_artefacts(*artefacts))
    return graph.due


def stages(keys: set[str]) -> set[str]:
    return {key.split()[0] for key in keys}


# ---- nothing -------------------------------------------------------------------------------------------------------

HARMLESS = [
    ("fu/federation/driver.py", "    device = task.fed", "    # why\n    device = task.fed"),
    ("fu/federation/driver.py", "The one loop around every method", "The single loop around each method"),
    ("fu/errors.py", '"is missing"', '"is absent"'),
    ("fu/federation/progress.py", "every_seconds: float = 10.0", "every_seconds: float = 20.0"),
    ("fu/models/mlp.py", '"step_ms": 4.0', '"step_ms": 5.0'),
    ("fu/models/mlp.py", "FedOSD's code, and appendix B.1", "FedOSD's code; appendix B.1"),
    ("fu/pipeline/provenance/certificate.py", "PATIENCE_S = 10.0", "PATIENCE_S = 20.0"),
    ("fu/pipeline/engine/fork_server.py", "the job's process was killed", "somebody killed the job"),
    ("config.yaml", "threads: 1 ", "threads: 2 "),
    ("config.yaml", "device: auto ", "device: cpu "),
    ("workflow/papers/toy.yaml", "  unlearning:\n    rounds: {value: 2, source: \"our choice: a test\"}",
     "  unlearning:\n    rounds: {value: 2, source: section 4}"),
]  # fmt: skip


def test_a_finished_run_has_nothing_to_do(toy: Project) -> None:
    toy.expect_run([])


def test_what_cannot_change_a_result_runs_nothing(project: Project, tmp_path: Path) -> None:
    for path, old, new in HARMLESS:
        text = (project.root / path).read_text()
        assert old in text
        (project.root / path).write_text(text.replace(old, new, 1))
    copies = {
        "methods": "retrain", "training": "fedavg", "models": "lenet5", "datasets": "mnist", "partitions": "iid",
        "attacks": "patch", "histories": "update_sums", "projections": "away_from_original", "artefacts": "losses",
    }  # fmt: skip
    for kind, name in copies.items():  # plug-ins that nothing names
        shutil.copy2(project.root / f"fu/{kind}/{name}.py", project.root / f"fu/{kind}/mine.py")
    (project.root / "fu/evaluation/surprise.py").write_text(EVALUATOR)
    for folder in ("fu", "workflow", "profiles", "envs", "Snakefile"):
        for file in [project.root / folder, *(project.root / folder).rglob("*")]:
            file.touch()
    assert project.graph(data_dir=str(tmp_path)).due == set()  # another folder with the same archives
    project.expect_run([])


# ---- edits of one line -----------------------------------------------------------------------------------------------

MEASURING = ("train", "unlearn", "recover", "evaluate")
LEAST = """"r_acc_worst": {
        "label": """
OVERRIDES = "overrides: {}"
CODE: dict[str, tuple[str, str, str, Matches]] = {
    "a method": ("fu/methods/fedosd.py", "RANK_TOLERANCE = 2e-7", "RANK_TOLERANCE = 3e-7", of_plugin("fedosd")),
    "a projection": (
        *("fu/projections/away_from_original.py", "SPAN_TOLERANCE = 1e-6", "SPAN_TOLERANCE = 2e-6"),
        lambda job: job.stage == "recover" and job.specs[0]["projection"] is not None,
    ),
    "local SGD": (
        *("fu/federation/local.py", "return (share / share.sum()) @ updates.delta", "return updates.delta.mean(0)"),
        of_stages(*MEASURING),
    ),
    "post-training": (
        *("fu/federation/recovery.py", "theta + aggregate", "theta + 0.5 * aggregate"),
        of_stages("recover"),
    ),
    "a training": ("fu/training/fedavg.py", "theta + task", "theta + 0.5 * task", of_stages("train")),
    "a history": ("fu/histories/last_local_models.py", "theta + updates", "theta - updates", of_stages("train")),
    "an evaluator": ("fu/evaluation/backdoor.py", '{"asr": attack', '{"asr": -attack', of_stages(*MEASURING)),
    "a model": ("fu/models/mlp.py", "nn.ReLU()", "nn.Tanh()", of_stages(*MEASURING)),
    "a data set": (
        *("fu/datasets/digits.py", "1_797,", "1_798,"),
        lambda job: job.stage in ("data", "partition") or job.has(artefact="triggers"),
    ),
    "what reads data": ("fu/data/sources.py", "255 / 16", "255 / 15", of_stages("data")),
    "an attack": (
        *("fu/attacks/patch.py", "rng.random((p.size", "1 - rng.random((p.size"),
        lambda job: job.stage in ("partition", "train", "unlearn") or job.has(artefact="triggers"),
    ),
    "the rule of choice": ("fu/evaluation/selection.py", "round(found, 9)", "round(found, 8)", of_stages("select")),
    "a partition": (
        *("fu/partitions/pat.py", "room = [each] * clients", "room = [each + 0] * clients"),
        lambda job: job.stage == "partition" and job.spec["partition"]["name"] == "pat",
    ),
    "the count of conflicts": (
        *("fu/evaluation/conflicts.py", "< -rounding", "<= -rounding"),
        lambda job: job.stage == "unlearn" and job.specs[0]["watch"] == "conflicts",
    ),
    "a kind of artefact": ("fu/artefacts/curves.py", "FAR = 10", "FAR = 20", of_artefacts("rounds")),
    "a file in another role": (
        "fu/pipeline/plan/jobs.py",
        '"unlearned": self.of(_scenario(run), trial, "unlearn").outputs["model"]}',
        '"unlearned": self._shared(run, trial)["original"]}',
        of_stages("recover"),
    ),
    "a metric's label": (
        *("fu/evaluation/utility.py", LEAST, f'{LEAST}"Least" '),
        lambda job: job.stage == "publish" and "r_acc_worst" in {shown["name"] for shown in job.spec["metrics"]},
    ),
    "a caption": ("workflow/papers/toy.yaml", "R-Acc alone.", "R-Acc by itself.", of_artefacts("utility")),
    "a published number": (*("workflow/published/toy/numbers.csv", "asr,0.001", "asr,0.002"), of_artefacts("numbers")),
    "a setting of one method": (
        *("config.yaml", OVERRIDES),
        "overrides: {toy: {methods: {fupga: {settings: {unlearning: {lr_decay: 0.99}}}}}}",
        of_plugin("fupga"),
    ),
    "a post-training rate": (
        *("config.yaml", OVERRIDES, "overrides: {toy: {methods: {fupga: {settings: {recovery: {lr: 0.01}}}}}}"),
        lambda job: job.stage == "recover" and job.names["trial"].startswith("fupga+"),
    ),
    "a post-training rate that others begin from": (  # FedOSD has a grid in one scenario, and rates sets its own
        *("config.yaml", OVERRIDES, "overrides: {toy: {methods: {fedosd: {settings: {recovery: {lr: 0.01}}}}}}"),
        lambda job: job.stage == "recover" and job.names["trial"].startswith(("fedosd+", "fedosd.m5+")),
    ),
    "evaluators beside each other in one file": (
        *("config.yaml", OVERRIDES),
        "overrides: {toy: {settings: {evaluations: {evaluation: [backdoor, utility, distance, cost]}}}}",
        of_stages("evaluate"),
    ),
}


@pytest.mark.parametrize("what", CODE)
def test_an_edit_makes_due_what_reads_it_and_what_follows(project: Project, what: str) -> None:
    path, old, new, matches = CODE[what]
    file = project.root / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    follows(project, matches)


@pytest.mark.whole
def test_a_style_draws_all_pictures_again_and_runs_nothing_else(project: Project) -> None:
    style = project.root / "my.mplstyle"
    style.write_text("axes.grid: True\n")
    project.edit("config.yaml", "figures: {}", "figures: {width: 3.25, style: my.mplstyle}")
    follows(project, lambda job: any(path.endswith(".png") for path in job.outputs))  # no table
    project.snakemake("toy_losses")
    for text, due in (("# grid lines\naxes.grid: True\n", False), ("axes.grid: False\n", True)):
        style.write_text(text)
        assert ("publish artefact=losses paper=toy" in project.graph().due) is due


# ---- what is new -----------------------------------------------------------------------------------------------------


def test_a_new_evaluator_runs_its_evaluations_and_what_shows_it(project: Project) -> None:
    (project.root / "fu/evaluation/surprise.py").write_text(EVALUATOR)
    before = everything(project.graph())
    shown = "artefacts: {utility: {metrics: [r_acc, surprise]}}"
    project.override(f"{{toy: {{settings: {{evaluations: {{mine: [surprise]}}}}, {shown}}}}}")
    due = follows(project, lambda job: job.has(evaluation="mine"), "utility")
    new = due - before
    assert due - new == {"publish artefact=utility paper=toy"}
    assert {key.rpartition("trial=")[2].partition("+")[0] for key in new} == {"original", "fupga", "fedosd.m5"}


def test_a_value_of_one_methods_grid_runs_that_trial_and_what_shows_it(project: Project) -> None:
    before = everything(project.graph())
    project.edit("workflow/papers/toy.yaml", "value: [0.02, 0.005]", "value: [0.02, 0.006]")
    graph = project.graph()
    new = everything(graph) - before
    assert {key.rpartition("trial=")[2] for key in new} == {"fedosd+lr0.006"}
    assert graph.due == graph.with_downstream(new)
    assert {key.rpartition("trial=")[2] for key in graph.due if key.startswith("unlearn")} == {
        "fedosd+lr0.006",
        "fedosd+chosen",
    }


def test_a_grid_over_post_training_rates_leaves_unlearning_alone(project: Project) -> None:
    before = everything(project.graph())
    project.override("{toy: {methods: {fedosd: {settings: {grid: {recovery.lr: [0.01, 0.02]}}}}}}")
    graph = project.graph()
    new = everything(graph) - before
    assert stages(new) == {"unlearn", "recover", "evaluate", "select"}
    own = {key.rpartition("=")[2] for key in new if key.startswith("unlearn")}
    assert own == {"fedosd.m5+chosen"}  # which now has a choice of its own, and copies
    chosen = graph.where(of_stages("select"))  # among other trials
    shown = graph.where(of_artefacts("numbers", "rounds", "utility"))
    assert graph.due == graph.with_downstream(new | chosen) | shown


@pytest.mark.whole
def test_a_method_from_outside_runs_its_own_jobs_and_what_shows_it(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "methods").mkdir(parents=True)
    file = folder / "methods/mine.py"
    file.write_text(METHOD)
    before = everything(project.graph())
    project.edit("config.yaml", "plugins: null", f"plugins: {folder}")
    project.expect([])
    project.override(f"{{toy: {{methods: {{mine: {MINE}}}}}}}")
    graph = project.graph()
    new = everything(graph) - before
    assert stages(new) == {"unlearn", "recover", "evaluate"}
    affected = new | graph.where(of_artefacts("utility"))
    project.expect_run(affected)
    project.snakemake("toy_utility")
    assert "| Mine¹ *" in (project.root / "results/toy/artefacts/toy/utility.md").read_text()
    project.expect([])
    file.write_text(METHOD.replace('"""Forget, then repair."""', '"""Forget and repair."""'))
    project.expect([])
    file.write_text(METHOD.replace("p.strength *", "2 * p.strength *"))
    project.expect(affected)


@pytest.mark.whole
def test_a_scenario_of_plug_ins_from_outside_runs_its_own_jobs(project: Project, tmp_path: Path) -> None:
    kinds = {"models": "mlp", "datasets": "digits", "partitions": "pat", "training": "fedavg", "attacks": "patch"}
    for kind, name in kinds.items():
        (tmp_path / "mine" / kind).mkdir(parents=True)
        shutil.copy2(project.root / f"fu/{kind}/{name}.py", tmp_path / f"mine/{kind}/mine.py")
    before = everything(project.graph())
    project.edit("config.yaml", "plugins: null", f"plugins: {tmp_path / 'mine'}")
    data = "dataset: mine, attack: {name: mine}, partition: {name: mine, params: {class_share: 0.5}}"
    settings = (
        f"{{data: {{{data}}}, model: {{name: mine, params: {{hidden: 8}}}}, training: {{method: {{name: mine}}}}}}"
    )
    shown = "{kind: table, title: T, caption: C, scenarios: [mine], methods: [fupga], metrics: [asr]}"
    scenario = f"{{label: Mine, base: iid, settings: {settings}}}"
    project.override(f"{{toy: {{scenarios: {{mine: {scenario}}}, artefacts: {{mine: {shown}}}}}}}")
    graph = project.graph()
    assert graph.due == everything(graph) - before
    assert stages(graph.due) == {"data", "partition", "train", "unlearn", "recover", "evaluate", "publish"}
    project.snakemake("toy_mine")
    assert "| FUPGA²" in (project.root / "results/toy/artefacts/toy/mine.md").read_text()


# ---- the choice of a point -------------------------------------------------------------------------------------------


@pytest.mark.whole
def test_a_point_that_is_not_chosen_computes_nothing_but_its_own_comparison(project: Project) -> None:
    """What follows from the choice is planned, but ends at once: it is the same point of the same contents."""
    selection = project.root / "results/toy/toy/pat/fedosd.selected.json"
    chosen = json.loads(selection.read_text())["selected"]
    other = {"fedosd+lr0.02": "[0.02, 1.0e-8]", "fedosd+lr0.005": "[1.0e-8, 0.005]"}[chosen]
    models = project.root.glob("results/toy/toy/pat/seed0/*+chosen.*.safetensors")
    before = {path: path.read_bytes() for path in models if "predictions" not in path.name}
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
        assert "already made from the same inputs; nothing to do." in (logs / f"{stem}.log").read_text()
    project.expect([])


@pytest.mark.whole
def test_the_chosen_point_is_what_its_own_job_makes_on_seeds_that_compare_nothing(project: Project) -> None:
    project.edit("workflow/papers/toy.yaml", "seeds: {value: [0]", "seeds: {value: [0, 1]")
    folder = project.root / "results/toy/toy/pat"
    chosen = json.loads((folder / "fedosd.selected.json").read_text())["selected"]
    name = "results/toy/toy/pat/seed1/{}.unlearned.safetensors"
    project.snakemake("--", name.format("fedosd+chosen"))
    assert [path.name for path in (folder / "seed1").glob("fedosd+*.unlearned.safetensors")] == [
        "fedosd+chosen.unlearned.safetensors"
    ]
    project.snakemake("--", name.format(chosen))
    for seed in ("seed0", "seed1"):
        own, taken = (folder / seed / f"{name}.unlearned.safetensors" for name in (chosen, "fedosd+chosen"))
        assert own.read_bytes() == taken.read_bytes()


# ---- files ---------------------------------------------------------------------------------------------------------


def test_one_artefact_can_be_asked_for_by_name(project: Project) -> None:
    for name in ("losses", "utility"):
        (project.root / f"results/toy/artefacts/toy/{name}.html").unlink()
    graph = project.graph("toy_losses")
    assert graph.due == graph.where(of_artefacts("losses"))
    project.expect_run(graph.due, "toy_losses")
    project.expect(graph.where(of_artefacts("losses", "utility")), "toy")


def test_an_output_made_again_with_equal_bytes_runs_nothing(project: Project) -> None:
    path = project.root / "results/toy/toy/iid/seed0/original.trained.safetensors"
    before, when = path.read_bytes(), path.stat().st_mtime_ns
    command = shlex.split(project.show("show", CELL="toy/iid/seed0/original.trained"))
    subprocess.run(command, cwd=project.root, check=True, capture_output=True)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns > when
    project.expect_run([])
    done = subprocess.run([*command, "--code", "0" * 16], cwd=project.root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: train: the code was edited after this job was planned; start the run again.\n"


@pytest.mark.whole
def test_an_absent_intermediate_is_made_where_it_is_needed(project: Project) -> None:
    folder = project.root / "results/toy/toy/iid/seed0"
    for model in [*folder.glob("*.safetensors"), folder.parents[2] / "data/digits.npz"]:
        model.unlink()
    project.expect([])
    project.edit("fu/methods/fupga.py", STEP, f"{STEP} * 0.5")
    graph = project.graph()
    edited = graph.with_downstream(graph.where(of_plugin("fupga")))
    absent = graph.where(lambda job: job.stage == "data" or (job.stage == "train" and "iid" in job.names["run"]))
    assert graph.due == edited | absent
    project.expect_run(edited | absent)
    project.snakemake()
    project.expect([])


@pytest.mark.small
def test_a_run_killed_after_the_first_affected_job_leaves_the_rest_scheduled(project: Project) -> None:
    edited = time.time_ns()
    project.edit("fu/methods/fupga.py", STEP, f"{STEP} * 0.5")
    affected = follows(project, of_plugin("fupga"))
    jobs = [job for job in project.graph().jobs if job.key in affected]
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
    until(made_again)
    time.sleep(0.3)  # Snakemake writes its own record of the job after the job's end
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    locked = project.snakemake("--quiet", check=False)
    assert locked.returncode != 0
    killed = "a killed run has left this folder locked; remove the lock with `make unlock`, and start again."
    assert (locked.stdout + locked.stderr).splitlines()[-1] == f"error: {killed}"
    assert "LockException" not in locked.stdout + locked.stderr
    assert project.make("unlock").returncode == 0

    left = project.graph().due
    paths = {job.key: [project.root / path for path in job.outputs] for job in jobs}
    done = {key for key in affected if all(p.exists() and p.stat().st_mtime_ns > edited for p in paths[key])}
    assert affected - done <= left <= affected
    assert left
    project.snakemake()
    project.expect([])
