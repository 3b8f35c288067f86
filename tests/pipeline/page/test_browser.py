"""The page in Chromium: it logs no error, fits its window, and searches, filters and sorts."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from html import unescape
from typing import Any

import pytest

from fu.pipeline.page.write import render
from tests.artefacts.factories import make_entry
from tests.artefacts.hostile import hostile
from tests.pipeline.page.folder import ROOT, copied, judged, paper, put

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.page, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]
DESKTOP, PHONE = 1400, 390  # pixels
SHOWN = "const shown = () => [...d.querySelectorAll('article:not([hidden])')].map(card => card.id);"
# `f`: a frame as wide as a window, with the page as it is; a script sees its window `w` and its document `d`.
OUTER = """<iframe id="f" width="{width}" height="900" src="index.html"></iframe><pre id="out"></pre><script>
f.onload = () => {{
  const w = f.contentWindow, d = w.document, look = () => {{ {script} }};
  out.textContent = JSON.stringify(look());
}}
</script>"""


@pytest.fixture(scope="module", autouse=True)
def _page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with a page of a matrix, a figure, hostile names, and a paper with claims."""
    with chdir(tmp_path_factory.mktemp("page")):
        make()
        yield


def make() -> None:
    judged(put(make_entry("matrix", paper="fedosd", artefact="matrix")))
    copied(put(make_entry("curves", paper="safari", artefact="fig5")), "thing", "toy")
    put(hostile("table").model_copy(update={"paper": "safari", "artefact": "table1"}))
    papers = {
        "fedosd": paper("Pan et al. (FedOSD).", "matrix", highlights=("matrix",), methods={"ours": "fedosd"}),
        "safari": paper("(SAFARI).", "later"),
    }
    (ROOT / "index.html").write_text(render(ROOT, "smoke", "Small.", papers))


def look(script: str, width: int = DESKTOP) -> Any:
    """Return what a script returns that looks at the page; nothing may be logged as an error meanwhile."""
    outer = (ROOT / "outer.html").absolute()
    outer.write_text(OUTER.format(width=width, script=script))
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=browser", "--allow-file-access-from-files"]
    words += ["--virtual-time-budget=5000", "--enable-logging=stderr"]
    command = [str(CHROMIUM), *words, "--dump-dom", outer.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert re.findall(r".*CONSOLE.*", done.stderr) == []
    (text,) = re.findall(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(text))


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_nothing_is_wider_than_the_window_and_whatever_can_be_used_has_a_name(width: int) -> None:
    script = """d.querySelectorAll('details').forEach(one => one.open = true);
    const bare = [...d.querySelectorAll('button, a, select, input, article, section, img:not([alt=""])')]
      .filter(one => !(one.textContent.trim() || one.ariaLabel || one.alt || one.querySelector('img')));
    return [d.documentElement.scrollWidth, bare.length]"""
    wide, bare = look(script, width)
    assert wide <= width
    assert bare == 0


def test_search_finds_what_has_all_words_and_a_link_leads_to_what_it_hides() -> None:
    script = """const find = text => {
      w.search.value = text;
      w.search.dispatchEvent(new w.Event('input'));
      return shown();
    };
    const several = ['FEDOSD_ thing', 'FIG5', 'alert(1)', 'nothing of this kind'].map(find);
    const contents = [...d.querySelectorAll('[data-for]:not([hidden])')].length;
    find('fig5');
    w.location.hash = '#fedosd/matrix';
    w.dispatchEvent(new w.Event('hashchange'));
    return [several, contents, shown()]"""
    several, contents, everything = look(SHOWN + script)
    assert several == [["fedosd/matrix", "fedosd/verdicts"], ["safari/fig5"], ["safari/table1"], []]
    assert contents == 0
    assert len(everything) == 5


def test_one_method_is_shown_alone_with_its_claims_and_its_rows_of_all_tables() -> None:
    script = """const choose = plugin => {
      w.method.value = plugin;
      w.method.dispatchEvent(new w.Event('change'));
    };
    choose('methods/fedosd');
    const rows = [...w.view.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent);
    const seen = [shown(), w.view.textContent, rows, d.documentElement.scrollWidth];
    choose('');
    return [...seen, shown()]"""
    cards, text, heads, wide, everything = look(SHOWN + script, PHONE)
    assert cards == ["fedosd/matrix", "fedosd/verdicts"]
    assert text.startswith("Ours")
    assert "Source: section 3" in text
    assert "A < B" in text  # a claim on `ours`
    assert heads
    assert all(head.startswith("Ours") for head in heads)
    assert wide <= PHONE
    assert len(everything) == 5


def test_the_matrix_is_sorted_by_a_click_and_keeps_its_first_column_in_sight() -> None:
    script = """const table = d.querySelector('article[data-kind=matrix] table');
    const rows = () => [...table.tBodies[0].rows];
    const heads = [...table.querySelectorAll('thead tr:last-child th')].map(one => one.textContent);
    const click = place => {
      table.querySelectorAll('th button')[place].click();
      return rows().map(row => row.cells[place].textContent);
    };
    const columns = [click(heads.indexOf('R-Acc')), click(heads.indexOf('R-Acc'))], names = click(0);
    const states = [...table.querySelectorAll('[aria-sort]')].map(one => one.ariaSort);
    return [columns, names, states, w.getComputedStyle(rows()[0].cells[0]).position]"""
    columns, names, states, position = look(script)
    numbers = [[float(match[0]) for text in column if (match := re.search(r"\d*\.\d+", text))] for column in columns]
    assert len({*numbers[0]}) > 1
    assert numbers == [sorted(numbers[0]), sorted(numbers[0], reverse=True)]
    assert names == sorted(names, key=str.lower)
    assert states[0] == "ascending"
    assert {*states[1:]} == {"none"}
    assert position == "sticky"
