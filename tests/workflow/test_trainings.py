"""After an edit of a training or a coordinate exactly the affected jobs are due."""

from pathlib import Path

import pytest

from tests.workflow.project import Project
from tests.workflow.test_edits import everything, follows, of_artefacts, stages

pytestmark = pytest.mark.whole


@pytest.fixture
def project_helped(helped: Project, tmp_path: Path) -> Project:
    """A copy of the finished run of trainings."""
    return helped.copied(tmp_path / "project")


def test_a_paper_without_unlearning_runs_to_its_end(helped: Project) -> None:
    helped.expect([])
    text = (helped.root / "results/toy/artefacts/helped/numbers.md").read_text()
    assert "| FedAvg" in text
    assert "| SAFARI" in text


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
