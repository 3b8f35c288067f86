"""The pages on an evaluator, a kind of figure, a data set and a model, followed word by word; their tables."""

import csv
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fu import plugins
from fu.artefacts.result import Result
from fu.data.clients import ClientData
from fu.data.dataset import Dataset
from fu.evaluation.context import Context
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import catalogue
from fu.pipeline.stages.frames import COLUMNS
from tests.factories import make_data, make_partition
from tests.pages import commands, config, files, first_column, followed, linted, page, run, write
from tests.workflow.project import apart

KINDS = {"adding-an-evaluator": "evaluation", "adding-a-figure": "artefacts"}
KINDS |= {"adding-a-data-set": "datasets", "adding-a-model": "models"}
PAGES = {name: page(name) for name in KINDS}
Numbers = dict[tuple[str, ...], float]


# ---- tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_all_that_a_file_of_its_kind_may_define(name: str) -> None:
    kind = KINDS[name]
    may = {*catalogue.NEEDED[kind], *catalogue.CONSTANTS[kind], *plugins.CALLED[kind]}
    (table,) = re.findall(r"## What the file defines\n\n((?:\|.*\n)+)", PAGES[name])
    assert set(first_column(table, "name")) == may


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize(
    ("name", "head", "there"),
    [
        ("adding-an-evaluator", "field of `Context`", {field.name for field in fields(Context)}),
        ("adding-an-evaluator", "key of a metric", {*catalogue.Declared.model_fields} - {"name"}),
        (
            "adding-an-evaluator",
            "of `ClientData`",
            public(vars(ClientData)) | public(vars(make_data(make_partition()))),
        ),
        ("adding-a-figure", "column", {*COLUMNS}),
        ("adding-a-figure", "field of `Result`", {field.name for field in fields(Result)}),
        ("adding-a-data-set", "field of `Dataset`", {field.name for field in fields(Dataset)}),
    ],
)
def test_a_table_has_a_row_for_each_that_there_is(name: str, head: str, there: set[str]) -> None:
    told = [text.partition("(")[0] for text in first_column(PAGES[name], head)]
    assert sorted(told) == sorted(there)


# ---- word by word ------------------------------------------------------------------------------------------------


def made_by(values: dict[str, Any]) -> str:
    """Return the text that the plan says the page's target is."""
    (job,) = Plan(values).asked(("fedosd_mine",))
    return job.outputs["md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_entry_of_a_page_is_planned_and_shows_what_it_says(name: str, tmp_path: Path) -> None:
    write(PAGES[name], tmp_path)
    keys, lines = config(PAGES[name])
    assert keys == ("plugins:", "overrides:")
    arrays = np.zeros((4, 16, 16), np.uint8), np.arange(4, dtype=np.uint8)
    np.savez(tmp_path / "blobs.npz", x_train=arrays[0], y_train=arrays[1], x_test=arrays[0], y_test=arrays[1])
    told = yaml.safe_load(lines)
    values = {"papers": ["fedosd"], "data_dir": str(tmp_path), **told, "plugins": str(tmp_path / told["plugins"])}
    assert apart(made_by, values) == re.findall(r"`(results/.*?)\.\w+`", PAGES[name])[0] + ".md"
    (plugin,) = [path for path in files(PAGES[name]) if path.startswith("my_plugins")]
    kind, _, file = plugin.removeprefix("my_plugins/").partition("/")
    assert kind == KINDS[name]
    assert file.removesuffix(".py") in lines


@pytest.mark.parametrize("name", PAGES)
def test_the_files_of_a_page_pass_the_linter(name: str, tmp_path: Path) -> None:
    write(PAGES[name], tmp_path)
    linted(tmp_path, ".")


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.whole) for name in PAGES])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A page, and a copy of the project in which all was done that it says."""
    name = request.param
    root = followed(PAGES[name], tmp_path_factory.mktemp("adding") / "project")
    for line in commands(PAGES[name]):
        printed = run(root, line)
        if line.startswith("make contract"):
            assert re.search(r"^(\w+/\w+\.py) .* passed$", printed, re.M)
            assert "1 of 1 plug-ins passed" in printed
    return name, root / re.findall(r"`(results/.*?)\.\w+`", PAGES[name])[0]


def means(path: Path) -> Numbers:
    """Return the numbers of a table by scenario, method, stage and metric."""
    with path.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = ("scenario", "method", "stage", "metric")
    return {tuple(row[key] for key in keys): float(row["mean"]) for row in rows if row["mean"]}


def test_a_page_ends_with_the_result_that_it_promises(made: tuple[str, Path]) -> None:
    name, path = made
    if name == "adding-a-figure":
        text = path.with_suffix(".md").read_text()
        assert re.search(r"^- ω⁰: ASR 0\.\d{3}, R-Acc 0\.\d{3}$", text, re.M)
        assert re.search(r"^- FedOSD²: ASR 0\.\d{3}, R-Acc 0\.\d{3}$", text, re.M)
        assert "<svg" in path.with_suffix(".svg").read_text()
        return
    found = means(path)
    at = {"adding-an-evaluator": "fmnist-pat20", "adding-a-data-set": "blobs", "adding-a-model": "strided"}[name]
    if name == "adding-an-evaluator":
        original = found[at, "original", "original", "surprise"]
        assert found[at, "retraining", "unlearned", "surprise"] > 2 * original > 0
    else:
        assert found[at, "original", "original", "asr"] > 0.5 > found[at, "retraining", "unlearned", "asr"]
        assert found[at, "retraining", "unlearned", "r_acc"] > 0.5
