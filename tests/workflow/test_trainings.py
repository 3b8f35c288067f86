"""After an edit of a training, a request or a coordinate exactly the affected jobs are due."""

from pathlib import Path

import pytest

from tests.workflow.project import Project
from tests.workflow.test_edits import everything, follows, of_artefacts, stages

pytestmark = pytest.mark.whole

ABOUT = "label: Mine, in_paper: false, source: a test, shown_in: [numbers]"
TRAINING = f"{{{ABOUT}, plugin: fedavg, params: {{client_weights: samples}}}}"


@pytest.fixture
def project_helped(helped: Project, tmp_path: Path) -> Project:
    """A copy of the finished run of trainings."""
    return helped.copied(tmp_path / "project")


# ---- trainings -------------------------------------------------------------------------------------------------------


def test_a_paper_without_unlearning_runs_to_its_end(helped: Project) -> None:
    helped.expect([])
    text = (helped.root / "results/toy/artefacts/helped/numbers.md").read_text()
    assert "| FedAvg" in text
    assert "| SAFARI" in text


def test_a_new_training_runs_its_own_jobs_and_what_shows_it(project_helped: Project) -> None:
    before = everything(project_helped.graph())
    project_helped.override(f"{{helped: {{trainings: {{mine: {TRAINING}}}}}}}")
    graph = project_helped.graph()
    new = everything(graph) - before
    assert {key.rpartition("trial=")[2] for key in new} == {"mine"}
    assert stages(new) == {"train", "evaluate"}
    assert graph.due == new | graph.where(of_artefacts("numbers"))


def test_a_training_s_file_runs_its_jobs_and_what_follows(project_helped: Project) -> None:
    project_helped.edit("fu/training/safari.py", "/ 2**63 < q", "/ 2**63 <= q")
    due = follows(project_helped, lambda job: job.stage == "train" and job.specs[0]["training"]["name"] == "safari")
    assert not any("fedavg" in key for key in due)


def test_another_number_of_the_server_s_samples_runs_the_trainings_that_use_them(project_helped: Project) -> None:
    before = everything(project_helped.graph())
    project_helped.edit("workflow/papers/helped.yaml", "values: {value: [5, 20]", "values: {value: [6, 20]")
    project_helped.edit("workflow/papers/helped.yaml", '"few-server-*-n5"', '"few-server-*-n6"')
    graph = project_helped.graph()
    new = everything(graph) - before
    assert stages(new) == {"train", "evaluate", "select"}
    assert not any("fedavg" in key for key in new)
    assert all("-n6" in key for key in new)
    assert graph.due == new | graph.where(of_artefacts("numbers", "rounds"))


def test_a_setting_of_one_training_runs_it_alone(project_helped: Project) -> None:
    project_helped.override("{helped: {trainings: {fedavg: {settings: {training: {momentum: 0.5}}}}}}")
    due = follows(project_helped, lambda job: job.stage == "train" and job.has(trial="fedavg"))
    assert sum(key.startswith("train") for key in due) == 2
    assert not any("safari" in key for key in due)


# ---- requests --------------------------------------------------------------------------------------------------------

ASKED = """
      {label: Asked, base: iid, settings: {data: {attack: null, forget: {clients: [0]}},
       evaluations: {evaluation: [utility]}, training: {history: []}}}
""".strip()


def asking(clients: int, drawn: str = "null") -> str:
    """Return overrides with two scenarios that differ in whom they forget, and in how many take part in training."""
    other = f"{{data: {{forget: {{clients: [{clients}]}}}}, training: {{clients_per_round: {drawn}}}}}"
    scenarios = f"asked: {' '.join(ASKED.split())}, other: {{label: Other, base: asked, settings: {other}}}"
    shown = "{kind: table, title: T, caption: C, scenarios: [asked, other], methods: [retraining], metrics: [r_acc]}"
    return f"{{toy: {{scenarios: {{{scenarios}}}, artefacts: {{asked: {shown}}}}}}}"


def test_another_request_runs_what_reads_it_and_no_training(project: Project) -> None:
    before = everything(project.graph())
    project.override(asking(1))
    new = everything(project.graph()) - before
    assert {key for key in new if key.startswith(("partition", "train"))} == {
        "partition run=toy/asked/seed0",
        "train run=toy/asked/seed0 trial=original",
    }
    project.snakemake("toy_asked")
    project.edit("config.yaml", "forget: {clients: [1]}", "forget: {clients: [2]}")
    due = follows(project, lambda job: job.key == "request run=toy/other/seed0")
    assert stages(due) == {"request", "unlearn", "evaluate", "publish"}
    assert not any("toy/asked" in key for key in due)
    project.edit("config.yaml", asking(2).partition("scenarios")[2], asking(2, "2").partition("scenarios")[2])
    assert {key for key in everything(project.graph()) - before if key.startswith(("partition", "train"))} == {
        "partition run=toy/asked/seed0",
        "train run=toy/asked/seed0 trial=original",
        "train run=toy/other/seed0 trial=original",
    }
