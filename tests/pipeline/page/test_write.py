"""The page shows what is made and right, names what is not, runs nothing that people wrote, and repeats to the byte."""

import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fu.artefacts.result import Result
from fu.pipeline.page import write as page
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import digest
from fu.pipeline.settings.papers import read_yaml
from fu.pipeline.settings.records import Paper
from tests.artefacts.factories import made, make_entry
from tests.artefacts.hostile import HOSTILE, hostile
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied, judged, paper, put

TOY = paper("Somebody 2024 (Toy).", "thing", "other")
INDEX = ROOT / "index.html"
ARTICLE = r'<article id="(.*?)"'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder of its own."""
    monkeypatch.chdir(tmp_path)


class Outline(HTMLParser):
    """The elements of a page, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.lasttag == "script" and data.strip():
            self.scripts.append(data)


def shown(**papers: Paper) -> str:
    return page.render(ROOT, "smoke", "Small.", papers)


def test_a_card_has_its_table_its_files_and_how_it_was_made() -> None:
    put(make_entry("table"), clean=False)
    [card] = re.findall(r"<article.*?</article>", shown(toy=TOY), re.DOTALL)
    assert card.count("<table>") == 1
    assert "<img" not in card
    for provenance in ("TARGETS=toy_thing", "abcdefabcdef, edited", "c0de", "torch 2.13.0", "2 h 0 min on toy", "0, 1"):
        assert provenance in card
    files = re.findall(r'<a href="(artefacts/[^"]*)">', card)
    assert len(files) == 7
    assert all((ROOT / file).is_file() for file in files)


def test_papers_stand_in_their_order_with_what_is_not_yet_made() -> None:
    stem = put(make_entry("table"))
    for name, key in (("later", "b"), ("toy", "zeta"), ("toy", "other")):
        copied(stem, key, name)
    text = shown(empty=paper("Nobody 2020.", "one"), toy=TOY)
    assert re.findall(ARTICLE, text) == ["toy/thing", "toy/other", "toy/zeta", "later/b"]
    assert re.findall(r"<h2 [^>]*>(.*?)</h2>", text) == ["empty", "Toy", "later"]
    assert "<li><code>empty_one</code> A one</li>" in text
    assert ">4 of 5 tables and figures · seeds 0, 1 · python 3.12.1, torch 2.13.0 · 2 h 0 min of comp" in text


def test_the_first_screen_has_pictures_stand_ins_and_verdicts_with_what_they_rest_on() -> None:
    entry = make_entry("curves")
    scenarios = tuple(one.model_copy(update={"data": "digits", "replaces": "MNIST"}) for one in entry.scenarios)
    judged(put(entry.model_copy(update={"scenarios": scenarios})))
    about = paper("(Toy).", "thing", "other", highlights=("thing", "other"), url="https://a.b/c?d&e")
    first, _, rest = shown(toy=about).partition("<nav")
    assert "digits in place of MNIST" in first
    assert re.findall('<a href="(#[^"]*)"><img alt="" src="data:image/png[^>]*>', first) == ["#toy/thing"]
    verdicts = re.findall(
        r"<li data-plugins.*?verdict ([\w-]*)\".*</b> (.*?)(?: <span.*\((.*)\).*)? <a href=\"(.*?)\"", first
    )
    assert verdicts == [
        ("holds", "A &lt; B", "", "#toy/thing"),
        ("does-not-hold", "Nothing comes back", "", "#toy/verdicts"),  # `absent` is not made
        ("not-judged", "third", "one seed", "#toy/thing"),
    ]
    assert "Claims: does not hold: 1, holds: 1, not judged: 1</p>" in rest
    assert 'href="https://a.b/c?d&amp;e"' in rest


def test_a_figure_has_its_numbers_first_those_that_the_paper_prints_and_how_far_they_are() -> None:
    columns = {
        "metric": ["asr"] * 120 + ["r_acc"] * 3,
        "mean": [0.5] * 123,
        "published": [None] * 120 + [0.4, 0.3, 0.75],
        "difference": [None] * 120 + [0.1, 0.2, -0.25],
    }
    drawn = made(make_entry("curves"))
    put(make_entry("curves"), Result(pd.DataFrame(columns), drawn.body, drawn.figure))
    differ, numbers = re.findall(r"<table>.*?</table>", shown(), re.DOTALL)
    assert re.findall(r"<t[hd]>(.*?)</t", differ.partition("<tbody>")[2]) == ["R-Acc", "3", "0.01667", "0.2", "0.25"]
    rows = re.findall(r"<tr>(.*?)</tr>", numbers.partition("<tbody>")[2], re.DOTALL)
    assert len(rows) == page.ROWS
    assert [re.findall(r"<t[hd]>(.*?)</t", row) for row in rows[2:4]] == [
        ["r_acc", "0.5", "0.75", "-0.25"],
        ["asr", "0.5", "–", "–"],
    ]


