"""The page of verdicts, from what runs on real data have judged."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from fu.pipeline import reproduced
from fu.pipeline.digest import ROOT
from fu.pipeline.settings.papers import read_paper

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
    "c,,undecided,,,,,3,9,,,,,,C.,section 3,table8,order",
    "c,mnist-iid,undecided,,0,-1,1,3,9,few,,,,,C.,section 3,table8,order",
    "d,,not judged,,,,,0,,,,,no number,,D.,section 4,table8,order",
    "d,cifar10,not judged,,,,,0,,,,,no number,,D.,section 4,table8,order",
]
SCENARIOS = {"cifar10": "CIFAR-10", "mnist-iid": "MNIST, IID", "mnist-pat50": "MNIST, Pat-50"}


@pytest.fixture
def found(tmp_path: Path) -> list[reproduced.Run]:
    return runs_of(tmp_path, ROWS)


def runs_of(tmp_path: Path, lines: list[str]) -> list[reproduced.Run]:
    (tmp_path / "fedosd-mine.csv").write_text("\n".join([HEAD, *lines]) + "\n")
    scenarios = [{"name": name, "label": label, "data": label.split(",")[0]} for name, label in SCENARIOS.items()]
    about = {"commit": "abcdef0123", "preset": "reduced", "spec": {"scenarios": scenarios, "seeds": [0, 1, 2]}}
    (tmp_path / "fedosd-mine.json").write_text(json.dumps(about))
    return reproduced.runs(tmp_path)


OWN = sum(reproduced.ours(claim["place"]) for claim in read_paper("fedosd")["claims"].values())
CLAIMS = len(read_paper("fedosd")["claims"]) - OWN
SCALE = "MNIST, Pat-50; MNIST, IID; formulas; preset reduced, 3 seeds"


def test_a_run_is_a_row_that_counts_what_it_judged(found: list[reproduced.Run]) -> None:
    table = reproduced.table(found)
    assert table.splitlines()[2:] == [f"| [fedosd](../papers/fedosd.md) | 3 of {CLAIMS} | 1 | 1 | 1 | {SCALE} |"]


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (["mnist"], "MNIST (fig2)"),  # a family
        (["mnist-pat50", "mnist-iid", "formulas"], "MNIST, Pat-50; MNIST, IID; formulas"),
        (["mnist-pat50", "mnist-iid", "formulas", "mnist"], "MNIST (fig2)"),
        (["mnist-pat50", "mnist-iid", "formulas", "cifar10"], "CIFAR-10, MNIST (fig2)"),
    ],
)
def test_families_and_many_scenarios_are_named_by_data_and_artefacts(
    tmp_path: Path, names: list[str], where: str
) -> None:
    judged = [f"e,{name},holds,,.1,.1,.1,3,,,,,,,E.,section 5,fig2,limit" for name in names]
    (run,) = runs_of(tmp_path, [*judged, "d,cifar10,not judged,,,,,0,,,,,no number,,D.,section 4,table8,order"])
    assert run.scale == f"{where}; preset reduced, 3 seeds"


def test_the_page_has_each_claim_that_was_judged(found: list[reproduced.Run]) -> None:
    text = reproduced.page(found)
    assert reproduced.table(found) in text
    assert f"\n## fedosd: {SCALE}\n\nCommit abcdef0.\n" in text
    assert text.splitlines()[-3:] == [
        r"| A \| a. | section 1 | **holds** (over 2 of 3 seeds) | holds (2) | 0.125 (0.1 to 0.15); 0.25 (0.2 to 0.3) "
        "| 3 (63%) | holds 1, does not hold 1 |",
        "| B. | section 2 | **does not hold** | does not hold | – | – | – |",
        "| C. | section 3 | **undecided** | undecided | 0 (-1 to 1); few | 3 (63%) | – |",
    ]


def test_controls_and_criteria_of_our_own_stand_apart(tmp_path: Path) -> None:
    own = [
        "e,,holds,,,,,3,,,,,,,E.,our own control: one,table8,order",
        "e,mnist-iid,holds,,1,0,2,3,,,,,,,E.,our own control: one,table8,order",
        "f,,undecided,,,,,3,,,,,,,F.,our criterion: its source has no such sentence,table8,order",
        "f,mnist-iid,undecided,,1,0,2,3,,,,,,,F.,our criterion: its source has no such sentence,table8,order",
    ]
    several = runs_of(tmp_path, [*ROWS, *own])
    paper, _, beyond = reproduced.table(several).partition(reproduced.BEYOND)
    assert paper.splitlines()[2:] == [f"| [fedosd](../papers/fedosd.md) | 3 of {CLAIMS} | 1 | 1 | 1 | {SCALE} |", ""]
    assert beyond.splitlines()[-1] == f"| [fedosd](../papers/fedosd.md) | 2 of {OWN} | 1 | 0 | 1 | {SCALE} |"
    (top, first, second) = reproduced.page(several).split(reproduced.BEYOND)
    assert paper in f"{top}{reproduced.BEYOND}"
    assert [line[:5] for line in first.splitlines()[-4:]] == ["| A \\", "| B. ", "| C. ", ""]
    assert [line[:4] for line in second.splitlines()[-2:]] == ["| E.", "| F."]
    (only,) = runs_of(tmp_path, own)
    assert "| claims judged |" not in reproduced.page([only])
    assert reproduced.table([only]).splitlines()[-1].startswith("| [fedosd]")


def test_the_readme_counts_the_verdicts() -> None:
    counted = re.search(
        r"Of the papers' (\d+) claims\n\[(\d+) are judged .*?: (\d+) holds?, (\d+) do(?:es)? not hold, (\d+) are und",
        (ROOT / "README.md").read_text(),
    )
    assert counted
    found = [run for run in reproduced.runs() if run.paper != "audit"]  # which is ours
    claims = sum(not reproduced.ours(place) for run in found for place in run.claims)
    several = Counter(
        row for run in found for row in run.overall[~run.overall["place"].map(reproduced.ours)]["verdict"]
    )
    kinds = (several[kind] for kind in ("holds", "does not hold", "undecided"))
    assert [*map(int, counted.groups())] == [claims, several.total(), *kinds]
