"""The page shows what is made and right, names what is not, runs nothing that people wrote, and repeats to the byte."""

import json
import os
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from fu.artefacts.result import Result
from fu.pipeline.digest import ROOT as REPOSITORY
from fu.pipeline.page import write as page
from fu.pipeline.page.write import Planned, Used, render
from fu.pipeline.plan import Plan
from fu.pipeline.settings.papers import read_yaml
from tests.artefacts.factories import made, make_entry
from tests.artefacts.hostile import HOSTILE, hostile
from tests.pipeline.page.folder import ROOT, certify, copied, judged, put

TOY = Planned("Somebody 2024 (Toy).", {"thing": "A thing", "other": "Another"})
INDEX = ROOT / "index.html"


class Outline(HTMLParser):
    """The elements of a page, and the text of each card."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def shown(**papers: Planned) -> str:
    return render(ROOT, "smoke", "Small.", papers)


def test_a_card_says_what_it_is_how_it_was_made_and_where_its_files_are() -> None:
    put(make_entry("table"))
    text = shown(toy=TOY)
    [card] = re.findall(r"<article.*?</article>", text, re.DOTALL)
    for said in (
        '<article id="toy/thing" aria-labelledby="toy/thing/head" data-kind="table"',
        'href="#toy/thing">A thing</a></h3>',
        "<code>make reproduce PRESET=smoke TARGETS=toy_thing</code>",
        "<dd><code>abcdefabcdef</code></dd>",
        "code <code>c0dec0dec0dec0de</code>, job <code>thing-key</code>",
        "<dd>python 3.12.1, torch 2.13.0</dd>",
        f"<p>{make_entry('table').setting} Paper: ",
        "<dd>0, 1</dd>",
        "<dd>2 h 0 min on toy, threads: 1</dd>",
        '<a href="artefacts/toy/thing.made.json">certificate</a>',
    ):
        assert said in card
    put(make_entry("table"), clean=False)
    assert "<dd><code>abcdefabcdef with edits</code></dd>" in shown(toy=TOY)
    for suffix in ("csv", "rows.csv", "md", "html", "tex", "pdf", "svg", "png", "json"):
        [path] = re.findall(rf'<a href="([^"]*)">{suffix}</a>', card)
        assert (ROOT / path).is_file()
    assert card.count("<table>") == 1
    assert card.count("<img ") == 0  # the same as a picture is a file beside the page
    assert "<h2>" not in card
    assert "<h4>Small</h4>" in card


def test_papers_stand_in_their_order_with_what_is_not_yet_made() -> None:
    stem = put(make_entry("table"))
    for paper, name in (("later", "b"), ("toy", "zeta"), ("toy", "other")):
        copied(stem, name, paper)
    text = shown(empty=Planned("Nobody 2020.", {"one": "One <1>"}), toy=TOY)
    assert re.findall(r'<article id="(.*?)"', text) == ["toy/thing", "toy/other", "toy/zeta", "later/b"]
    assert re.findall(r"<h2 [^>]*>(.*?)</h2>", text) == ["empty", "Toy", "later"]
    assert "<li><code>empty_one</code> One &lt;1&gt;</li>" in text
    assert text.count("Not yet made: 1") == 1
    assert ">4 of 5 tables and figures · seeds 0, 1 · python 3.12.1, torch 2.13.0 · 2 h 0 min of computation" in text


def test_claims_stand_above_with_the_verdict_in_all_and_lead_to_what_they_rest_on() -> None:
    judged(stem := put(make_entry("table")))
    copied(stem, "thing", "none")
    text = shown(toy=replace(TOY, claims=("first", "second", "third", "fourth", "fifth")))
    assert "Claims (holds: 1, does not hold: 1, undecided: 2, not judged: 1)" in text
    assert text.count("No claims judged so far.") == 1
    first, _, rest = text.partition("<nav")
    assert re.findall("<li data-plugins.*</b> (.*) <a", first) == ["A &lt; B", "Nothing comes back", "C", "D"]
    folded = "<summary>Not judged: 1 claim, because one seed.</summary>"
    assert folded in first
    assert rest.index(">D</th>") < rest.index(folded) < rest.index(">third</th>")
    rows = re.findall(r"<tr data-plugins=\"\">\n(<th scope.*?)</tr>", text, re.DOTALL)
    rows.insert(2, rows.pop())  # what is not judged is folded below the others
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in rows]
    assert 'A &lt; B <span class="faint">(section 4)</span>' in rows[0]
    assert rows[2].startswith('<th scope="row">third</th>')
    later = shown(toy=replace(TOY, claims=("fifth", "second", "first")))
    assert re.findall("<li data-plugins.*</b> (.*) <a", later) == ["D", "Nothing comes back", "A &lt; B", "C"]
    assert [row[0] for row in cells] == [
        '<span class="verdict holds">✓ holds</span>',
        '<span class="verdict does-not-hold">✗ does not hold</span>',
        '<span class="verdict not-judged">– not judged</span><br><span class="faint">one seed</span>',
        '<span class="verdict undecided">? undecided</span>',
        '<span class="verdict undecided">? undecided</span>',
    ]
    thing = '<a href="#toy/thing">thing</a>'
    assert [row[1:] for row in cells] == [
        ["0.25 (0.125 to 0.375)", "5", "–", "does not hold", thing],
        ["does not hold: 1, undecided: 1", "5", "–", "–", "other"],  # which is not made
        ["–", "0", "–", "–", thing],
        ["1", "5", "12", "–", thing],
        ["–", "5", "too many", "–", thing],
    ]


def test_a_figure_has_its_numbers_first_those_that_the_paper_prints_and_how_far_they_are() -> None:
    drawn = made(make_entry("curves"))
    frame = pd.DataFrame(
        {
            "metric": ["asr"] * 120 + ["r_acc"] * 3,
            "mean": [0.5] * 123,
            "published": [None] * 120 + [0.4, 0.3, 0.75],
            "difference": [None] * 120 + [0.1, 0.2, -0.25],
        }
    )
    put(make_entry("curves"), Result(frame, drawn.body, drawn.figure))
    text = shown()
    assert "Numbers (the first 100 of 123 rows; all of them are in the csv)" in text
    differ, numbers = re.findall(r"<table>.*?</table>", text, re.DOTALL)
    assert re.findall(r"<t[hd]>(.*?)</t", differ.partition("<tbody>")[2]) == ["R-Acc", "3", "0.01667", "0.2", "0.25"]
    rows = re.findall(r"<tr>(.*?)</tr>", numbers.partition("<tbody>")[2], re.DOTALL)
    assert len(rows) == 100
    assert [re.findall(r"<t[hd]>(.*?)</t", row) for row in rows[2:4]] == [
        ["r_acc", "0.5", "0.75", "-0.25"],
        ["asr", "0.5", "–", "–"],
    ]


@pytest.mark.parametrize("kind", ["table", "curves", "matrix"])
def test_whatever_a_person_writes_is_text(kind: str) -> None:
    entry = hostile(kind)
    result = made(entry)
    first = result.frame.columns[0]
    frame = result.frame.assign(**{first: HOSTILE, HOSTILE: HOSTILE})
    figure = Result(frame, result.body, result.figure, result.panels, result.notes, result.words, beside=result.beside)
    stem = copied(put(entry, figure), "verdicts")
    texts = ("claim", "verdict", "published", "reason", "text", "place", "artefact")
    claim = {
        **dict.fromkeys(texts, HOSTILE),
        **dict.fromkeys(("mean", "low", "high", "n", "needed", "published_value", "against", "kind")),
    }
    pd.DataFrame([{"scenario": "", **claim}]).to_csv(stem.with_suffix(".csv"), index=False)
    certify(stem, "publish")
    used = {entry.methods[0].name: Used(HOSTILE, "methods/fedosd", HOSTILE)}
    text = shown(toy=Planned(HOSTILE, {"new": HOSTILE, "thing": HOSTILE}, highlights=("thing",), methods=used))
    outline = Outline(text)
    methods, script = outline.scripts
    assert script == (Path(page.__file__).with_name("page.js")).read_text()
    assert json.loads(methods)["methods/fedosd"]["sources"] == [HOSTILE]
    assert all(str(image["src"]).startswith("data:image/png;base64,") for image in outline.of("img"))
    assert not any(name.startswith("on") for _, attributes in outline.elements for name in attributes)
    assert text.count("<script") == text.count("</script>") == 2
    assert "alert(1)" in text
    assert "{{ 7 * 7 }}" in text


def test_nothing_is_loaded_and_no_other_script_is_run() -> None:
    put(make_entry("matrix"))
    outline = Outline(shown(toy=TOY))
    [policy] = [meta["content"] for meta in outline.of("meta") if meta.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    links = {
        str(attributes[name]) for _, attributes in outline.elements for name in ("href", "src") if name in attributes
    }
    assert all(link.startswith(("#", "artefacts/", "data:")) for link in links)
    assert not outline.of("link")
    names = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    assert {link[1:] for link in links if link.startswith("#")} <= {*names}
    assert all(image["alt"] for image in outline.of("img"))


def test_the_first_screen_says_what_stands_in_and_shows_the_pictures_that_papers_name() -> None:
    entry = make_entry("curves")
    scenarios = tuple(one.model_copy(update={"data": "digits", "replaces": "MNIST"}) for one in entry.scenarios)
    put(entry.model_copy(update={"scenarios": scenarios, "published": "x"}))
    about = replace(TOY, links={"Paper": "https://a.b/c?d&e"}, highlights=("other", "thing"))
    first, _, rest = shown(toy=about).partition("<nav")
    assert "<b>Stand-in data</b>: digits in place of MNIST." in first
    assert re.findall('<a href="(#[^"]*)"><img alt="" src="data:image/png[^>]*>(.*)</a>', first) == [
        ("#toy/thing", "Toy: A thing")  # the other is not made
    ]
    assert '<a href="https://a.b/c?d&amp;e">Paper</a>' in rest
    assert "The paper's numbers are not shown, as other data stand in" in rest
    [picture] = re.findall(r'<a href="artefacts/toy/thing.svg"><img [^>]*src="data:image/png;base64,(.*?)">', rest)
    with Image.open(BytesIO(b64decode(picture))) as shrunk, Image.open(ROOT / "artefacts/toy/thing.png") as whole:
        assert shrunk.size == whole.size
        assert len(picture) < (ROOT / "artefacts/toy/thing.png").stat().st_size


def test_a_method_is_known_by_its_plug_in_with_its_names_sources_and_costs() -> None:
    entry = make_entry("table")
    put(
        entry,
        costs={
            f"results/smoke/toy/small/seed{seed}/ours+lr0.1.unlearned.cost.json": {"seconds": 30.0} for seed in (0, 1)
        },
    )
    used = {"ours": Used("Ours", "methods/fedosd", "section 3"), "absent": Used("Absent", "methods/sfu", "section 4")}
    text = shown(toy=replace(TOY, methods=used))
    assert '<option value="methods/fedosd">Ours</option>' in text
    assert re.findall('<article [^>]* data-plugins="(.*?)"', text) == ["methods/fedosd"]
    [methods] = re.findall(r'<script type="application/json" id="methods">(.*)</script>', text)
    about = json.loads(methods)["methods/fedosd"]
    assert about.pop("about").startswith("FedOSD")
    assert json.loads(methods).keys() == {"methods/fedosd"}  # the other is in no table
    assert about == {
        "label": "Ours",
        "names": {"toy": ["ours", "Ours"]},
        "sources": ["section 3"],
        "cost": "60 s in 2 jobs",
    }


def test_equal_artefacts_give_equal_bytes_and_the_page_is_left_alone() -> None:
    stem = put(make_entry("table"))
    page.write(INDEX, "smoke", "Small.", {"toy": TOY})
    before = INDEX.read_bytes(), INDEX.stat().st_mtime_ns, INDEX.stat().st_ino
    for file in ROOT.rglob("*.*"):
        if file != INDEX:
            os.utime(file, (1, 1))
    page.write(INDEX, "smoke", "Small.", {"toy": TOY})
    assert (INDEX.read_bytes(), INDEX.stat().st_mtime_ns, INDEX.stat().st_ino) == before
    copied(stem, "other")
    page.write(INDEX, "smoke", "Small.", {"toy": TOY})
    assert b'<article id="toy/other"' in INDEX.read_bytes()
    assert [file.name for file in ROOT.iterdir() if file.is_file()] == ["index.html"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda stem: stem.with_name("thing.made.json").unlink(), "thing.made.json is missing or damaged."),
        (lambda stem: stem.with_name("thing.made.json").write_text("{}"), "thing.made.json is missing or damaged."),
        (lambda stem: stem.with_name("thing.csv").write_text("x"), "thing.csv is not as its job wrote it."),
        (lambda stem: stem.with_name("thing.pdf").unlink(), "thing.pdf is missing."),
    ],
)
def test_what_is_damaged_is_left_out_and_named(damage: object, sentence: str) -> None:
    copied(stem := put(make_entry("table")), "other")
    damage(stem)  # type: ignore[operator]
    text = shown(toy=TOY)
    assert f"<li>toy_thing: {sentence}</li>" in text
    assert re.findall(r'<article id="(.*?)"', text) == ["toy/other"]
    assert ">1 of 2 tables and figures" in text


def test_what_an_earlier_version_made_is_left_out_and_files_in_the_making_are_not_named() -> None:
    stem = put(make_entry("table"))
    stem.with_name("thing.html").write_text("<h1>A thing</h1>")
    certify(stem, "publish")
    stem.with_name(".part-1-new.csv").touch()
    stem.with_name(".new.made.json.lock").touch()
    text = shown()
    assert re.findall("<li>(toy_.*)</li>", text) == ["toy_thing: thing.html was made by an earlier version of fu."]


def test_sixty_artefacts_are_one_page_of_a_sensible_size() -> None:
    stem = put(make_entry("curves"))
    for k in range(59):
        copied(stem, f"copy{k}")
    page.write(INDEX, "smoke", "Small.", {"toy": TOY})
    assert INDEX.read_text().count("<article") == 60
    assert INDEX.stat().st_size < 5e6


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_page_that_cannot_be_made_is_one_sentence_and_the_old_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan({**read_yaml(REPOSITORY / "config.yaml"), "papers": ["safari"]})
    stem = put(make_entry("table"))
    assert page.update(plan) == ""
    before = INDEX.read_bytes()
    assert b">1 of 9 tables and figures" in before
    stem = copied(stem, "other")
    said = "error: results/smoke/index.html: the page was not made ({}); all tables and figures are there."
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert page.update(plan) == said.format("No space left on device")
    assert INDEX.read_bytes() == before
    stem.with_name("other.json").write_text("{}")
    certify(stem, "publish")
    assert page.update(plan).startswith(said.partition("{")[0] + "KeyError: ")
    assert sorted(file.name for file in ROOT.iterdir() if file.is_file()) == ["index.html"]


def test_the_page_is_no_part_of_a_job() -> None:
    """An edit of it makes no artefact again."""
    from fu.pipeline import digest
    from fu.pipeline.paths import OUTPUTS

    modules = tuple(f"fu.pipeline.stages.{stage}" for stage in OUTPUTS)
    assert not [name for name in digest.disk().closure(modules) if name.startswith("fu.pipeline.page")]
