"""Which numbers of two runs differ, and by how much: worked out by hand."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fu.artefacts.rows import COLUMNS
from fu.pipeline.cli import show
from fu.pipeline.cli.compare import LINES, compare
from tests.artefacts.factories import make_entry
from tests.mistakes import sentence
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied, put

Row = dict[str, Any]
ENTRY = make_entry("table")
SHOWN = "loss,value\nCE,1\n"
ROWS: list[Row] = [{"seed": seed, "value": seed} for seed in range(3)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder of its own."""
    monkeypatch.chdir(tmp_path)


def csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV; those that say no more are of the attack success rate of `ours` in `small`."""
    usual = {"scenario": "small", "method": "ours", "stage": "recovered", "round": -1, "metric": "asr", "published": 0}
    columns = dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)])
    lines = [[str({**usual, **row}.get(column, "")) for column in columns] for row in rows]
    return "".join(",".join(line) + "\n" for line in [[*columns], *lines])


def run(folder: str, rows: Sequence[Row] = ROWS, shown: str = SHOWN, **about: Any) -> Path:
    """Return the results of a preset with `toy_thing` and, where there were none, `toy_other` without rows."""
    stem = ROOT / "artefacts/toy/thing"
    if not ROOT.exists():
        put(ENTRY, **about).with_name("thing.csv").write_text(SHOWN)
        copied(stem, "other")
    stem.with_name("thing.rows.csv").write_text(csv(rows))
    stem.with_name("thing.csv").write_text(shown)
    certify(stem, "publish", {"results": [EVALUATION]})
    return Path(shutil.copytree(ROOT, folder))


def report(a: Sequence[Row], b: Sequence[Row], shown: tuple[str, str] = (SHOWN, SHOWN)) -> list[str]:
    """Return the lines of a comparison after the first, without the name before each number."""
    runs = run("a", a, shown[0]), run("b", b, shown[1])
    comparison = compare(*runs)
    assert comparison.equal == (len(comparison.lines) == 2)
    for path in runs:
        shutil.rmtree(path)
    return [line.removeprefix("  toy_thing  ") for line in comparison.lines[1:]]


def test_equal_numbers_do_not_differ_however_they_are_written_and_ordered() -> None:
    rows = [*ROWS, {"seed": 0, "value": 0.25, "method": "x"}]
    again = [{**row, "value": f"{row['value']:.6f}"} for row in reversed(rows)]
    assert report(rows, again) == ["Numbers: all 6 are equal"]  # four rows, and one number in each table


def test_a_column_may_have_any_name() -> None:
    """As in tables of verdicts, which have a text and a place."""
    shown = "scenario,text,place,cell,column,value\nsmall,It holds.,Table 1,c,d,0.5\n"
    assert report(ROWS, ROWS, (shown, shown)) == ["Numbers: all 5 are equal"]
    assert report(ROWS, ROWS, (shown, shown.replace("Table 1", "Table 2")))[1:] == ["small, place: Table 1 -> Table 2"]


def test_differences_are_printed_with_their_seed_and_change_those_without_a_number_first() -> None:
    a = [
        {"seed": 0, "value": value, "method": name}
        for name, value in (("v", 2), ("w", 40), ("x", 0.1), ("y", 0.5), ("z", 1))
    ]
    b = [{**row, "value": value} for row, value in zip(a, (3, 30, 0.5, 0.4), strict=False)]
    lines = report(a, b)
    assert lines[0] == "Numbers: 7 compared; 5 cells differ, largest differences first:"
    assert lines[1] == "small, z, recovered, seed 0, asr: 1 -> none"
    assert [line.partition(": ")[2] for line in lines[2:]] == [
        "0.1 -> 0.5 (+0.4)",
        "2 -> 3 (+1)",  # a third of the larger one
        "40 -> 30 (-10)",
        "0.5 -> 0.4 (-0.1)",
    ]
    texts = "claim,scenario,verdict\nforgets,iid,holds\n", "claim,scenario,verdict\nforgets,iid,undecided\n"
    assert report(ROWS, ROWS, texts)[1:] == ["forgets, iid, verdict: holds -> undecided"]


@pytest.mark.parametrize(
    ("column", "one", "other", "words"), [("client", 1, 2, "client 1"), ("published", 1, 0, "the paper's own")]
)
def test_rows_that_differ_in_anything_else_are_other_rows(column: str, one: object, other: object, words: str) -> None:
    lines = report([{"seed": 0, "value": 1, column: one}], [{"seed": 0, "value": 1, column: other}])
    assert len(lines) == 3
    assert any(f", {words}" in line and line.endswith(": 1 -> none") for line in lines)


def test_rows_that_nothing_tells_apart_are_compared_in_their_order() -> None:
    twice = [{"seed": 0, "value": 1}, {"seed": 0, "value": 1}]
    changed = [*twice[:1], {"seed": 0, "value": 2}]
    assert report(twice, changed)[1:] == ["small, ours, recovered, seed 0, asr: 1 -> 2 (+1)"]


def test_where_the_rows_are_equal_what_is_shown_is_compared_without_measured_times() -> None:
    shown = "metric,mean,std,n\nasr,0.5,0.1,3\nr_acc,0.9,0.2,1\nseconds,7,1,1\nratio,3,1,1\n"
    other = shown.replace("0.5", "0.3").replace("0.2,1", "0.2,2").replace("ds,7", "ds,8").replace("o,3", "o,4")
    assert report(ROWS, ROWS, (shown, other)) == [
        "Numbers: 10 compared; 2 cells differ, largest differences first:",  # 3 rows, 2 lines of 3, toy_other
        "r_acc, n: 1 -> 2 (+1)",
        "asr, mean: 0.5 -> 0.3 (-0.2)",
    ]
    changed = [*ROWS[:2], {"seed": 2, "value": 9}]
    assert len(report(ROWS, changed, (shown, other))) == 2  # the rest follows from the rows


def test_many_differences_are_cut_and_counted() -> None:
    rows = [{"seed": 0, "round": k, "value": 1} for k in range(LINES + 5)]
    lines = report(rows, [{**row, "value": 2} for row in rows])
    assert sum("1 -> 2 (+1)" in line for line in lines) == LINES
    assert lines[-1] == "  and 5 more"


def test_what_made_runs_is_printed_where_it_differs_and_what_one_has_alone() -> None:
    a = run("a")
    shutil.rmtree("results")
    about: Row = {"commit": "fedcba" * 6, "clean": False, "versions": {"python": "3.12.1", "torch": "2.14.0"}}
    copied(put(ENTRY, **about, devices=["another"]), "only")
    comparison = compare(a, run("b", **about))
    assert comparison.equal
    assert comparison.lines[1:] == [
        "Only in A: toy_other",
        "Only in B: toy_only",
        "commit: abcdefabcdef in A, fedcbafedcba, edited in B",
        "devices: toy in A, another in B",
        "version of torch: 2.13.0 in A, 2.14.0 in B",
        "Numbers: all 4 are equal",
    ]


TEXT = "metric,mean,std,n\nasr,0.5,,1\nr_acc,0.9,,1\nseconds,3,,1\n"


@pytest.mark.parametrize(("old", "new"), [("r_acc,0.9", "r_acc,0.90001"), ("r_acc,0.9,,1\n", ""), ("r_acc", "r_ac")])
def test_tables_alone_are_compared_but_for_times(old: str, new: str) -> None:
    a, tables = run("a", shown=TEXT), Path("expected")
    (tables / "toy").mkdir(parents=True)
    (tables / "toy/thing.csv").write_text(TEXT.replace(",3,", ",4,"))
    comparison = compare(a, tables)
    assert comparison.lines[1:] == ["Only in A: toy_other", "Numbers: all 4 are equal"]
    assert comparison.equal
    (tables / "toy/thing.csv").write_text(TEXT.replace(old, new))
    assert not compare(a, tables).equal


def test_only_targets_are_compared_and_what_is_damaged_is_named() -> None:
    a, b = run("a"), run("b", [*ROWS[:2], {"seed": 2, "value": 3}])
    assert not compare(a, b, ["toy_thing"]).equal
    assert compare(a, b, ["toy_other"]).equal
    assert sentence(lambda: compare(a, b, ["toy_other", "toy_none"])) == "a and b: have no table or figure 'toy_none'."
    (b / "artefacts/toy/thing.csv").write_text("x")
    assert compare(a, b, ["toy_other"]).equal
    comparison = compare(a, b)
    assert not comparison.equal
    assert "B: toy_thing: thing.csv is not as its job wrote it." in comparison.lines
    assert comparison.lines[-1] == "Not compared, for the reasons above: 1 table or figure"


def test_what_cannot_be_compared_is_one_sentence() -> None:
    a = run("a")
    Path("empty/artefacts").mkdir(parents=True)
    Path("broken/toy").mkdir(parents=True)
    Path("broken/toy/thing.csv").write_text('a,b\n"1')
    for other, words in (
        ("results", "results: has neither a folder 'artefacts', like results/smoke, nor tables, like docs/expected/s"),
        ("gone", "gone: there is no such file."),
        ("empty", "a and empty: have no table or figure in common."),
        ("broken", "broken/toy/thing.csv: is not valid CSV."),
    ):
        assert sentence(partial(compare, a, Path(other))).startswith(words)


def test_the_exit_code_says_whether_they_are_equal(capsys: pytest.CaptureFixture[str]) -> None:
    run("a")
    run("b", [*ROWS[:2], {"seed": 2, "value": 3}])
    assert show.run("compare", {"A": "a", "B": "a"}) == 0
    assert show.run("compare", {"A": "a", "B": "b", "TARGETS": "toy_other"}) == 0
    assert show.run("compare", {"A": "a", "B": "b"}) == 1
    assert capsys.readouterr().out.count("A: a, B: ") == 3
    assert show.run("compare", {"A": "a"}) == 2
    assert capsys.readouterr().err.startswith("error: compare: two runs are needed")
