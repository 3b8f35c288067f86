"""One artefact of each kind: that none is missing, what an edit makes of them, and the bytes of their page."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fu.pipeline.plan.jobs import Job
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml
from tests.workflow.conftest import FEW, targets
from tests.workflow.project import Project

SECONDS = 900  # of estimated work
STEP = "theta + torch.stack(deltas).mean(0)"  # of FUPGA
EDITED = ("fedosd/matrix", "audit/exposed")  # FUPGA is behind the former, not behind the latter


def ways(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what a job is an example of: its stage, and the plug-ins that its specs name."""
    yield "stage", job.stage
    for spec in (found.model_dump(mode="json") for found in job.specs):
        yield from ((key, spec[key]["name"]) for key in ("method", "training") if spec.get(key))
        for key in ("evaluators", "counted", "traced"):
            yield from (("evaluator", name) for name in spec.get(key) or ())
        if job.stage == "publish":
            yield "kind", spec["kind"]
            yield from (("audit", name) for name in spec["audits"])


def test_the_few_have_every_kind_stage_method_training_evaluator_and_audit_and_each_is_needed() -> None:
    plan = Plan(read_yaml(ROOT / "config.yaml"))
    jobs = {job.certificate: job for job in plan.jobs()}
    each = {key: set(ways(job)) for key, job in jobs.items()}
    needed = {
        f"{paper}/{name}": [job.certificate for job in plan.jobs((paper, name))] for paper, name in plan.artefacts
    }
    shown = {name: {way for key in keys for way in each[key]} for name, keys in needed.items()}

    def all_of(names: Iterable[str]) -> set[tuple[str, str]]:
        return {way for name in names for way in shown[name]}

    assert {what for what, _ in all_of(shown)} == {"stage", "method", "training", "evaluator", "kind", "audit"}
    assert all_of(shown) - all_of(FEW) == set()
    assert [name for name in FEW if all_of(FEW) == all_of({*FEW} - {name})] == []
    assert sum(jobs[key].estimate for key in {key for name in FEW for key in needed[name]}) < SECONDS


@pytest.mark.small
def test_an_edit_of_a_method_runs_its_jobs_and_what_follows_and_nothing_else(few: Project, tmp_path: Path) -> None:
    project = few.copied(tmp_path / "project")
    project.edit("fu/methods/fupga.py", STEP, f"{STEP} * 0.5")
    graph = project.graph(*targets(EDITED))
    unlearned = graph.where(lambda job: job.stage == "unlearn" and job.specs[0]["method"]["name"] == "fupga")
    shown = {"publish artefact={1} paper={0}".format(*name.split("/")) for name in EDITED}
    expected = graph.with_downstream(unlearned) & graph.behind(shown)
    assert graph.due == expected
    assert {key.partition(" ")[0] for key in expected} >= {"unlearn", "recover", "evaluate", "publish"}
    assert "publish artefact=exposed paper=audit" not in expected
    made = {job.key: [project.root / path for path in job.outputs] for job in graph.jobs}
    before = {path: path.stat().st_mtime_ns for paths in made.values() for path in paths if path.exists()}
    project.snakemake(*targets(EDITED))
    again = {
        key
        for key, paths in made.items()
        if any(path.stat().st_mtime_ns != before[path] for path in paths if path in before)
    }
    assert again == expected
    assert project.graph(*targets(EDITED)).due == set()


@pytest.mark.small
def test_the_page_has_the_same_bytes_written_again_and_after_an_edit_that_changes_nothing(
    few: Project, tmp_path: Path
) -> None:
    project = few.copied(tmp_path / "project")
    page = project.root / "results/smoke/index.html"
    before = page.read_bytes()
    page.unlink()
    project.show("results", TARGETS=" ".join(targets(FEW)))
    assert page.read_bytes() == before
    page.unlink()
    project.edit("fu/federation/driver.py", "    device = task.fed", "    # why\n    device = task.fed")
    assert "Nothing to be done" in (done := project.snakemake(*targets(FEW))).stdout + done.stderr
    project.show("results", TARGETS=" ".join(targets(FEW)))
    assert page.read_bytes() == before
