"""Documents that are made from the code, or must hold for it."""

import csv
import json
import os
import re
import subprocess
import textwrap
import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import torch
import yaml
from packaging.requirements import Requirement

from fu.pipeline.cli import show
from fu.pipeline.documents import pages, reference, reproduced
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings.papers import read_yaml
from tests.factories import make_task

DOCS, README = ROOT / "docs", (ROOT / "README.md").read_text()
TOUR = (DOCS / "tour.md").read_text()
ADDING = tuple(sorted(path.stem for path in DOCS.glob("adding-*.md")))
WRITTEN = (*ADDING, "cluster", "data", "development", "measurements", "python", "tour", "your-own-model")  # by hand
PAGES = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md"),
    *sorted(str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.*") if path.is_file()),
]
TARGETS = set(" ".join(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)).split())
MINE = "fedosd/fmnist-pat20/seed0/mine.unlearned"  # of tests/test_adding.py


def test_the_generated_pages_are_current() -> None:
    """`make docs` renews them."""
    found = pages.pages()
    stale = [name for name, text in found.items() if not (DOCS / name).is_file() or (DOCS / name).read_text() != text]
    assert stale == []
    there = {f"{path.parent.name}/{path.name}" for path in DOCS.glob("[pr]*/*.md")}
    assert there == {*found} - {"config.md", reproduced.RESULTS, reproduced.VERDICTS}


def test_the_schema_of_the_config_is_current_and_admits_the_config() -> None:
    """`make docs` renews it."""
    assert (ROOT / reference.SCHEMA).read_text() == reference.schema()
    schema, config = yaml.safe_load(reference.schema()), read_yaml(ROOT / "config/config.yaml")
    jsonschema.validate(config, schema)
    with pytest.raises(jsonschema.ValidationError, match="'presett' was unexpected"):
        jsonschema.validate({**config, "presett": "smoke"}, schema)


def test_the_sketch_of_the_readme_is_the_method_of_its_page() -> None:
    (sketch,) = re.findall(r"```text\n(def start.*?)```", README, re.S)
    (whole,) = re.findall(r"```python\n(.*?)```", (DOCS / "adding-a-method.md").read_text(), re.S)
    task = make_task()
    found = []
    for code in (f"from fu.federation.local import aggregate\nfrom fu.federation.task import State\n{sketch}", whole):
        names: dict[str, Any] = {"__name__": "mine"}
        exec(code, names)
        p = SimpleNamespace(strength=4.0)
        found.append(names["step"](task, p, names["start"](task, p), 0).theta)
    assert torch.equal(*found)
    assert not torch.equal(found[0], task.original_model)


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_make_has_the_targets(page: str) -> None:
    path = ROOT / page
    assert {*re.findall(r"(?:`|^)make ([a-z][a-z-]*)", path.read_text(), re.M)} <= TARGETS
    outside = r"https?:|\.\./\.\./actions/"  # the second: GitHub's page on a workflow
    for target, anchor in re.findall(rf"\]\((?!{outside})([^)#\s]*)(?:#([^)\s]*))?\)", path.read_text()):
        found = path.parent / target if target else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in WRITTEN)])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    named = set(re.findall(r"`((?:fu|tests|workflow|envs|profiles)/[\w/.-]+\.\w+)`", (ROOT / page).read_text()))
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_the_tour_quotes_settings_and_code_as_they_are() -> None:
    papers = " ".join(path.read_text() for path in (ROOT / "workflow").glob("p*/*.yaml"))
    quoted = [line for block in re.findall(r"```yaml\n(.*?)```", TOUR, re.S) for line in block.splitlines()]
    quoted += re.findall(r"`(grid: \{.*?\})`", TOUR)
    assert [line for line in quoted if line not in papers] == []
    (code,) = re.findall(r"`fu/evaluation/measure.py`:\n\n```text\n(.*?)```", TOUR, re.S)
    assert textwrap.indent(code, "    ") in (ROOT / "fu/evaluation/measure.py").read_text()
    ((path, line),) = re.findall(r"^`(fu/\S+)` change `(.*?)` to", TOUR, re.M)
    assert line in (ROOT / path).read_text()


