"""docs/adding-a-method.md, followed word by word in a fresh copy of the project."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fu.federation.losses import OBJECTIVES
from fu.pipeline.digest import ROOT
from tests.factories import make_task
from tests.workflow.project import from_repository

pytestmark = pytest.mark.whole

PAGE = (ROOT / "docs/adding-a-method.md").read_text()


def block(language: str) -> str:
    """Return the page's one block of code in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)
    return found


def make(root: Path, line: str) -> str:
    """Run a line of the page in a copy whose programs are those of this environment."""
    done = subprocess.run(
        line,
        shell=True,
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},  # not what another make or FU_PLUGINS says
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with what the page says to write."""
    root = from_repository(tmp_path_factory.mktemp("adding") / "project").root
    for name in ("tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, root / name)
    for program, module in (("python", ""), ("snakemake", "-m snakemake")):
        path = root / ".venv/bin" / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        path.chmod(0o755)
    (root / ".venv/installed").touch()

    (written,) = re.findall(r"Save this as `(.*?)`", PAGE)
    (root / written).parent.mkdir(parents=True)
    (root / written).write_text(block("python"))
    kept = [
        line
        for line in (root / "config.yaml").read_text().splitlines()
        if not line.startswith(("plugins:", "overrides:"))
    ]
    (root / "config.yaml").write_text("\n".join([*kept, block("yaml")]))
    return root


def test_the_method_of_the_page_keeps_the_contract_and_forgets(root: Path) -> None:
    contract, show, reproduce = block("sh").splitlines()
    assert " passed" in make(root, contract)
    assert re.search(r"fu\.pipeline\.stages\.unlearn .*\"mine\"", make(root, show))
    make(root, reproduce)

    table = root / re.findall(r"`(results/.*?)\.md`", PAGE)[0]
    with table.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {(row["method"], row["stage"], row["metric"]): float(row["mean"]) for row in rows}
    original = {metric: found["original", "original", metric] for metric in ("asr", "r_acc")}
    assert found["mine", "unlearned", "asr"] < original["asr"] / 2
    assert found["mine", "unlearned", "r_acc"] > original["r_acc"] - 0.1


def test_the_method_of_the_page_passes_the_linter(root: Path) -> None:
    for words in (("check",), ("format", "--check")):
        command = [sys.executable, "-m", "ruff", *words, "my_plugins"]
        subprocess.run(command, cwd=root, check=True)


def test_the_losses_of_the_page_are_those_that_there_are() -> None:
    (listed,) = re.findall(r"By name there\nare (.*?);", PAGE, re.S)
    assert re.findall(r"`(\w+)`", listed) == list(OBJECTIVES)


def test_a_client_trains_on_the_loss_of_the_page() -> None:
    names = {"Tensor": Tensor}
    exec(block("text"), names)
    task = make_task()
    found = task.federation.local_updates(task.original_model, task.forgotten, 0, names["to_uniform"])
    assert torch.isfinite(found.delta).all()
    assert found.delta.norm() > 0
    assert found.losses.item() >= torch.log(torch.tensor(10.0))  # the entropy of ten equal classes
