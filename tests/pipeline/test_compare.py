"""Which numbers of two runs differ, and by how much: worked out by hand."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fu.artefacts.rows import COLUMNS
from fu.errors import UserError
from fu.pipeline import show
from fu.pipeline.compare import LINES, compare
from tests.artefacts.factories import make_entry
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied, put

Row = dict[str, Any]
ENTRY = make_entry("table")
SHOWN = "loss,value\nCE,1\n"
HEAD = "metric,mean,std,n\n"
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


def test_each_number_that_differs_is_printed_with_its_seed_and_change() -> None:
    a, b = ROWS, [*ROWS[:1], {"seed": 1, "value": 0.9, "published": 0}, {"seed": 2, "value": 5}]
    assert report(a, b) == [
        "Numbers: 5 compared; 2 cells differ, largest differences first:",
        "small, ours, recovered, seed 2, asr: 2 -> 5 (+3)",  # .6 of the larger number
        "small, ours, recovered, seed 1, asr: 1 -> 0.9 (-0.1)",
    ]


def test_what_is_missing_or_a_text_ranks_before_numbers_and_small_ones_by_their_difference() -> None:
    a = [
        {"seed": 0, "value": value, "method": name}
        for name, value in (("v", 2), ("w", 40), ("x", 0.1), ("y", 0.5), ("z", 1))
    ]
    b = [{**row, "value": value} for row, value in zip(a, (3, 30, 0.5, 0.4), strict=False)]
    lines = report(a, b)[1:]
    assert [line.partition(": ")[2] for line in lines] == [
        "1 -> none",
        "0.1 -> 0.5 (+0.4)",
        "2 -> 3 (+1)",  # a third of the larger one
        "40 -> 30 (-10)",
        "0.5 -> 0.4 (-0.1)",
    ]
    texts = "claim,scenario,verdict\nforgets,iid,holds\n", "claim,scenario,verdict\nforgets,iid,undecided\n"
    assert report(ROWS, ROWS, texts)[1:] == ["forgets, iid, verdict: holds -> undecided"]


@pytest.mark.parametrize(
    ("column", "one", "other", "words"),
    [
        ("client", 1, 2, "client 1"),
        ("round", 0, 1, "round 0"),
        ("K", 2, 4, "2"),
        ("published", 1, 0, "the paper's own"),
    ],
)
def test_rows_that_differ_in_anything_else_are_other_rows(column: str, one: object, other: object, words: str) -> None:
    lines = report([{"seed": 0, "value": 1, column: one}], [{"seed": 0, "value": 1, column: other}])
    assert len(lines) == 3
    assert any(f", {words}" in line and line.endswith(": 1 -> none") for line in lines)


def test_rows_that_nothing_tells_apart_are_compared_in_their_order() -> None:
    twice = [{"seed": 0, "value": 1}, {"seed": 0, "value": 1}]
    assert report(twice, [*twice[:1], {"seed": 0, "value": 2}])[1:] == [
        "small, ours, recovered, seed 0, asr: 1 -> 2 (+1)"
    ]
    assert report(twice, twice[:1])[1:] == ["small, ours, recovered, seed 0, asr: 1 -> none"]


def test_where_the_rows_are_equal_what_is_shown_is_compared_without_measured_times() -> None:
    shown = f"{HEAD}asr,0.5,0.1,3\nr_acc,0.9,0.2,1\nseconds,7,1,1\nratio,3,1,1\n"
    other = (
        shown.replace("0.5", "0.3").replace("0.2,1", "0.2,2").replace("seconds,7", "seconds,8").replace("o,3", "o,4")
    )
    assert report(ROWS, ROWS, (shown, other)) == [
        "Numbers: 8 compared; 2 cells differ, largest differences first:",  # 3 rows, 2 means, 2 deviations, toy_other
        "r_acc, n: 1 -> 2 (+1)",
        "asr, mean: 0.5 -> 0.3 (-0.2)",
    ]
    assert (
        len(report(ROWS, [*ROWS[:2], {"seed": 2, "value": 9}], (shown, other))) == 2
    )  # the rest follows from the rows
    costs = "method,cost,spent\nours,seconds,1.5\n"
    assert report(ROWS, ROWS, (costs, costs.replace("1.5", "9"))) == ["Numbers: all 4 are equal"]


def test_many_differences_are_cut_and_counted() -> None:
    rows = [{"seed": 0, "round": k, "value": 1} for k in range(LINES + 5)]
    lines = report(rows, [{**row, "value": 2} for row in rows])
    assert lines[0] == f"Numbers: {LINES + 7} compared; {LINES + 5} cells differ, largest differences first:"
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


def test_a_run_is_compared_with_tables_alone_up_to_what_another_cpu_does() -> None:
    rows = [*("metric,mean,std,n", "asr,0.5,,1", "r_acc,0.9,,1", "seconds,3,,1"), *(f"m{k},0.5,,1" for k in range(9))]
    text = "\n".join(rows) + "\n"
    a, tables = run("a", shown=text), Path("expected")
    (tables / "toy").mkdir(parents=True)

    def against(shown: str) -> tuple[bool, list[str]]:
        (tables / "toy/thing.csv").write_text(shown)
        comparison = compare(a, tables)
        return comparison.equal, comparison.lines

    assert against(text.replace(",3,", ",4,")) == (
        True,
        ["A: a, B: expected", "Only in A: toy_other", "Numbers: all 11 are equal"],
    )
    equal, lines = against(text.replace("r_acc,0.9", "r_acc,0.8"))
    assert equal
    assert lines[-2:] == [
        "  toy_thing  r_acc, mean: 0.9 -> 0.8 (-0.1)",
        "Tables that differ by more than another CPU explains (over 15% of a table's numbers by more than 0.05, or "
        "one by more than 0.7): none",
    ]
    for shown, why in (
        (text.replace("asr,0.5", "asr,0.3").replace("r_acc,0.9", "r_acc,0.8"), "18%"),  # of 11: numbers of seeds aside
        (text.replace("r_acc,0.9", "r_acc,0.19"), "one by 0.71"),
        (text.replace("r_acc,0.9,,1\n", ""), "rows"),
    ):
        equal, lines = against(shown)
        assert not equal
        assert lines[-1].endswith(f": toy_thing ({why})")
    assert against(text.replace("r_acc,0.9", "r_acc,0.21"))[0]
    assert against(text.replace("r_acc,0.9", "other,0.9"))[0]  # one of eleven numbers, under another name
    assert against(text.replace("0.5", "0.54"))[0]
    assert against(text.replace("0.5", "20"))[0] is False
    big = against("metric,mean\n" + "".join(f"m{k},40\n" for k in range(4)))  # other columns: nothing in common
    assert not big[0]


def test_what_is_damaged_is_named_and_the_runs_are_not_equal() -> None:
    a, b = run("a"), run("b")
    (b / "artefacts/toy/thing.csv").write_text("x")
    comparison = compare(a, b)
    assert "B: toy_thing: thing.csv is not as its job wrote it." in comparison.lines
    assert "Only in A: toy_thing" in comparison.lines
    assert comparison.lines[-1] == "Not compared, for the reasons above: 1 table or figure"
    assert not comparison.equal


def test_only_the_targets_are_compared() -> None:
    a, b = run("a"), run("b", [*ROWS[:2], {"seed": 2, "value": 3}])
    assert not compare(a, b, ["toy_thing"]).equal
    assert compare(a, b, ["toy_other"]).equal
    for targets in (["toy_none"], ["toy_other", "toy_none"]):
        with pytest.raises(UserError, match=r"^a and b: have no table or figure 'toy_none'\.$"):
            compare(a, b, targets)
    (b / "artefacts/toy/thing.csv").write_text("x")
    assert compare(a, b, ["toy_other"]).equal
    assert not compare(a, b, ["toy_other", "toy_thing"]).equal


def test_what_cannot_be_compared_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    a = run("a")
    Path("empty/artefacts").mkdir(parents=True)
    for other, sentence in (
        (
            "results",
            "results: has neither a folder 'artefacts', like results/smoke, nor tables, like docs/expected/smoke.",
        ),
        ("gone", "gone: there is no such file."),
        ("empty", "a and empty: have no table or figure in common."),
    ):
        with pytest.raises(UserError) as refused:
            compare(a, Path(other))
        assert str(refused.value) == sentence
    with pytest.raises(UserError, match=r"^compare: two runs are needed, as in `make compare A=results/smoke B=theirs"):
        show.main(["compare", "a", ""])
    b = run("b", [*ROWS[:2], {"seed": 2, "value": 3}])
    for second, targets, status in (("a", (), 0), ("results/smoke", (), 1), (b, (), 1), (b, ("toy_other",), 0)):
        with pytest.raises(SystemExit) as ended:
            show.main(["compare", "a", str(second), *targets])
        assert ended.value.code == status
    assert capsys.readouterr().out.count("A: a, B: ") == 4
