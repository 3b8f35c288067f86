"""Two runs are compared whether they are folders or bundles, and what made them is told beside what differs."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from fu.errors import UserError
from fu.pipeline import show
from fu.pipeline.compare.runs import LINES, compare
from tests.artefacts.factories import make_entry
from tests.pipeline.compare.runs import Row, run
from tests.pipeline.page.folder import ROOT, certify, copied, put

ROWS: list[Row] = [{"seed": seed, "value": seed} for seed in range(3)]
ENTRY = make_entry("table")


def changed(value: float) -> list[Row]:
    return [*ROWS[:2], {"seed": 2, "value": value}]


def test_equal_runs_are_equal() -> None:
    a, b = run(Path("a"), ENTRY, ROWS), run(Path("b"), ENTRY, ROWS)
    found = compare(a, b)
    assert found.equal
    assert found.lines == [
        "A: a, B: b",
        "Same in both: commit, preset, devices, threads, version of python, version of torch",
        "Tables and figures in both: 2; 18 of their 18 files are identical",
        "Intermediate files with identical digests: 1 of 1 of train, 1 of 1 of evaluate",
        "Numbers: all 5 are equal",  # three rows, and one number in each table
    ]


def test_what_made_runs_and_what_differs_between_them_is_told() -> None:
    a = run(Path("a"), ENTRY, ROWS)
    shutil.rmtree("results")
    about: dict[str, Any] = {
        "commit": "fedcba" * 6,
        "clean": False,
        "versions": {"python": "3.12.1", "torch": "2.14.0"},
    }
    copied(put(ENTRY, **about, devices=["another"]), "only")
    training = ROOT / "toy/small/seed0/original.trained"
    training.with_name("original.trained.csv").write_text("original.trainee\n")  # of the same size
    certify(training, "train")
    b = run(Path("b"), ENTRY, changed(3), **about)
    found = compare(a, b)
    assert not found.equal
    assert found.lines[1:3] == ["Only in A: toy_other", "Only in B: toy_only"]
    for line in (
        "commit: abcdefabcdef in A, fedcbafedcba, edited in B",
        "version of torch: 2.13.0 in A, 2.14.0 in B",
        "devices: toy in A, another in B",
        "Same in both: preset, threads, version of python",
        "Tables and figures in both: 1; 7 of their 9 files are identical",
        "  toy_thing: json, rows.csv differ",
        "Intermediate files with identical digests: 0 of 1 of train, 1 of 1 of evaluate",
        "  toy_thing  small, ours, recovered, asr, seed 2: 2 -> 3 (+1, 0.77 standard deviations over seeds)",
    ):  # variances over seeds: 1 and 7/3
        assert line in found.lines


def test_many_differences_are_cut_and_counted() -> None:
    rows = [{"seed": 0, "round": k, "value": 1} for k in range(LINES + 5)]
    a = run(Path("a"), ENTRY, rows)
    b = run(Path("b"), ENTRY, [{**row, "value": 2} for row in rows])
    lines = compare(a, b).lines
    assert lines[-1] == "  and 5 more"
    assert sum("1 -> 2 (+1)" in line for line in lines) == LINES
    assert f"Numbers: {LINES + 7} compared; {LINES + 5} cells differ, largest differences first:" in lines


def test_the_worst_difference_is_printed_first() -> None:
    a = run(Path("a"), ENTRY, [{"seed": 0, "round": k, "value": 1} for k in range(3)])
    b = run(Path("b"), ENTRY, [{"seed": 0, "round": k, "value": value} for k, value in enumerate((2, 4, 3))])
    assert [line.partition("-> ")[2][0] for line in compare(a, b).lines[-3:]] == ["4", "3", "2"]


def test_a_run_is_compared_with_tables_alone_up_to_what_another_cpu_does() -> None:
    rows = [*("metric,mean,std,n", "asr,0.5,,1", "r_acc,0.9,,1", "seconds,3,,1"), *(f"m{k},0.5,,1" for k in range(9))]
    text = "\n".join(rows) + "\n"
    a, tables = run(Path("a"), ENTRY, ROWS, text), Path("expected")
    (tables / "toy").mkdir(parents=True)

    def told(shown: str) -> tuple[bool, list[str]]:
        (tables / "toy/thing.csv").write_text(shown)
        found = compare(a, tables)
        return found.equal, found.lines

    first = [
        "A: a, B: expected",
        "Only in A: toy_other",
        "Measured times (expected to differ): {} of 2 differ",
    ]
    assert told(text.replace(",3,", ",4,")) == (True, [*first[:2], first[2].format(1), "Numbers: all 11 are equal"])
    equal, lines = told(text.replace("r_acc,0.9", "r_acc,0.8"))
    assert equal
    assert lines[-2:] == [
        "  toy_thing  r_acc, mean: 0.9 -> 0.8 (-0.1)",
        "Tables that differ by more than another CPU explains (over 15% of a table's numbers by more than 0.05, or "
        "one by more than 0.7): none",
    ]
    equal, lines = told(text.replace("asr,0.5", "asr,0.3").replace("r_acc,0.9", "r_acc,0.8"))
    assert not equal
    assert lines[-1].endswith(": toy_thing (18%)")  # of 11: how many seeds there are counts for nothing
    equal, lines = told(text.replace("r_acc,0.9", "r_acc,0.19"))
    assert not equal
    assert lines[-1].endswith(": toy_thing (one by 0.71)")
    assert told(text.replace("r_acc,0.9", "r_acc,0.21"))[0]
    equal, lines = told(text.replace("r_acc,0.9,,1\n", ""))
    assert not equal
    assert lines[-1].endswith(": toy_thing (rows)")


def test_what_is_damaged_is_named_and_the_runs_are_not_equal() -> None:
    a, b = run(Path("a"), ENTRY, ROWS), run(Path("b"), ENTRY, ROWS)
    (b / "artefacts/toy/thing.csv").write_text("x")
    found = compare(a, b)
    assert "B: toy_thing: thing.csv is not as its job wrote it." in found.lines
    assert "Only in A: toy_thing" in found.lines
    assert found.lines[-1] == "Not compared, for the reasons above: 1 table or figure"
    assert not found.equal


def test_only_the_targets_are_compared() -> None:
    a, b = run(Path("a"), ENTRY, ROWS), run(Path("b"), ENTRY, changed(3))
    assert not compare(a, b, ["toy_thing"]).equal
    assert compare(a, b, ["toy_other"]).equal
    for targets in (["toy_none"], ["toy_other", "toy_none"]):
        with pytest.raises(UserError, match=r"^a and b: have no table or figure 'toy_none'\.$"):
            compare(a, b, targets)
    (b / "artefacts/toy/thing.csv").write_text("x")
    assert compare(a, b, ["toy_other"]).equal
    assert not compare(a, b, ["toy_other", "toy_thing"]).equal


def test_what_cannot_be_compared_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    a = run(Path("a"), ENTRY, ROWS)
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
    b = run(Path("b"), ENTRY, changed(3))
    for second, targets, status in (("a", (), 0), ("results/smoke", (), 1), (b, (), 1), (b, ("toy_other",), 0)):
        with pytest.raises(SystemExit) as ended:
            show.main(["compare", "a", str(second), *targets])
        assert ended.value.code == status
    assert capsys.readouterr().out.count("A: a, B: ") == 4
