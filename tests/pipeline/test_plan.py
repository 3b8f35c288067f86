"""The plan's jobs: what each reads and writes, which of them an artefact rests on, what the tables show."""

import re
import shlex
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from fu.artefacts.entry import ORIGINAL
from fu.pipeline.plan import commands
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.provenance.paths import LOGS, OUTPUTS, PICTURES, certificate_of
from fu.pipeline.settings import papers
from fu.pipeline.stages import publish
from tests.pipeline.configs import toy
from tests.pipeline.plans import PAPERS, RUN, WRITTEN, grid, made, plan, trials

PRESETS = [*papers.files("presets")]


# ---- the graph -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_plans_every_paper_and_every_artefact(preset: str) -> None:
    planned = made(preset, *PAPERS)
    assert {*planned.papers} == {*papers.files("papers")}
    assert {key for paper, key in planned.artefacts if paper == "fedosd"} == set(WRITTEN["artefacts"])
    published = {tuple(job.names.values()) for job in planned.jobs() if job.stage == "publish"}
    assert published == set(planned.artefacts)
    for (paper, artefact), entry in planned.artefacts.items():
        assert entry.published == (ROOT / "workflow/published" / paper / f"{artefact}.csv").is_file()


def test_no_two_jobs_write_one_file_and_no_two_one_log() -> None:
    jobs = list(made().jobs())
    outputs = [path for job in jobs for path in job.outputs.values()]
    logs = [LOGS[job.stage].format(**job.names) for job in jobs]
    assert len(jobs) > 500
    assert len(set(outputs)) == len(outputs) > len(jobs)
    assert len(set(logs)) == len(jobs)
    assert all(path.startswith("results/paper/") for path in outputs)
    for job in jobs:
        lacking = {*OUTPUTS[job.stage], "certificate"} ^ {*job.outputs}
        assert lacking in (set(), {*PICTURES} if job.stage == "publish" else set())


def test_every_input_is_the_output_of_a_job_before_or_a_published_file_and_every_output_leads_to_its_job() -> None:
    planned, made_so_far, published = made(), set[str](), set[str]()
    for job in planned.jobs():
        outside = set(job.files) - made_so_far
        assert not outside or job.stage == "publish"
        published |= outside
        made_so_far |= set(job.outputs.values())
        for path in job.outputs.values():
            assert planned.job(*planned.producers[path]) is job
            assert path == job.certificate or str(certificate_of(Path(path))) == job.certificate
    assert published == {str(path.relative_to(ROOT)) for path in PUBLISHED}


def test_an_artefact_alone_asks_for_what_it_rests_on_and_for_nothing_else() -> None:
    planned = made("smoke")
    images = list(planned.jobs(("fedosd", "fig7")))
    scenarios = planned.artefacts["fedosd", "fig7"].scenarios
    assert [job.stage for job in images].count("partition") == len(scenarios)
    assert {job.stage for job in images} == {"data", "partition", "examples", "publish"}
    assert [job.stage for job in planned.jobs(("fedosd", "fig3"))] == ["publish"]
    both = planned.targets(("fedosd", "fig7"), ("fedosd", "fig3"))
    assert both == sorted({*planned.targets(("fedosd", "fig7")), *planned.targets(("fedosd", "fig3"))})
    every = {path for job in planned.jobs() for path in job.outputs.values() if job.stage == "publish"}
    assert set(both) < set(planned.targets()) == every


def test_equal_jobs_have_the_same_names_whatever_is_asked_for_first() -> None:
    """The scenario of `clients` at `smoke` is that of `remains`, which stands before it."""
    alone = Plan({"preset": "smoke", "papers": ["audit"]})
    found = {job.certificate for job in alone.behind(alone.asked(["audit_clients"]))}
    assert found <= {job.certificate for job in made("smoke", "audit").jobs()}


def test_a_figure_has_pictures_a_table_none_and_each_a_rule_of_its_own() -> None:
    planned, tables = made("smoke"), set()
    for paper, artefact in planned.artefacts:
        job = planned.job("publish", {"paper": paper, "artefact": artefact})
        pictures = {*PICTURES} & {*job.outputs}
        assert pictures in ({*PICTURES}, set())
        tables |= {artefact} if not pictures else set()
        name = f"{paper}/{artefact}.md"
        assert [re.fullmatch(f"{planned.folder(of)}/[^/]+", name) is None for of in (True, False)] == [
            bool(pictures),
            not pictures,
        ]
    assert {"table1", "table8", "table12", "verdicts"} <= tables
    assert tables.isdisjoint({"fig3", "fig5", "fig6", "fig7", "matrix"})


def test_an_edit_of_how_figures_look_draws_no_table_again() -> None:
    wide = Plan({"preset": "smoke", "papers": ["fedosd"], "figures": {"width": 3.25}})
    for before in (job for job in made("smoke").jobs() if job.stage == "publish"):
        assert (before.json == wide.job("publish", before.names).json) is ("png" not in before.outputs)


def test_a_name_that_begins_with_another_or_stands_in_another_paper_is_neither() -> None:
    plan = cast(Plan, SimpleNamespace(tables=[("toy", "one"), ("toy", "two")]))
    tables = ("toy/one.rows.csv", "toy/two.md")
    for name in (*tables, "toy/onetwo.md", "my/one.md", "toy/a.one.md"):
        found = [of for of in (True, False) if re.fullmatch(f"{Plan.folder(plan, of)}/[^/]+", name)]
        assert found == [name in tables]


