"""docs/adding-a-method.md, followed word by word in a fresh copy of the project."""

import csv
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fu.federation.losses import OBJECTIVES
from tests.factories import make_task
from tests.pages import block, commands, followed, linted, page, run

pytestmark = pytest.mark.whole

PAGE = page("adding-a-method")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with what the page says to write."""
    return followed(PAGE, tmp_path_factory.mktemp("adding") / "project")


def test_the_method_of_the_page_keeps_the_contract_and_forgets(root: Path) -> None:
    contract, show, reproduce = commands(PAGE)
    assert re.search(r"^methods/mine.py .* passed$", run(root, contract), re.M)
    assert re.search(r"fu\.pipeline\.stages\.unlearn .*\"mine\"", run(root, show))
    run(root, reproduce)

    table = root / re.findall(r"`(results/.*?)\.md`", PAGE)[0]
    with table.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["method"], row["stage"], row["metric"]): float(row["mean"]) for row in rows}
    original = {metric: found["original", "original", metric] for metric in ("asr", "r_acc")}
    assert found["mine", "unlearned", "asr"] < original["asr"] / 2
    assert found["mine", "unlearned", "r_acc"] > original["r_acc"] - 0.1


def test_the_method_of_the_page_passes_the_linter(root: Path) -> None:
    linted(root, "my_plugins")


def test_the_losses_of_the_page_are_those_that_there_are() -> None:
    (listed,) = re.findall(r"The named losses\nare (.*?)\. Any", PAGE, re.S)
    assert re.findall(r"`(\w+)`", listed) == list(OBJECTIVES)


def test_a_client_trains_on_the_loss_of_the_page() -> None:
    names = {"Tensor": Tensor}
    exec(block(PAGE, "text"), names)
    task = make_task()
    found = task.federation.local_updates(task.original_model, task.forgotten, 0, names["to_uniform"])
    assert torch.isfinite(found.delta).all()
    assert found.delta.norm() > 0
    assert found.losses.item() >= torch.log(torch.tensor(10.0))  # the entropy of ten equal classes
