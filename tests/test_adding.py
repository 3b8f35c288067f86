"""The pages on adding a method, an evaluator, a kind of figure, a data set and a model, followed word by word."""

import csv
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

from fu import plugins
from fu.artefacts.result import Result
from fu.data.clients import ClientData
from fu.data.dataset import Dataset
from fu.evaluation.context import Context
from fu.federation.losses import OBJECTIVES
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import catalogue
from fu.pipeline.stages.frames import COLUMNS
from tests.factories import make_data, make_partition, make_task
from tests.pages import block, commands, config, files, first_column, followed, linted, page, run, write
from tests.workflow.project import apart

KINDS = {
    "adding-a-method": "methods",
    "adding-an-evaluator": "evaluation",
    "adding-a-figure": "artefacts",
    "adding-a-data-set": "datasets",
    "adding-a-model": "models",
}
PAGES = {name: page(name) for name in KINDS}


# ---- what pages say of the code ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PAGES if name != "adding-a-method"])
def test_a_page_names_all_that_a_file_of_its_kind_may_define(name: str) -> None:
    kind = KINDS[name]
    may = {*catalogue.NEEDED[kind], *catalogue.CONSTANTS[kind], *plugins.CALLED[kind]}
    (table,) = re.findall(r"## What the file defines\n\n((?:\|.*\n)+)", PAGES[name])
    assert set(first_column(table, "name")) == may


@pytest.mark.parametrize(
    ("name", "head", "there"),
    [
        ("adding-an-evaluator", "field of `Context`", {field.name for field in fields(Context)}),
        ("adding-an-evaluator", "key of a metric", {*catalogue.Declared.model_fields} - {"name"}),
        ("adding-an-evaluator", "of `ClientData`", {*vars(ClientData), *vars(make_data(make_partition()))}),
        ("adding-a-figure", "column", {*COLUMNS}),
        ("adding-a-figure", "field of `Result`", {field.name for field in fields(Result)}),
        ("adding-a-data-set", "field of `Dataset`", {field.name for field in fields(Dataset)}),
    ],
)
def test_a_table_has_a_row_for_each_that_there_is(name: str, head: str, there: set[str]) -> None:
    told = [text.partition("(")[0] for text in first_column(PAGES[name], head)]
    assert sorted(told) == sorted(one for one in there if not one.startswith("_"))


def test_the_losses_of_the_page_on_methods_are_those_that_there_are_and_its_own_can_be_trained_on() -> None:
    (listed,) = re.findall(r"The named losses\nare (.*?)\. Any", PAGES["adding-a-method"], re.S)
    assert re.findall(r"`(\w+)`", listed) == list(OBJECTIVES)
    names = {"Tensor": Tensor}
    exec(block(PAGES["adding-a-method"], "text"), names)
    task = make_task()
    found = task.federation.local_updates(task.original_model, task.forgotten, 0, names["to_uniform"])
    assert torch.isfinite(found.delta).all()
    assert found.delta.norm() > 0
    assert found.losses.item() >= torch.log(torch.tensor(10.0))  # the entropy of ten equal classes


# ---- word by word ------------------------------------------------------------------------------------------------


def made_by(values: dict[str, Any]) -> str:
    """Return the text that the plan says the page's target is."""
    (job,) = Plan(values).asked(("fedosd_mine",))
    return job.outputs["md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_files_of_a_page_are_planned_make_what_it_says_and_pass_the_linter(name: str, tmp_path: Path) -> None:
    write(PAGES[name], tmp_path)
    keys, lines = config(PAGES[name])
    assert keys == ("plugins:", "overrides:")
    arrays = np.zeros((4, 16, 16), np.uint8), np.arange(4, dtype=np.uint8)
    np.savez(tmp_path / "blobs.npz", x_train=arrays[0], y_train=arrays[1], x_test=arrays[0], y_test=arrays[1])
    told = yaml.safe_load(lines)
    values = {"papers": ["fedosd"], "data_dir": str(tmp_path), **told, "plugins": str(tmp_path / told["plugins"])}
    assert apart(made_by, values) == re.findall(r"`(results/.*?)\.\w+`", PAGES[name])[0] + ".md"
    (plugin,) = [path for path in files(PAGES[name]) if path.startswith("my_plugins")]
    assert Path(plugin).parent == Path("my_plugins", KINDS[name])
    assert Path(plugin).stem in lines
    linted(tmp_path, ".")


@pytest.mark.whole
@pytest.mark.parametrize("name", PAGES)
def test_a_page_ends_with_the_result_that_it_promises(name: str, tmp_path: Path) -> None:
    root = followed(PAGES[name], tmp_path / "project")
    for line in commands(PAGES[name]):
        printed = run(root, line)
        if line.startswith("make contract"):
            assert re.search(r"^\w+/\w+\.py .* passed$", printed, re.M)
            assert "1 of 1 plug-ins passed" in printed
        if line.startswith("make show"):
            assert re.search(r"fu\.pipeline\.stages\.unlearn .*\"mine\"", printed)
    path = root / re.findall(r"`(results/.*?)\.\w+`", PAGES[name])[0]
    if name == "adding-a-figure":
        text = path.with_suffix(".md").read_text()
        assert re.search(r"^- ω⁰: ASR 0\.\d{3}, R-Acc 0\.\d{3}$", text, re.M)
        assert re.search(r"^- FedOSD²: ASR 0\.\d{3}, R-Acc 0\.\d{3}$", text, re.M)
        assert "<svg" in path.with_suffix(".svg").read_text()
        return
    shown = yaml.safe_load(config(PAGES[name])[1])["overrides"]["fedosd"]["artefacts"]["mine"]["scenarios"][-1]
    with path.with_suffix(".csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mean"] and row["scenario"] == shown]
    found = {(row["method"], row["stage"], row["metric"]): float(row["mean"]) for row in rows}
    if name == "adding-an-evaluator":
        original = found["original", "original", "surprise"]
        assert found["retraining", "unlearned", "surprise"] > 2 * original > 0
    elif name == "adding-a-method":
        assert found["mine", "unlearned", "asr"] < found["original", "original", "asr"] / 2
        assert found["mine", "unlearned", "r_acc"] > found["original", "original", "r_acc"] - 0.1
    else:
        assert found["original", "original", "asr"] > 0.5 > found["retraining", "unlearned", "asr"]
        assert found["retraining", "unlearned", "r_acc"] > 0.5