@pytest.mark.parametrize("kind", ["table", "curves", "matrix"])
def test_whatever_a_person_writes_is_text_and_nothing_is_loaded(kind: str) -> None:
    entry = hostile(kind)
    result = made(entry)
    frame = result.frame.assign(**{result.frame.columns[0]: HOSTILE, HOSTILE: HOSTILE})
    put(entry, Result(frame, result.body, result.figure, result.panels, result.notes))
    claim = dict.fromkeys(("claim", "verdict", "reason", "text", "place", "artefact"), HOSTILE)
    stem = judged(ROOT / "artefacts/toy/thing")
    pd.DataFrame([{"scenario": "", **claim}]).to_csv(stem.with_suffix(".csv"), index=False)
    certify(stem, "publish")
    methods = {entry.methods[0].name: "fedosd"}
    text = shown(toy=paper(HOSTILE, "thing", "new", HOSTILE, highlights=("thing",), methods=methods))
    outline = Outline(text)
    about, script = outline.scripts
    assert script == (page.HERE / "page.js").read_text()
    assert [*json.loads(about)] == ["methods/fedosd"]
    assert text.count("<script") == text.count("</script>") == 2
    assert "{{ 7 * 7 }}" in text
    attributes = [pair for _, several in outline.elements for pair in several.items()]
    assert not [name for name, _ in attributes if name.startswith("on")]
    links = [str(value) for name, value in attributes if name in ("href", "src")]
    assert all(link.startswith(("#", "artefacts/", "data:image/png;base64,")) for link in links)
    names = [value for name, value in attributes if name == "id"]
    assert len({*names}) == len(names)
    assert {link[1:] for link in links if link.startswith("#")} <= {*names}
    [policy] = re.findall('Content-Security-Policy" content="(.*?)">', text)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")


def test_a_method_is_known_by_its_plug_in_with_its_names_sources_and_costs() -> None:
    paths = [f"results/smoke/toy/small/seed{seed}/ours+lr0.1.unlearned.cost.json" for seed in (0, 1)]
    put(make_entry("table"), costs={path: {"seconds": 30.0} for path in (*paths, paths[0].replace("ours", "oursen"))})
    text = shown(toy=paper("Toy.", "thing", methods={"ours": "fedosd", "absent": "sfu"}))
    assert re.findall('<article [^>]* data-plugins="(.*?)"', text) == ["methods/fedosd"]
    [methods] = re.findall(r'<script type="application/json" id="methods">(.*)</script>', text)
    [(plugin, about)] = json.loads(methods).items()  # the other is in no table
    assert plugin == "methods/fedosd"
    assert about.pop("about").startswith("FedOSD")
    assert about == {
        "label": "Ours",
        "names": {"toy": ["ours", "Ours"]},
        "sources": ["section 3"],
        "cost": "60 s in 2 jobs",
    }


def rewritten(name: str, text: str) -> Callable[[Path], None]:
    def rewrite(stem: Path) -> None:
        stem.with_name(name).write_text(text)
        certify(stem, "publish", {"results": [EVALUATION]})

    return rewrite


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda stem: stem.with_name("thing.made.json").unlink(), "thing.made.json is missing or damaged."),
        (lambda stem: stem.with_name("thing.csv").write_text("x"), "thing.csv is not as its job wrote it."),
        (lambda stem: stem.with_name("thing.tex").unlink(), "thing.tex is missing."),
        (rewritten("thing.csv", ""), "thing.csv was not written by fu (EmptyDataError)."),
        (rewritten("thing.json", "[" * 100_000), "thing.json was not written by fu (RecursionError)."),
        (rewritten("thing.json", "{}"), "thing.json was not written by fu (KeyError)."),
        (rewritten("thing.html", "<h1>A thing</h1>"), "thing.html was made by an earlier version of fu."),
    ],
)
def test_what_is_damaged_is_left_out_and_named(damage: Callable[[Path], Any], sentence: str) -> None:
    copied(stem := put(make_entry("table")), "other")
    stem.with_name(".new.made.json.lock").touch()  # of a job that runs
    stem.with_name(".part-1-new.md").touch()
    damage(stem)
    text = shown(toy=TOY)
    [wrong] = re.findall("<li>(toy_.*)</li>", text)
    assert wrong.startswith(f"toy_thing: {sentence}")
    assert re.findall(ARTICLE, text) == ["toy/other"]


def test_the_page_is_written_whole_where_it_differs_and_an_error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = Plan({**read_yaml(digest.ROOT / "config.yaml"), "papers": ["safari"]})
    stem = put(make_entry("table"))
    assert page.update(plan) == ""
    before = INDEX.read_bytes(), INDEX.stat().st_mtime_ns
    for file in ROOT.rglob("*.*"):
        if file != INDEX:
            os.utime(file, (1, 1))
    assert page.update(plan) == ""
    assert (INDEX.read_bytes(), INDEX.stat().st_mtime_ns) == before
    copied(stem, "other")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        error = (
            "error: results/smoke/index.html: the page was not made (No space left on device); all tables and figures"
        )
        assert page.update(plan).startswith(error)
    assert INDEX.read_bytes() == before[0]
    assert [file.name for file in ROOT.iterdir() if file.is_file()] == ["index.html"]
    assert page.update(plan) == ""
    assert b'id="toy/other"' in INDEX.read_bytes()
