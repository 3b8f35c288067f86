"""Numbers in reports come from kept runs: by hand, and no template has one of its own."""

import re
from pathlib import Path

import pytest

from fu.errors import UserError
from fu.pipeline.documents import reports
from fu.pipeline.documents.kept import kept
from fu.pipeline.documents.reports import Numbers
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings import papers
from tests.pipeline.kept_runs import write

HEAD = (
    "claim,scenario,verdict,over,mean,low,high,n,needed,needed_90,note,"
    "published,published_value,text,place,artefact,kind"
)
VERDICTS = [
    HEAD,
    "a,,undecided,2 of 3 scenarios,,,,7,9,inf,,holds,,A | a.,section 1,t,limit",
    "a,one,holds,,0.12345,-0.5,1.25,7,,,,holds,12.75,A | a.,section 1,t,limit",
    "a,two,undecided,,0.00004,-14,inf,7,,,,,,A | a.,section 1,t,limit",
    "b,,holds,,,,,7,,,,,,B.,section 2,t,limit",
    *(f"b,s{k},holds,,{k},{k - 1},{k + 1},7,,,,,,B.,section 2,t,limit" for k in range(5)),
    "c,,does not hold,,,,,1,,,,,,C.,section 3,t,exact",  # as it was cited then
    "c,formulas,does not hold,,-1,-1,-1,1,,,,,,C.,section 3,t,exact",
    "d,,not judged,,,,,0,,,,,,D.,section 4,t,limit",
]
TABLE = "method,x,mean\nours,1,0.5\nours,2,0.25\ntheirs,1,1000\n"


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Numbers:
    """Of one run of FedOSD, whose claims have these texts."""
    stated = {"a": "A | a.", "b": "B.", "c": "C.", "d": "D."}
    claims = {name: {"text": text, "place": "our own control" if name == "c" else ""} for name, text in stated.items()}
    monkeypatch.setattr(papers, "read_paper", lambda _: {"claims": claims})
    texts = {"verdicts.csv": "\n".join([*VERDICTS, ""]), "table.csv": TABLE}
    write(tmp_path, "fedosd", "mine", texts, hours=1.25, seeds=[0, 1, 2])
    return Numbers({one.name: one for one in kept(tmp_path)})


def test_cells_and_claims_are_found_by_their_labels(numbers: Numbers) -> None:
    assert numbers.number("mine/table.csv", "mean", method="ours", x=2) == ".25"
    assert numbers.cell("mine/table.csv", "x", method="theirs") == "1"
    assert numbers.claim("mine", "a", "one") == ".123 (-.5 to 1.25)"
    assert numbers.printed("mine", "a", "one") == "12.8"
    assert (numbers.hours("mine"), numbers.seeds("mine")) == ("1.2", "3 seeds")
    assert numbers.needed("mine", "a") == "9 to more than 1,000 seeds"
    with pytest.raises(UserError, match="mine: how many seeds would decide 'b' is not known, or it is decided"):
        numbers.needed("mine", "b")
    assert numbers.counts() == "2 of the paper's 3 claims have been judged: 1 holds, 0 do not, 1 is undecided."


def test_the_table_of_verdicts_has_every_judged_claim(numbers: Numbers) -> None:
    assert numbers.verdicts("mine").splitlines()[2:] == [
        r"| A \| a. | **undecided** (holds 1, undecided 1; over 2 of 3 scenarios) "
        "| .123 (-.5 to 1.25); .000040 (-14 to inf) | 12.8 |",
        "| B. | **holds** | 0 to 4 in 5 scenarios | – |",
        "| C. (ours) | **does not hold** | – | – |",
    ]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ('cell("mine/table.csv", "mean", method="ours")', "mine/table.csv has 2 rows with {'method': 'ours'}"),
        ('cell("mine/table.csv", "mean", method="other")', "mine/table.csv has 0 rows"),
        ('cell("mine/table.csv", "men", method="ours", x=1)', "no column 'men'; did you mean 'mean'?"),
        ('cell("mine/tabel.csv", "mean")', "keeps no 'tabel.csv'; did you mean 'table.csv'?"),
        ('claim("mind", "a", "one")', "there is no kept run 'mind'; did you mean 'mine'?"),
        ('claims("mine")', "'claims' is undefined"),
        ('hours("old")', "old: its hours are not known"),
        ('seeds("edited")', "table.csv was edited; a report shows what was kept"),
    ],
)
def test_what_no_run_keeps_is_refused_in_one_sentence(
    numbers: Numbers, tmp_path: Path, asked: str, sentence: str
) -> None:
    write(tmp_path, "fedosd", "old", {}, hours=None)
    (write(tmp_path, "fedosd", "edited", {"table.csv": TABLE}) / "table.csv").write_text("x\n")
    (tmp_path / "fedosd.md.in").write_text("{{ seeds('mine') }} are {{ " + asked + " }}\n")
    with pytest.raises(UserError, match=re.escape(sentence)) as error:
        reports.reports(kept(tmp_path), tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'fedosd.md.in'}: ")
    assert numbers.seeds("mine") == "3 seeds"


def test_a_report_is_its_template_with_numbers_of_that_paper_alone(numbers: Numbers, tmp_path: Path) -> None:
    write(tmp_path, "fats", "mine", {}, seeds=[0])
    (tmp_path / "fedosd.md.in").write_text("{{ seeds('mine') }}\n")
    (tmp_path / "fats.md.in").write_text("{{ seeds('mine') }}\n")
    assert reports.reports(kept(tmp_path), tmp_path) == {
        "reports/fats.md": "1 seed\n",
        "reports/fedosd.md": "3 seeds\n",
    }
    assert numbers.runs


@pytest.mark.parametrize("paper", ["fats", "fedosd", "safari", "tradeoffs"])
def test_no_template_has_a_number_of_its_own(paper: str) -> None:
    """What is not filled in is a setting or a margin, which the paper's YAML states; sections; or a count in words."""
    text = (reports.FOLDER / f"{paper}{reports.TEMPLATE}").read_text()
    text = re.sub(r"{{.*?}}|\]\([^)]*\)|`[^`]*`", "", text, flags=re.S)
    stated = (ROOT / f"workflow/papers/{paper}.yaml").read_text()
    text = re.sub(r"\b([Ss]ections?|[Aa]ppendix) [A-Z]?\.?\d[\d.]*|\b[A-Z]\.\d", "", text)
    assert re.findall(r"\d[\d,]* seeds?", text) == []
    numbers = re.findall(r"(?<![\w.])\d*\.\d+%?|\d+%", text)
    known = set(re.findall(r"\d*\.\d+", stated.replace("0.", ".")))
    assert {*numbers} - known == set()
