"""At `smoke` every artefact that is asked for is there, states what it is, and rests on what it says."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from fu.pipeline.cli.compare import compare
from fu.pipeline.provenance.catalogue import drawn
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.provenance.paths import PICTURES
from tests.artefacts.typeset import compiled
from tests.workflow.conftest import FEW, targets
from tests.workflow.project import Job, Project

whole = pytest.mark.whole
Artefacts = dict[str, dict[str, object]]


def artefacts(project: Project) -> Artefacts:
    """The artefacts that the plan makes, by `paper/artefact`: their specs."""
    jobs = [job for job in project.graph().jobs if job.stage == "publish"]
    return {f"{job.names['paper']}/{job.names['artefact']}": {**job.spec, "inputs": job.inputs} for job in jobs}


def pictures(spec: dict[str, object]) -> tuple[str, ...]:
    """The formats of an artefact's figure; a table has none."""
    return PICTURES if drawn(str(spec["kind"]), str(spec["marks"] or "")) else ()


@pytest.fixture(params=[pytest.param("few", marks=pytest.mark.small), pytest.param("smoke", marks=whole)])
def made(request: pytest.FixtureRequest) -> tuple[Project, Artefacts]:
    """What was made: one artefact of each kind, or all of them."""
    project: Project = request.getfixturevalue(request.param)
    planned = artefacts(project)
    names = {"few": FEW, "smoke": (*planned,)}[request.param]
    graph = project.graph()
    asked = graph.behind(
        {f"publish artefact={key} paper={paper}" for paper, key in (name.split("/") for name in names)}
    )
    return project, {  # verdicts are made from artefacts, too
        name: spec
        for name, spec in planned.items()
        if "publish artefact={1} paper={0}".format(*name.split("/")) in asked
    }


def test_every_artefact_has_its_files_and_its_certificate_and_states_preset_and_data(
    made: tuple[Project, Artefacts],
) -> None:
    project, planned = made
    folder = project.root / "results/smoke/artefacts"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == {
        f"{name}.{suffix}"
        for name, spec in planned.items()
        for suffix in ("csv", "rows.csv", "md", "html", "tex", "json", "made.json", *pictures(spec))
    }
    for name in planned:
        assert "Preset smoke" in (folder / f"{name}.md").read_text()
        about = json.loads((folder / f"{name}.json").read_text())
        assert about["preset"] == "smoke"
        assert set(about["versions"]) >= {"python", "torch", "numpy", "snakemake"}


def test_one_page_shows_every_artefact_and_names_none_as_damaged(made: tuple[Project, Artefacts]) -> None:
    project, planned = made
    page = project.root / "results/smoke/index.html"
    text = page.read_text()
    assert {*re.findall(r'<article id="(.*?)"', text)} == {*planned}
    assert "Left out" not in text
    assert page.stat().st_size < 15e6
    before = page.stat().st_mtime_ns
    shown = project.show("results", TARGETS=" ".join(targets(planned))).splitlines()
    assert shown[-2] == "All results so far on one page: results/smoke/index.html"
    assert shown[-1].startswith("Next: make ")
    assert page.stat().st_mtime_ns == before


def test_tex_of_every_artefact_is_compiled(made: tuple[Project, Artefacts], tmp_path: Path) -> None:
    project, planned = made
    compiled([project.root / f"results/smoke/artefacts/{name}.tex" for name in planned], tmp_path)


def test_provenance_names_exactly_the_files_behind_an_artefact(made: tuple[Project, Artefacts]) -> None:
    project, planned = made
    for name, spec in planned.items():
        about = json.loads((project.root / f"results/smoke/artefacts/{name}.json").read_text())
        behind = {*about["inputs"], *about["costs"]}
        assert behind == {path for path in spec["inputs"] if not path.startswith("workflow/published/")}  # type: ignore[attr-defined]
        assert all(cost["peak_memory_mib"] < 1536 for cost in about["costs"].values())


@whole
def test_the_conflicts_of_fedosd_are_none_and_of_ascent_are_some(smoke: Project) -> None:
    folder = smoke.root / "results/smoke/fedosd/mnist-pat20/seed0"

    def conflicts(method: str) -> float:
        (file,) = folder.glob(f"{method}+*.evaluation.csv")
        rows = [line.split(",") for line in file.read_text().splitlines()]
        return next(float(value) for _, metric, _, value in rows[1:] if metric == "conflicts")

    assert conflicts("fedosd") == 0
    assert conflicts("fupga") > 0