def test_the_readme_calls_the_same_methods_second_hand_as_their_files_do() -> None:
    table = README.split("| method | paper | implemented from |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:-1]]  # the last one: baselines, controls
    stated = {name: source.startswith("second-hand") for names, _, source in rows for name in names.split(", ")}
    files = {name: {"NoT": "weight_negation"}.get(name, name.lower()) for name in stated}
    sources = {one: catalogue.declared("methods", one)["FIDELITY"]["source"] for one in catalogue.available("methods")}
    assert stated == {name: sources[file] == "second-hand" for name, file in files.items()}
    published = {one for one, source in sources.items() if source not in {"ours", "code"}} - {"retrain"}
    assert {one.removesuffix("_as_published") for one in published} <= {*files.values()}


def test_help_lists_every_target_of_make() -> None:
    environment = {"PATH": os.environ["PATH"]}  # not what another make says
    done = subprocess.run(["make", "help"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    text = done.stdout
    assert set(re.findall(r"^make ([a-z-]+)", text, re.M)) == TARGETS
    assert max(map(len, text.splitlines())) <= 120


@cache
def default_plan() -> Plan:
    return Plan(read_yaml(ROOT / "config.yaml"))


@pytest.mark.parametrize("page", [*PAGES, "Makefile"])
def test_the_cells_that_a_page_names_are_in_the_default_preset(page: str) -> None:
    for name in set(re.findall(r"CELL=([\w/.+-]*\w)", (ROOT / page).read_text())) - {MINE}:
        assert [*show.cell(default_plan(), name)]


def test_the_lock_pins_all_that_the_project_asks_for_and_conda_installs_it() -> None:
    lock = [line for line in (ROOT / "envs/lock.txt").read_text().splitlines() if not line.startswith("#")]
    assert yaml.safe_load((ROOT / "envs/environment.yaml").read_text())["dependencies"][-1]["pip"] == lock
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lock if not line.startswith("-"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    more = project["optional-dependencies"]
    for wanted in (*project["dependencies"], *more["workflow"], *more["dev"]):
        asked = Requirement(wanted.lower())
        assert asked.specifier.contains(pinned[asked.name].partition("+")[0]), wanted


CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
DATES = {"codemeta.json": "datePublished", ".zenodo.json": "publication_date"}
CITED = {name: (ROOT / name).read_text() for name in ("codemeta.json", ".zenodo.json", "docs/citing.md")}


def test_one_version_stands_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    releases = re.findall(r"^## \[([\d.]+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert releases[0] == (version, str(CITATION["date-released"]))
    assert releases == sorted(releases, reverse=True)
    assert [CITATION["version"], CITATION["preferred-citation"]["version"]] == [version, version]
    dates = [json.loads(CITED[name])[key] for name, key in DATES.items()]
    assert dates == [str(CITATION["date-released"])] * 2
    assert [json.loads(CITED[name])["version"] for name in ("codemeta.json", ".zenodo.json")] == [version, version]
    assert f"version = {{{version}}}" in CITED["docs/citing.md"]


def test_every_file_to_cite_by_names_the_same_four_papers() -> None:
    papers = CITATION["references"]
    assert len({paper["doi" if "doi" in paper else "url"] for paper in papers}) == 4
    for paper in papers:
        preprint = paper["identifiers"][0]["value"].removeprefix("arXiv:")
        assert all(preprint in text for text in CITED.values())
        assert paper.get("doi", preprint).removeprefix("10.48550/arXiv.") in CITED[".zenodo.json"]
        for name in ("codemeta.json", "docs/citing.md"):
            assert paper.get("doi", paper.get("url")) in CITED[name]
            assert paper["title"] in CITED[name]
            assert all(author["family-names"] in CITED[name] for author in paper["authors"])


# ---- the paper's numbers -------------------------------------------------------------------------------------------

FOLDER = ROOT / "workflow/published/fedosd"
TABLES = [f"table{number}" for number in range(1, 13)]
KEYS = ("scenario", "method", "stage", "metric")
Key = tuple[str, ...]

# published_totals.csv is a second reading of the paper, made apart from the first: sums and counts of the numbers, of
# each metric of a scenario and of each row. Both print EWCSGA's R-Acc of Table 8 in Pat-50 as "441": .441.
TOTALS = Path(__file__).with_name("published_totals.csv")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def cells(table: str) -> dict[Key, Decimal]:
    return {tuple(row[key] for key in KEYS): Decimal(row["value"]) for row in rows_of(FOLDER / f"{table}.csv")}


def test_every_table_of_the_paper_is_there_and_was_read_twice() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(TABLES)
    assert {row["table"] for row in rows_of(TOTALS)} == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_the_published_numbers_are_those_of_a_second_reading(table: str) -> None:
    found: dict[Key, list[Decimal]] = {}
    for (scenario, method, stage, metric), value in cells(table).items():
        found.setdefault((scenario, "", "", metric), []).append(value)
        if metric != "reverts":
            found.setdefault((scenario, method, stage, ""), []).append(value)
    wanted = [row for row in rows_of(TOTALS) if row["table"] == table]
    second = {tuple(row[key] for key in KEYS): (int(row["count"]), Decimal(row["total"])) for row in wanted}
    assert len(second) == len(wanted)
    assert {key: (len(values), sum(values, Decimal())) for key, values in found.items()} == second


DISAGREEMENTS = {  # of the paper with itself: the same model of the same run, printed twice
    ("cifar10-pat50", "fedosd", "recovered", "asr"): {".016": ["table1", "table4", "table7"], ".024": ["table5"]},
    ("cifar100-pat50", "fedosd", "recovered", "asr"): {".056": ["table5"], ".025": ["table9"]},
    ("mnist-pat20", "fupga", "unlearned", "r_acc"): {".535": ["table3"], ".532": ["table8"]},
}


def test_tables_that_print_the_same_number_agree_except_where_the_paper_does_not() -> None:
    printed: dict[Key, dict[str, Decimal]] = {}
    for table in TABLES:
        for key, value in cells(table).items():
            printed.setdefault(key, {})[table] = value
    assert sum(len(tables) > 1 for tables in printed.values()) > 200
    different = {key: tables for key, tables in printed.items() if len(set(tables.values())) > 1}
    assert different == {
        key: {table: Decimal(value) for value, tables in values.items() for table in tables}
        for key, values in DISAGREEMENTS.items()
    }


def test_the_tables_that_print_different_numbers_say_so() -> None:
    artefacts = read_yaml(ROOT / "workflow/papers/fedosd.yaml")["artefacts"]
    told = {name: entry["note"] for name, entry in artefacts.items() if "contradicts itself" in entry.get("note", "")}
    concerned = [(table, values) for values in DISAGREEMENTS.values() for tables in values.values() for table in tables]
    assert told.keys() == {table for table, _ in concerned}
    assert all(value in told[table] for table, values in concerned for value in values)


def test_tables_that_print_the_same_model_mark_it_alike() -> None:
    marks: dict[Key, set[bool]] = {}
    for table in TABLES:
        found = cells(table)
        for *model, metric in found:
            if metric == "asr":
                marks.setdefault(tuple(model), set()).add((*model, "reverts") in found)
    assert [model for model, seen in marks.items() if len(seen) > 1] == []
    assert {model[2] for model, seen in marks.items() if True in seen} == {"recovered"}