def test_a_history_is_read_by_the_methods_that_need_one_alone() -> None:
    def history(trial: str) -> object:
        return made().job("unlearn", {"run": RUN, "trial": trial}).inputs["history"]

    recorded = f"results/paper/{RUN}/original.trained.history.safetensors"
    assert made().job("train", {"run": RUN, "trial": ORIGINAL}).outputs["history"] == recorded
    for method in ("federaser", "fedrecovery", "fupga"):
        assert history(trials(made(), RUN, method)[0]) == [recorded]
    for method in ("retraining", "mode", "ewcsga", "fedosd"):
        assert history(trials(made(), RUN, method)[0]) == []


# ---- choosing ------------------------------------------------------------------------------------------------------


def test_an_artefact_s_files_are_those_of_the_jobs_whose_models_it_shows() -> None:
    planned = plan("smoke", methods=grid("fedosd", {"unlearning.lr": [0.02], "recovery.lr": [0.01, 0.03]}))
    job = planned.job("publish", {"paper": "fedosd", "artefact": "fig5"})
    entry = job.spec
    assert isinstance(entry, publish.Spec)
    (fedosd,) = [method for method in entry.methods if method.name == "fedosd"]
    run = "fedosd/cifar10-pat50/seed0"
    assert [trial.name for trial in fedosd.trials["cifar10-pat50"]] == planned.names["fedosd/cifar10-pat50", "fedosd"]
    for trial in entry.trials("cifar10-pat50", fedosd):
        models = planned.models("fedosd/cifar10-pat50", "fedosd+chosen")
        assert trial.models == {role: f"{model.place}.{role}" for role, model in models.items()}
        for model in trial.models.values():
            name = model.partition("/")[2]
            assert f"results/smoke/{run}/{name}.csv" in job.inputs["results"]
            assert f"results/smoke/{run}/{name}.cost.json" in job.inputs["costs"]


# ---- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_toy")
def test_nothing_that_a_job_needs_is_part_of_its_spec() -> None:
    other = Plan({**toy(), "threads": 2, "device": "cpu", "data_dir": "elsewhere"})
    for job in Plan(toy()).jobs():
        assert other.job(job.stage, job.names).json == job.json


def test_a_command_names_every_file_and_how_it_runs() -> None:
    config = {"preset": "smoke", "papers": ["fedosd"], "data_dir": "my data", "threads": 2, "device": "cpu"}
    planned = Plan(config)
    seen = set()
    for job in planned.jobs(*(("fedosd", name) for name in ("table8", "matrix", "fig7"))):
        words = shlex.split(commands.complete(planned, job, "python"))
        assert words[:5] == ["python", "-m", f"fu.pipeline.stages.{job.stage}", "--spec", job.json]
        assert words[-4:] == ["--threads", "2", "--device", "cpu"]
        assert [word for word in words if word.startswith("--")] == [
            "--spec",
            "--certificate",
            *(f"--{field.name.replace('_', '-')}" for field in fields(import_module(words[2]).Files)),
            *(["--chosen", "--points"] if job.inputs.get("chosen") else []),
            "--threads",
            "--device",
        ]
        assert set(job.outputs.values()) <= set(words)
        read = {path for key, path in job.inputs.items() if isinstance(path, str)}
        assert read <= set(words)
        seen.add(job.stage)
    data = commands.complete(planned, planned.job("data", {"dataset": "digits"}), "python")
    assert "my data" in shlex.split(data)
    # With an attack those are forgotten whom it marks; this paper has no audit.
    assert seen == set(OUTPUTS) - {"request", "predict", "relearn", "assess", "expose", "holdings", "oracles"}


# ---- what the tables show ------------------------------------------------------------------------------------------

PUBLISHED = sorted((ROOT / "workflow/published/fedosd").glob("*.csv"))
# What a kind of artefact shows besides its metrics; the standard deviation of a time is our own over seeds.
BESIDES = {"table": {"reverts"}, "runtime": {"seconds", "seconds_std"}}


@pytest.mark.parametrize("path", PUBLISHED, ids=[path.stem for path in PUBLISHED])
def test_every_published_number_stands_beside_one_of_ours(path: Path) -> None:
    entry = made().job("publish", {"paper": "fedosd", "artefact": path.stem}).spec
    assert isinstance(entry, publish.Spec)
    numbers: Any = pd.read_csv(path, dtype=str).to_dict("records")
    assert entry.in_paper
    scenarios = [scenario.name for scenario in entry.scenarios]
    assert list(dict.fromkeys(row["scenario"] for row in numbers)) == scenarios
    methods = {method.name: method for method in entry.methods}
    assert {row["method"] for row in numbers} <= {ORIGINAL, *methods}
    metrics = {metric.name for metric in entry.metrics} | {metric.spread for metric in entry.metrics}
    assert {row["metric"] for row in numbers} <= metrics | BESIDES[entry.kind]
    ours = {
        (scenario, method, "total" if entry.kind == "runtime" else stage)
        for scenario in scenarios
        for method, stage, _ in entry.rows(scenario)
        if method == ORIGINAL or methods[method].in_paper
    }
    theirs = {(row["scenario"], row["method"], row["stage"]) for row in numbers}
    assert theirs <= ours
    without = {("table2", ORIGINAL, ORIGINAL), ("table12", ORIGINAL, "total")}  # the paper leaves the row out
    assert {(path.stem, *row[1:]) for row in ours - theirs} <= without