def last(project: Project, job: Job) -> pd.Series:
    """The last round that a job's trace has measured; the accuracy that it has, as `accuracy`."""
    (trace,) = (path for path in job.outputs if path.endswith(".csv"))
    rows = pd.read_csv(project.root / trace).rename(columns={"all_accuracy": "accuracy"})
    rows = rows if "accuracy" in rows else rows.assign(accuracy=rows["r_acc"])
    return rows.dropna(subset="r_acc" if job.specs[0]["attack"] else "accuracy").iloc[-1]


@whole
def test_in_every_panel_the_backdoor_takes_hold_and_retraining_learns_the_task_without_it(smoke: Project) -> None:
    jobs = smoke.graph().jobs
    original = [job for job in jobs if job.stage == "train" and job.has(trial="original")]
    trained = {job.names["run"]: last(smoke, job) for job in original if "backdoor" in job.specs[0]["traced"]}
    retrained = [job for job in jobs if job.stage == "unlearn" and job.has(trial="retraining")]
    again = {job.names["run"]: last(smoke, job) for job in retrained if "backdoor" in job.specs[0]["traced"]}
    assert len(trained) > 20
    unseen = {job.names["run"] for job in original if job.specs[0]["attack"]} - trained.keys()
    assert {run.rpartition("/")[0] for run in unseen} == {"audit/mnist-backdoor"}  # where relearning measures it
    relearned = pd.read_csv(smoke.root / "results/smoke/artefacts/audit/relearning.csv")
    before = relearned[(relearned["attack"] == "original") & (relearned["metric"] == "asr")]["mean"]
    assert before.round(3).nunique() == 2  # of either training
    assert before.min() > 0.7
    without = "fedosd/mnist-mlp-", "fedosd/mnist-pat50-each-"  # of which the latter have repeats of retraining
    assert again.keys() == {run for run in trained if not run.startswith(without)}
    assert {
        run: (row["asr"], row["r_acc"])
        for run, row in trained.items()
        if row["asr"] < (0.5 if "-iid" in run else 0.7) or row["r_acc"] < 0.7
    } == {}
    assert {
        run: (row["asr"], row["r_acc"])
        for run, row in again.items()
        if row["asr"] >= 0.2 or abs(row["r_acc"] - trained[run]["r_acc"]) > 0.1
    } == {}


@whole
def test_without_an_attack_the_trained_model_at_least_halves_the_error_of_chance(smoke: Project) -> None:
    """Of several trainings the best: SAFARI's controls are there to be worse."""
    classes = {"digits_rgb_20": 20, "letters": 26}
    errors: dict[str, float] = {}
    for job in smoke.graph().jobs:
        if job.stage == "train" and not job.specs[0]["attack"]:
            chance = 1 - 1 / classes.get(job.specs[0]["dataset"], 10)
            run = job.names["run"]
            errors[run] = min(errors.get(run, 1.0), (1 - last(smoke, job)["accuracy"]) / chance)
    assert len(errors) > 20
    assert {run: share for run, share in errors.items() if share > 0.5} == {}


@whole
def test_results_end_with_the_first_table(smoke: Project) -> None:
    text = smoke.show("results")
    for name, spec in artefacts(smoke).items():
        assert f"results/smoke/artefacts/{name}.{{{','.join(('md', 'csv', 'html', 'tex', *pictures(spec)))}}}" in text
    assert "| FedOSD²" in text


@whole
def test_the_html_report_holds_every_artefact(smoke: Project) -> None:
    smoke.snakemake("--report", "report.html")
    text = (smoke.root / "report.html").read_text()
    for name, spec in artefacts(smoke).items():
        assert f"{name.rpartition('/')[2]}.{'png' if pictures(spec) else 'html'}" in text


@whole
def test_its_numbers_are_the_expected_ones(smoke: Project) -> None:
    found = compare(smoke.root / "results/smoke", ROOT / "docs/expected/smoke")
    assert found.equal, "\n".join(found.lines)
