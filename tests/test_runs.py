"""The configurations that evaluators are told to run, and the table that tells them."""

import re
from pathlib import Path

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml

PAGE = (ROOT / "docs/artefact-evaluation.md").read_text()
FILES = sorted((ROOT / "config/runs").glob("*.yaml"))
COPY, MAKE, KEPT, NOW = (
    r"`cp (config/runs/\S+\.yaml) config\.yaml`",
    "`(make reproduce .*?)`",
    "[^|]*",
    r"[^|]*?([\d,]+) jobs",
)
ROWS = re.findall(r"\| " + r" \| ".join([COPY, MAKE, KEPT, NOW]), PAGE)
LINK = re.compile(r"(docs/\S+\.md)#(\S+)")


def given(command: str) -> dict[str, str]:
    """Return the variables that a command of make sets."""
    return {name: quoted or word for name, quoted, word in re.findall(r'([A-Z_]+)=(?:"(.*?)"|(\S+))', command)}


def test_the_page_names_every_file_once_and_no_other() -> None:
    assert sorted(ROOT / file for file, _, _ in ROWS) == FILES
    assert len(re.findall(r"`make reproduce PRESET=", PAGE)) == len(ROWS) == 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_names_a_section_that_exists(path: Path) -> None:
    ((page, anchor),) = LINK.findall(path.read_text())
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.M)
    assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("file", "command", "jobs"), ROWS, ids=[file for file, _, _ in ROWS])
def test_a_command_plans_as_many_jobs_of_its_file_as_the_page_says(file: str, command: str, jobs: str) -> None:
    config, said = read_yaml(ROOT / file), given(command)
    assert said["PRESET"] == config["preset"]
    assert said.get("PAPERS", ",".join(config["papers"])).split(",") == config["papers"]
    assert "data_dir" not in config
    plan = Plan(config)
    assert len(list(plan.behind(plan.asked(said["TARGETS"].split())))) == int(jobs.replace(",", ""))
