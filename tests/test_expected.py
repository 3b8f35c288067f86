"""The expected results of `smoke` are of the tables and figures that the plan makes now, with its columns and rows."""

import csv
import json
import re
from functools import cache
from typing import Any

from fu.pipeline.provenance.digest import ROOT
from tests.artefacts.factories import made, make_entry
from tests.pipeline.plans import PAPERS
from tests.pipeline.plans import made as planned

FOLDER = ROOT / "docs/expected/smoke"
LONG = {f"fats/{name}" for name in ("fig1", "fig5", "fig8", "fig8_single")}  # curves of more than 100 kB
FILES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.csv"))
# In a table but no method of it, or the other way round.
BESIDE = ("", "original", "repeats of retraining", "repeats of retraining.fats", "partly.all")
OWN = {"curves", "across", "gains", "tradeoffs"}  # kinds whose columns depend on more than the kind


@cache
def entries() -> dict[str, dict[str, Any]]:
    jobs = planned("smoke", *PAPERS).asked(["all"])
    return {"{paper}/{artefact}".format(**job.names): json.loads(job.json) for job in jobs if job.stage == "publish"}


@cache
def columns(kind: str) -> list[str]:
    return [*made(make_entry(kind)).frame]


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def named(things: list[dict[str, Any]]) -> set[str]:
    return {thing["name"] for thing in things}


def test_every_table_and_figure_has_expected_numbers_of_a_megabyte_in_all() -> None:
    assert {*FILES} == entries().keys() - LONG
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < 1e6


def test_the_page_for_evaluators_counts_them() -> None:
    text, number = (ROOT / "docs/artefact-evaluation.md").read_text(), len(entries())
    assert f"all {number} tables and figures (42 of the papers, {number - 42} of our own)" in text
    assert f"{len(FILES)} of the {number} have expected numbers" in text


def test_expected_columns_and_rows_are_those_of_the_plan() -> None:
    for name in FILES:
        entry, found = entries()[name], rows(name)
        if entry["kind"] not in OWN:
            assert [*found[0]] == columns(entry["kind"]), name
        if entry["reads"] in ("evaluations", "traces", "repeats"):
            for column in {"scenario", "method"} & {*found[0]}:
                there = {row[column] for row in found}
                assert there ^ named(entry[f"{column}s"]) <= {*BESIDE, *entry["against"]}, (name, column)
            if "metric" in found[0] and entry["kind"] != "speed":  # whose metrics are made of others
                assert named(entry["metrics"]) <= {row["metric"] for row in found}, name


def test_the_readme_shows_the_expected_table() -> None:
    (block,) = re.findall(r"```text\n(\| Method .*?)```", (ROOT / "README.md").read_text(), re.S)
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    first = [row for row in rows("fedosd/table8") if row["scenario"] == "mnist-pat20"]
    for k, metric in ((2, "asr"), (3, "asr_held_out"), (4, "r_acc")):
        every = iter([f"{float(row['mean']):.3f}" for row in first if row["metric"] == metric])
        assert all(line[k].partition(" ")[0] in every for line in shown)  # in this order, with rows left out
    assert len(shown) == 8
