"""The expected results of `smoke` are of the tables and figures that the plan makes now.

Whether they have its columns, rows and numbers is compared in tests/workflow/test_smoke.py.
"""

import csv
import re
from functools import cache

from fu.pipeline.provenance.digest import ROOT
from tests.pipeline.plans import PAPERS
from tests.pipeline.plans import made as planned

FOLDER = ROOT / "docs/expected/smoke"
LONG = {f"fats/{name}" for name in ("fig1", "fig5", "fig8", "fig8_single")}  # curves of more than 100 kB
FILES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.csv"))


@cache
def asked() -> set[str]:
    """Return the names of all tables and figures."""
    return {f"{paper}/{name}" for paper, name in planned("smoke", *PAPERS).artefacts}


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_and_figure_has_expected_numbers_of_a_megabyte_in_all() -> None:
    assert {*FILES} == asked() - LONG
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < 1e6


def test_the_page_for_evaluators_counts_them() -> None:
    text, number = (ROOT / "docs/artefact-evaluation.md").read_text(), len(asked())
    assert f"all {number} tables and figures (42 of the papers, {number - 42} of our own)" in text
    assert f"{len(FILES)} of the {number} have expected numbers" in text


def test_the_readme_shows_the_expected_table() -> None:
    (block,) = re.findall(r"```text\n(\| Method .*?)```", (ROOT / "README.md").read_text(), re.S)
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    first = [row for row in rows("fedosd/table8") if row["scenario"] == "mnist-pat20"]
    for k, metric in ((2, "asr"), (3, "asr_held_out"), (4, "r_acc")):
        every = iter([f"{float(row['mean']):.3f}" for row in first if row["metric"] == metric])
        assert all(line[k].partition(" ")[0] in every for line in shown)  # in this order, with rows left out
    assert len(shown) == 8
