"""The page of verdicts, from what runs on real data have judged."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fu.artefacts import audit, verdicts
from fu.artefacts.bounding import judge
from fu.pipeline.documents import reproduced
from fu.pipeline.documents.kept import Kept, kept
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings import papers
from fu.pipeline.stages.evidence import evidence
from tests.pipeline.kept_runs import write

HEAD = (
    "claim,scenario,verdict,over,mean,low,high,n,needed,note,"
    "published,published_value,reason,against,text,place,artefact,kind"
)
ROWS = [
    "a,,holds,2 of 3 seeds,,,,3,,,,,,,A | a.,section 1,table8,limit",
    "a,mnist-pat50,holds,,.125,.1,.15,3,,,holds,.1,,,A | a.,section 1,table8,limit",
    "a,mnist-iid,holds,,.25,.2,.3,3,,,does not hold,.1,,,A | a.,section 1,table8,limit",
    "b,,does not hold,,,,,1,,,,,,,B.,section 2,bounds,exact",
    "b,formulas,does not hold,,-1,,,1,,,,,,,B.,section 2,bounds,exact",
    "c,,undecided,,,,,3,9,,,,,,C.,our own control: one,table8,order",
    "c,mnist-iid,undecided,,0,-1,1,3,9,few,,,,,C.,our own control: one,table8,order",
    "d,,not judged,,,,,0,,,,,no number,,D.,section 4,table8,order",
    "d,cifar10,not judged,,,,,0,,,,,no number,,D.,section 4,table8,order",
]
CLAIMS = {
    "a": {"text": "A | a.", "place": "section 1"},
    "b": {"text": "B.", "place": "section 2"},
    "c": {"text": "C.", "place": "our own control: one"},
    "d": {"text": "D.", "place": "section 4"},
    "e": {"text": "E.", "place": "section 5"},
}
SCENARIOS = {"cifar10": "CIFAR-10", "mnist-iid": "MNIST, IID", "mnist-pat50": "MNIST, Pat-50"}


def run_of(folder: Path, lines: list[str], name: str = "mine", seeds: int = 3, **about: Any) -> reproduced.Run:
    labels = {key: {"label": label, "data": label.split(",")[0]} for key, label in SCENARIOS.items()}
    text = "\n".join([HEAD, *lines]) + "\n"
    write(folder, "fedosd", name, {reproduced.CSV: text}, scenarios=labels, seeds=[*range(seeds)], **about)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(papers, "read_paper", lambda _: {"claims": CLAIMS})
        return next(run for run in reproduced.runs(kept(folder)) if run.of.name == name)


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (["mnist"], "MNIST (fig2)"),  # a family
        (["mnist-pat50", "mnist-iid", "formulas"], "MNIST, Pat-50; MNIST, IID; formulas"),
        (["mnist-pat50", "mnist-iid", "formulas", "cifar10"], "CIFAR-10, MNIST (fig2)"),
    ],
)
def test_families_and_many_scenarios_are_named_by_data_and_artefacts(
    tmp_path: Path, names: list[str], where: str
) -> None:
    judged = [f"e,{name},holds,,.1,.1,.1,3,,,,,,,E.,section 5,fig2,limit" for name in names]
    assert run_of(tmp_path, [*judged, *ROWS[-2:]]).scale == f"{where}; preset reduced, 3 seeds"


def test_the_page_counts_claims_of_the_paper_and_ours_and_has_each_that_was_judged(tmp_path: Path) -> None:
    lines = reproduced.page([run_of(tmp_path, ROWS)]).splitlines()
    scale = "MNIST, Pat-50; MNIST, IID; formulas; preset reduced, 3 seeds"
    link = "[fedosd](../papers/fedosd.md)"
    assert f"| {link} | the paper's | 2 of 4 | 1 | 1 | 0 | {scale} |" in lines
    assert f"| {link} | ours | 1 of 1 | 0 | 0 | 1 | {scale} |" in lines
    assert lines[-3:] == [
        r"| A \| a. | section 1 | **holds** (over 2 of 3 seeds) | holds (2) | 0.125 (0.1 to 0.15); 0.25 (0.2 to 0.3) "
        "| 3 (63%) | holds 1, does not hold 1 |",
        "| B. | section 2 | **does not hold** | does not hold | – | – | – |",
        "| C. | our own control: one | **undecided** | undecided | 0 (-1 to 1); few | 3 (63%) | – |",
    ]


def test_the_readme_counts_the_verdicts() -> None:
    counted = re.search(
        r"Of the papers' (\d+) claims\n\[(\d+) are judged .*?: (\d+) holds?, (\d+) do(?:es)? not hold, (\d+) are und",
        (ROOT / "README.md").read_text(),
    )
    assert counted
    every = reproduced.by_paper(reproduced.runs())
    several = [reproduced.counted(of_paper, own=False) for paper, of_paper in every.items() if paper != "audit"]
    assert [*map(int, counted.groups())] == [sum(column) for column in zip(*several, strict=True)]


def test_a_claim_is_counted_once_as_judged_with_the_most_seeds(tmp_path: Path) -> None:
    few = [f"a,{where},undecided,,,,,3,9,,,,,,A | a.,section 1,table8,limit" for where in ("", "mnist-iid")]
    few += [f"b,{where},holds,,,,,3,,,,,,,B.,section 2,table8,limit" for where in ("", "mnist-iid")]
    many = [f"a,{where},does not hold,,,,,10,,,,,,,A | a.,section 1,table8,limit" for where in ("", "mnist-iid")]
    two = [run_of(tmp_path, few), run_of(tmp_path, many, "more", 10)]
    assert reproduced.counted(two, own=False) == [4, 2, 1, 1, 0]
    assert reproduced.counted(two[::-1], own=False) == [4, 2, 1, 1, 0]
    scale, page = "MNIST, IID; preset reduced, ", reproduced.page(two).splitlines()
    assert any(line.endswith(f"{scale}3 seeds / {scale}10 seeds |") for line in page)
    before, now = "undecided (mine: preset reduced, 3 seeds)", "does not hold (more: preset reduced, 10 seeds)"
    again = [line for line in page if line.startswith("| fedosd |")]
    assert again == [rf"| fedosd | A \| a. | {before} | {now} |"]


@pytest.mark.parametrize(
    ("verdict", "number"), [("holds", [1, 0, 0]), ("undecided", [0, 0, 1]), ("does not hold", [0, 1, 0])]
)
def test_of_runs_with_as_many_seeds_all_count(tmp_path: Path, verdict: str, number: list[int]) -> None:
    lines = {
        name: f"a,,{one},,,,,3,,,,,,,A | a.,section 1,table8,limit"
        for name, one in (("one", "holds"), ("two", verdict))
    }
    few = run_of(tmp_path, ["a,,does not hold,,,,,2,,,,,,,A | a.,section 1,table8,limit"], "few", 2)
    runs = [few, *(run_of(tmp_path, [line], name) for name, line in lines.items())]
    for of_paper in (runs, runs[::-1]):
        assert reproduced.counted(of_paper, own=False)[2:] == number
        assert {*reproduced.judged(of_paper)["run"]} <= ({"one", "two"} if verdict == "holds" else {"two"})
    scale, line = (
        "preset reduced, 3 seeds",
        next(one for one in reproduced.page(runs).splitlines() if one.startswith("| fedosd |")),
    )
    assert line.endswith(
        f"| does not hold (few: preset reduced, 2 seeds) | holds (one: {scale}); {verdict} (two: {scale}) |"
    )


def test_a_run_at_the_scale_of_the_paper_counts_before_one_of_more_seeds(tmp_path: Path) -> None:
    few = ["a,,holds,,,,,3,,,,,,,A | a.,section 1,table8,limit"]
    many = ["a,,does not hold,,,,,10,,,,,,,A | a.,section 1,table8,limit"]
    two = [run_of(tmp_path, many, "more", 10), run_of(tmp_path, few, preset="paper")]
    assert reproduced.judged(two)["verdict"].tolist() == ["holds"]
    assert reproduced.judged(two)["run"].tolist() == ["mine"]


def test_a_verdict_on_a_claim_that_has_changed_since_is_named_and_does_not_count(tmp_path: Path) -> None:
    run = run_of(tmp_path, [*ROWS[:-4], *(row.replace("C.,our own", "C (changed).,our own") for row in ROWS[-4:-2])])
    assert (run.changed, reproduced.counted([run], own=True)) == (["c"], [1, 0, 0, 0, 0])
    assert "Not counted, as the claim was changed or removed: `c`." in reproduced.page([run]).splitlines()


def test_a_claim_is_ours_or_the_papers_as_its_citation_now_says(tmp_path: Path) -> None:
    run = run_of(tmp_path, [row.replace("our own control: one", "section 9") for row in ROWS])
    assert reproduced.counted([run], own=True) == [1, 1, 0, 0, 1]
    assert "section 9" not in reproduced.page([run])


def test_the_page_of_results_says_what_was_edited_since(tmp_path: Path) -> None:
    folder = write(tmp_path, "fedosd", "mine", {"table8.csv": "a\n"}, remark="On a loaded machine.", edited=True)
    origin = "Commit c0ffee, with uncommitted changes. On a loaded machine."
    assert origin in reproduced.results(kept(tmp_path)).splitlines()
    (folder / "table8.csv").write_text("b\n")
    assert "**Not as it was kept**: table8.csv was edited." in reproduced.results(kept(tmp_path)).splitlines()


def test_the_page_of_results_names_a_run_of_which_only_the_verdicts_are_left(tmp_path: Path) -> None:
    write(tmp_path, "fedosd", "mine", {"table8.csv": "a\n"})
    line = "Only the verdicts were kept, not the tables behind them."
    assert line not in reproduced.results(kept(tmp_path)).splitlines()
    write(tmp_path, "fedosd", "other", {"verdicts.csv": "a\n"})
    assert reproduced.results(kept(tmp_path)).splitlines().count(line) == 1


def test_the_page_of_results_adds_up_the_known_hours(tmp_path: Path) -> None:
    for name, hours in (("one", 1.25), ("two", 2.5), ("three", None)):
        write(tmp_path, "fedosd", name, {"table8.csv": "a\n"}, hours=hours)
    spent = "In all 3.75 hours for 2 of the 3 runs; those of the others are unknown."
    assert spent in reproduced.results(kept(tmp_path)).splitlines()


def test_verdicts_that_were_edited_since_are_not_counted(tmp_path: Path) -> None:
    run_of(tmp_path, ROWS)
    (tmp_path / "fedosd/mine" / reproduced.CSV).write_text("\n".join([HEAD, *ROWS[:-2]]) + "\n")
    assert reproduced.runs(kept(tmp_path)) == []


@pytest.mark.parametrize(
    "run", [run for run in kept() if Path(run.folder, "verdicts.rows.csv.gz").exists()], ids=lambda run: run.name
)
def test_kept_verdicts_follow_from_the_kept_rows_by_the_rules_of_today(run: Kept) -> None:
    spec: Any = Plan(run.about.config).job("publish", {"paper": run.paper, "artefact": "verdicts"}).spec
    rows = {
        name: pd.read_csv(run.folder / f"{name}.rows.csv.gz") for name in {c.artefact for c in spec.claims.values()}
    }
    found, before = verdicts.make(evidence(spec, rows), spec).frame, pd.read_csv(run.folder / reproduced.CSV)
    before = before[before["claim"].isin(spec.claims)]  # others are no longer stated
    about, names = ["text", "place", "note", "reason"], ["claim", "scenario"]  # without words, which may be put better
    one, other = (
        of.replace("", None).infer_objects().drop(columns=about).sort_values(names, ignore_index=True)
        for of in (found, before)
    )
    pd.testing.assert_frame_equal(one, other, check_dtype=False, rtol=1e-5)


AUDITED = [
    (run, path.name.split(".")[0])
    for run in kept()
    for path in sorted(run.folder.glob("*.rows.csv.gz"))
    if "run" in pd.read_csv(path, nrows=0) and "bound" in pd.read_csv(path.with_name(path.name.split(".")[0] + ".csv"))
]


@pytest.mark.parametrize(("run", "name"), AUDITED, ids=lambda one: getattr(one, "name", one))
def test_kept_audits_follow_from_the_kept_rows_by_the_rules_of_today(run: Kept, name: str) -> None:
    spec: Any = Plan(run.about.config).job("publish", {"paper": run.paper, "artefact": name}).spec
    table = pd.read_csv(run.folder / f"{name}.csv")
    rows = pd.read_csv(run.folder / f"{name}.rows.csv.gz")
    frame = pd.concat([rows, table[["scenario", "method", "metric", "value"]]], ignore_index=True)
    frame = frame.drop_duplicates(["scenario", "method", "metric", "run"])
    scenes = {scenario.name: judge(frame, spec, scenario) for scenario in spec.scenarios}
    names = ["scenario", "method", "metric"]
    written = StringIO(audit.tidy(spec, scenes).to_csv(index=False))
    found = pd.read_csv(written).sort_values(names, ignore_index=True)
    before = table.sort_values(names, ignore_index=True)
    pd.testing.assert_frame_equal(found, before, check_dtype=False, rtol=1e-5)
