"""After an edit of a training, a request or a coordinate exactly the affected jobs run."""

import shutil
from pathlib import Path

import pytest

from tests.workflow.project import Project, with_paper
from tests.workflow.test_edits import published

ABOUT = "label: Mine, in_paper: false, source: a test, shown_in: [numbers]"
TRAINING = f"{{{ABOUT}, plugin: fedavg, params: {{client_weights: samples}}}}"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished run of a paper that trains in several ways and unlearns nothing; nobody edits it."""
    project = with_paper(tmp_path_factory.mktemp("helped") / "project", "helped")
    project.snakemake()
    return project


@pytest.fixture
def helped(finished: Project, tmp_path: Path) -> Project:
    """A copy of it."""
    return finished.copied(tmp_path / "project")


def everything(project: Project) -> set[str]:
    return project.graph().where(lambda job: True)


# ---- trainings -------------------------------------------------------------------------------------------------------


def test_a_paper_without_unlearning_runs_to_its_end(finished: Project) -> None:
    finished.expect([])
    text = (finished.root / "results/toy/artefacts/helped/numbers.md").read_text()
    assert "| FedAvg" in text
    assert "| SAFARI" in text


def test_a_new_training_runs_its_own_jobs_and_what_shows_it(helped: Project) -> None:
    before = everything(helped)
    helped.override(f"{{helped: {{trainings: {{mine: {TRAINING}}}}}}}")
    new = everything(helped) - before
    assert {key.rpartition("trial=")[2] for key in new} == {"mine"}
    assert {key.split()[0] for key in new} == {"train", "evaluate"}
    helped.expect(new | published(helped, "numbers"))
    helped.snakemake("helped_numbers")
    assert "| Mine *" in (helped.root / "results/toy/artefacts/helped/numbers.md").read_text()
    helped.expect([])


def test_a_new_partition_kind_runs_nothing(helped: Project) -> None:
    file = helped.root / "fu/partitions/mine.py"
    shutil.copy2(helped.root / "fu/partitions/iid.py", file)
    helped.expect([])
    file.write_text(file.read_text().replace("rng.permutation", "np.asarray"))
    helped.expect([])


def test_a_training_s_file_runs_its_jobs_and_what_follows(helped: Project) -> None:
    helped.edit("fu/training/safari.py", "/ 2**63 < q", "/ 2**63 <= q")
    graph = helped.graph()
    own = graph.where(lambda job: job.stage == "train" and job.specs[0]["training"]["name"] == "safari")
    affected = graph.with_downstream(own)
    assert not any("fedavg" in key for key in affected)
    helped.expect(affected)


def test_another_number_of_the_server_s_samples_runs_the_trainings_that_use_them(helped: Project) -> None:
    before = everything(helped)
    helped.edit("workflow/papers/helped.yaml", "values: {value: [5, 20]", "values: {value: [6, 20]")
    helped.edit("workflow/papers/helped.yaml", '"few-server-*-n5"', '"few-server-*-n6"')
    new = everything(helped) - before
    assert {key.split()[0] for key in new} == {"train", "evaluate", "select"}
    assert not any("fedavg" in key for key in new)
    assert all("-n6" in key for key in new)
    helped.expect(new | published(helped, "numbers", "rounds"))


def test_a_setting_of_one_training_runs_it_alone(helped: Project) -> None:
    helped.override("{helped: {trainings: {fedavg: {settings: {training: {momentum: 0.5}}}}}}")
    graph = helped.graph()
    own = graph.where(lambda job: job.stage == "train" and job.has(trial="fedavg"))
    assert len(own) == 2
    affected = graph.with_downstream(own)
    assert not any("safari" in key for key in affected)
    helped.expect(affected)


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
    before = everything(project)
    project.override(asking(1))
    new = everything(project) - before
    assert {key for key in new if key.split()[0] in ("partition", "train")} == {
        "partition run=toy/asked/seed0",
        "train run=toy/asked/seed0 trial=original",
    }
    project.snakemake("toy_asked")
    project.expect([])
    project.edit("config.yaml", "forget: {clients: [1]}", "forget: {clients: [2]}")
    graph = project.graph()
    affected = graph.with_downstream({"request run=toy/other/seed0"})
    assert {key.split()[0] for key in affected} == {"request", "unlearn", "evaluate", "publish"}
    assert not any("toy/asked" in key for key in affected)
    project.expect(affected)
    project.edit("config.yaml", asking(2).partition("scenarios")[2], asking(2, "2").partition("scenarios")[2])
    assert {key for key in everything(project) - before if key.startswith(("partition", "train"))} == {
        "partition run=toy/asked/seed0",
        "train run=toy/asked/seed0 trial=original",
        "train run=toy/other/seed0 trial=original",
    }
