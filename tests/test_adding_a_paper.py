"""docs/adding-a-paper.md, followed word by word in a copy of the project; what of a folder of one's own is refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from fu import plugins
from fu.pipeline.plan.plan import Plan
from tests.mistakes import has, sentence
from tests.pages import block, configure, page, write
from tests.workflow.project import from_repository

PAGE = page("adding-a-paper")
NAME = "mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the page says to write."""
    write(PAGE, tmp_path)
    return tmp_path / "my_folder"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Leave no folder to other tests."""
    before = [*plugins.FOLDERS]
    yield
    plugins.FOLDERS[:] = before


def values(folder: Path, **changes: object) -> dict[str, object]:
    return {"preset": "paper", "papers": [NAME], "plugins": str(folder), **changes}


def test_the_paper_of_the_page_is_planned_with_its_printed_numbers(folder: Path) -> None:
    planned = Plan(values(folder))
    assert planned.published(NAME, "table1") == [f"{folder}/published/mine/table1.csv"]
    stages = {"data", "partition", "request", "train", "unlearn", "evaluate", "publish"}
    assert {job.stage for job in planned.jobs()} == stages


def test_a_preset_of_ones_own_scales_it_down(folder: Path) -> None:
    (written,) = re.findall(r"`(\{description: .*?\})`", PAGE, re.S)
    (folder / "presets").mkdir()
    (folder / "presets/quick.yaml").write_text(" ".join(written.split()))
    planned = Plan(values(folder, preset="quick"))
    trial = planned.trials[f"{NAME}/one-client", "original"]
    assert (trial.settings.training.rounds, planned.seeds(NAME)) == (5, [0])


def test_a_paper_of_ones_own_needs_no_source(folder: Path) -> None:
    paper = folder / "papers/mine.yaml"
    text = paper.read_text()
    assert text.count(", source: section 2") == 1
    for source in ("", ", source: our choice"):
        paper.write_text(text.replace(", source: section 2", source))
        assert Plan(values(folder)).jobs()


def test_a_paper_that_is_misspelt_or_called_as_one_of_ours_is_refused(folder: Path) -> None:
    has(sentence(lambda: Plan(values(folder, papers=["mines"]))), "there is no paper 'mines'; did you mean 'mine'?")
    (folder / "papers/fats.yaml").write_text(block(PAGE, "yaml"))
    has(sentence(lambda: Plan(values(folder))), "papers/fats.yaml: workflow/papers already has a file with this name")


@pytest.mark.whole
def test_the_page_ends_with_a_table_and_verdicts(folder: Path) -> None:
    project = from_repository(folder.parent / "project")
    configure(PAGE, project.root / "config.yaml")
    folder.rename(project.root / "my_folder")
    project.snakemake()
    made = project.root / "results/paper/artefacts/mine"
    table = pd.read_csv(made / "table1.csv").set_index(["method", "stage", "metric"])
    assert table["mean"]["retraining", "unlearned", "forgotten_accuracy"] == 0
    assert table["published"]["retraining", "unlearned", "r_acc"] == 0.91
    verdicts = pd.read_csv(made / "verdicts.csv", keep_default_na=False)
    found = verdicts[verdicts["scenario"] == ""].set_index("claim")
    assert dict(found["verdict"]) == {"unknown-again": "holds", "others-keep-theirs": "holds"}
    assert set(found["n"]) == {5}
