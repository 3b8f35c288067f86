"""The configurations that evaluators are told to run, and the table that tells them."""

import re

import pytest

from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml
from tests.test_docs import anchors

DOCS = ROOT / "docs"
PAGE = (DOCS / "artefact-evaluation.md").read_text()
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "config/runs").glob("*.yaml"))
COPY, MAKE = r"`cp (config/runs/\S+\.yaml) config\.yaml`", "`(make reproduce .*?)`"
KEPT, NOW = r"\[([^|]*?)\]\((\S+\.md)#\S+\)[^|]*", r"[^|]*?([\d,]+) jobs"
ROWS = re.findall(r"\| " + r" \| ".join([COPY, MAKE, KEPT, NOW]), PAGE)


def test_the_page_names_every_file_once_and_each_file_its_section() -> None:
    assert sorted(file for file, *_ in ROWS) == FILES
    assert len(re.findall("`make reproduce PRESET=", PAGE)) == len(FILES)
    for file in FILES:
        ((page, anchor),) = re.findall(r"(docs/\S+\.md)#(\S+)", (ROOT / file).read_text())
        assert anchor in anchors(ROOT / page)


@pytest.mark.parametrize(("file", "command", "took", "page", "jobs"), ROWS, ids=[row[0] for row in ROWS])
def test_a_run_was_measured_and_plans_as_many_jobs_as_the_page_says(
    file: str, command: str, took: str, page: str, jobs: str
) -> None:
    measured = " ".join((DOCS / page).read_text().split())
    assert command in measured
    assert re.search(rf"(?<![\d.]){took}(?!\w)", measured)
    config = read_yaml(ROOT / file)
    said = {name: quoted or word for name, quoted, word in re.findall(r'([A-Z_]+)=(?:"(.*?)"|(\S+))', command)}
    assert said["PRESET"] == config["preset"]
    assert said.get("PAPERS", ",".join(config["papers"])).split(",") == config["papers"]
    assert "data_dir" not in config
    plan = Plan(config)
    assert len(list(plan.behind(plan.asked(said["TARGETS"].split())))) == int(jobs.replace(",", ""))
