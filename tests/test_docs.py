"""Documents that are made from the code, or must hold for it."""

import csv
import re
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from fu.pipeline.digest import ROOT
from fu.pipeline.settings import reference


def test_the_reference_of_settings_is_current() -> None:
    assert (ROOT / "docs/config.md").read_text() == reference.text()


def test_every_setting_is_described() -> None:
    for model in reference.MODELS.values():
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_the_method_of_the_readme_runs(tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code
    path = tmp_path / "mine.py"
    path.write_text(code[1])
    program = (
        "import importlib.util, torch; from tests.factories import make_task; "
        f"spec = importlib.util.spec_from_file_location('mine', {str(path)!r}); "
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); t = make_task(); p = m.Params(); "
        "s = m.start(t, p); s = m.step(t, p, s, 0); assert torch.isfinite(s['theta']).all(); "
        "assert not torch.equal(s['theta'], t.original_model)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_the_conda_environment_pins_what_the_lock_pins() -> None:
    pip = yaml.safe_load((ROOT / "envs/environment.yaml").read_text())["dependencies"][-1]["pip"]
    lock = [line for line in (ROOT / "envs/lock.txt").read_text().splitlines() if not line.startswith("#")]
    assert pip == lock


def test_the_lock_pins_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "envs/lock.txt").read_text().splitlines()
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lines if not line.startswith(("#", "-")))
    for wanted in (*project["dependencies"], *project["optional-dependencies"]["dev"]):
        name, _, version = wanted.lower().partition("==")
        assert name in pinned, wanted
        assert version in ("", pinned[name].partition("+")[0]), wanted


def test_the_citation_file_names_four_papers() -> None:
    content = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert len(content["references"]) == 4
    assert all(reference["title"] and reference["authors"] for reference in content["references"])


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
def test_no_published_number_is_there_twice(table: str) -> None:
    rows = rows_of(FOLDER / f"{table}.csv")
    assert list(rows[0]) == [*KEYS, "value"]
    assert len(cells(table)) == len(rows)


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


@pytest.mark.parametrize("table", TABLES)
def test_a_published_number_is_one_that_its_metric_can_have(table: str) -> None:
    for (*_, metric), value in cells(table).items():
        if metric == "reverts":
            assert value == 1
        elif metric.startswith("seconds"):
            assert value > 0
        elif metric == "conflicts":
            assert 0 <= value <= 9  # retained clients
        else:
            assert 0 <= value <= 1
    for (*model, metric), value in cells(table).items():
        if metric == "r_acc" and (*model, "r_acc_worst") in cells(table):
            assert cells(table)[*model, "r_acc_worst"] <= value <= cells(table)[*model, "r_acc_best"]


DISAGREEMENTS = {  # of the paper with itself: the same model of the same run, printed twice
    ("cifar10-pat50", "fedosd", "recovered", "asr"): {
        "table1": ".016",
        "table4": ".016",
        "table5": ".024",
        "table7": ".016",
    },
    ("cifar100-pat50", "fedosd", "recovered", "asr"): {"table5": ".056", "table9": ".025"},
    ("mnist-pat20", "fupga", "unlearned", "r_acc"): {"table3": ".535", "table8": ".532"},
}


def test_tables_that_print_the_same_number_agree_except_where_the_paper_does_not() -> None:
    printed: dict[Key, dict[str, Decimal]] = {}
    for table in TABLES:
        for key, value in cells(table).items():
            printed.setdefault(key, {})[table] = value
    assert sum(len(tables) > 1 for tables in printed.values()) > 200
    different = {key: tables for key, tables in printed.items() if len(set(tables.values())) > 1}
    assert different == {
        key: {table: Decimal(value) for table, value in tables.items()} for key, tables in DISAGREEMENTS.items()
    }


def test_tables_that_print_the_same_model_mark_it_alike() -> None:
    marks: dict[Key, set[bool]] = {}
    for table in TABLES:
        found = cells(table)
        for *model, metric in found:
            if metric == "asr":
                marks.setdefault(tuple(model), set()).add((*model, "reverts") in found)
    assert [model for model, seen in marks.items() if len(seen) > 1] == []
    assert {model[2] for model, seen in marks.items() if True in seen} == {"recovered"}
