"""The page in a browser: it logs no error and loads nothing; search, sorting and keys work, wide and narrow."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fu.pipeline.page.write import Planned, Used, write
from tests.artefacts.factories import make_entry
from tests.artefacts.hostile import hostile
from tests.pipeline.page.browser import Browser, chromium
from tests.pipeline.page.folder import ROOT, copied, judged, put

pytestmark = pytest.mark.page
DESKTOP, PHONE = 1400, 390  # pixels
SHOTS = os.environ.get("FU_SHOTS")  # a folder that keeps the screenshots
SHOWN = "[...document.querySelectorAll('article:not([hidden])')].map(card => card.id)"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A browser; without one these tests are skipped."""
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium, so no page is looked at")
    (tmp_path / "browser").mkdir()
    found = Browser(program, tmp_path / "browser")
    yield found
    found.close()


@pytest.fixture
def url() -> str:
    """A page with a matrix, a figure, hostile names, and a paper with claims."""
    judged(put(make_entry("matrix", paper="fedosd", artefact="matrix")))
    figure = put(make_entry("curves", paper="safari", artefact="fig5"))
    copied(figure, "thing", "toy")
    put(hostile("table").model_copy(update={"paper": "safari", "artefact": "table1"}))
    papers = {
        "fedosd": Planned(
            "Pan et al. (FedOSD).",
            {"matrix": "x"},
            highlights=("matrix",),
            methods={"ours": Used("Ours", "methods/fedosd", "section 3")},
        ),
        "safari": Planned("(SAFARI).", {"later": "y"}),
    }
    write(ROOT / "index.html", "smoke", "Small.", papers)
    return (ROOT / "index.html").absolute().as_uri()


def shoot(browser: Browser, name: str, folder: Path) -> None:
    """Take a screenshot, which is no empty page."""
    path = Path(SHOTS or folder) / f"{name}.png"
    browser.screenshot(path)
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_nothing_is_wrong_or_wider_than_the_window(
    browser: Browser, url: str, width: int, dark: bool, folder: Path
) -> None:
    browser.open(url, width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    browser.run("Promise.all([...document.images].map(image => { image.loading = 'eager'; return image.decode() }))")
    assert browser.run("[...document.images].every(image => image.naturalWidth > 0)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    small = "[...document.images].filter(image => image.clientWidth < Math.min(500, image.getAttribute('width')))"
    assert browser.run(f"{small}.length") == 0  # or nobody could read what they say: on a telephone they scroll
    texts = "[...document.querySelectorAll('p, li, td, th, summary')]"
    assert browser.run(f"Math.min(...{texts}.map(one => parseFloat(getComputedStyle(one).fontSize)))") >= 12
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 24, 29)" if dark else "rgb(246, 247, 249)"
    )
    shoot(browser, f"{'phone' if width == PHONE else 'desktop'}-{'dark' if dark else 'light'}", folder)
    assert browser.wrong() == []


def test_search_finds_what_has_all_words_and_contents_follow(browser: Browser, url: str) -> None:
    browser.open(url, DESKTOP)
    everything = browser.run(SHOWN)
    browser.press("/", "/")  # the key that leads to the search, and no letter of it
    for text, found in (
        ("fedosd", ["fedosd/matrix", "fedosd/verdicts"]),
        ("SCRATCH fig5", ["safari/fig5"]),
        ("<script>alert(1)</script>", ["safari/table1"]),
        ("nothing of this kind", []),
    ):
        browser.type(text)
        assert browser.run(SHOWN) == found
        assert browser.run("document.getElementById('found').textContent") == f"{len(found)} of {len(everything)}"
        entries = browser.run("[...document.querySelectorAll('[data-for]:not([hidden])')].map(one => one.dataset.for)")
        assert entries == found
        assert browser.run("document.getElementById('nothing').hidden") is bool(found)
        browser.press("Escape")
        assert browser.run(SHOWN) == everything
    browser.type("fig5")
    browser.run("location.hash = '#fedosd/matrix'")
    browser.run("new Promise(done => setTimeout(done, 200))")
    assert browser.run(SHOWN) == everything
    assert browser.wrong() == []


def test_one_method_is_shown_alone_with_its_rows_of_all_tables(browser: Browser, url: str) -> None:
    browser.open(url, PHONE)
    everything = browser.run(SHOWN)
    choose = "method.value = '{}'; method.dispatchEvent(new Event('change'))"
    browser.run(choose.format("methods/fedosd"))
    assert browser.run(SHOWN) == ["fedosd/matrix", "fedosd/verdicts"]
    assert browser.run("[...view.querySelectorAll('h2, h3')].map(one => one.textContent.split(' (')[0])")[0] == "Ours"
    heads = browser.run("[...view.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent)")
    assert heads
    assert all(head.startswith("Ours") for head in heads)
    assert browser.run("view.textContent.includes('Source: section 3')")
    assert browser.run("document.documentElement.scrollWidth") <= PHONE
    browser.run(choose.format(""))
    assert browser.run("view.hidden")
    assert browser.run(SHOWN) == everything
    assert browser.wrong() == []


def test_on_a_telephone_a_claim_is_a_list_that_says_which_column_each_line_is_of(browser: Browser, url: str) -> None:
    browser.open(url, PHONE)
    cell = "document.querySelector('section .claims td:nth-child(2)')"
    assert browser.run(f"getComputedStyle({cell}).display") == "block"
    assert browser.run(f"getComputedStyle({cell}, '::before').content") == '"Verdict: "'
    assert browser.run(f"{cell}.dataset.head") == "Verdict"
    box = "document.querySelector('section .claims').parentElement"
    assert browser.run(f"{box}.scrollWidth <= {box}.clientWidth")


def test_the_matrix_is_sorted_by_click_and_by_key_and_says_so(browser: Browser, url: str) -> None:
    browser.open(url, DESKTOP)
    table = "document.querySelector('article[data-kind=matrix] table')"
    heads = browser.run(f"[...{table}.querySelectorAll('thead tr:last-child th')].map(one => one.textContent)")
    column = heads.index("R-Acc")
    cells = f"[...{table}.tBodies[0].rows].map(row => row.cells[{column}].textContent.trim())"
    states = f"[...{table}.querySelectorAll('[aria-sort]')].map(one => one.getAttribute('aria-sort'))"
    before = browser.run(cells)
    assert browser.run(states) == ["none"] * len(heads)

    def value(text: str) -> float:
        number = text.replace("−", "-").strip("≈ \u2002\u2007").split(" ")[0]
        return float(number) if number[-1:].isdigit() else float("inf")

    browser.run(f"{table}.querySelectorAll('th button')[{column}].click()")
    assert browser.run(states)[column] == "ascending"
    assert [value(text) for text in browser.run(cells)] == sorted(map(value, before))
    browser.run(f"{table}.querySelectorAll('th button')[{column}].focus()")
    browser.press("Enter")
    assert browser.run(states)[column] == "descending"
    numbers = [value(text) for text in before if value(text) < float("inf")]
    assert len({*numbers}) > 1
    assert [value(text) for text in browser.run(cells)][: len(numbers)] == sorted(numbers, reverse=True)
    browser.run(f"{table}.querySelectorAll('th button')[0].click()")
    assert browser.run(states) == ["ascending", *["none"] * (len(heads) - 1)]
    names = browser.run(f"[...{table}.tBodies[0].rows].map(row => row.cells[0].textContent)")
    assert names == browser.run(f"{names}.sort((a, b) => a.localeCompare(b))")
    assert browser.run("document.querySelectorAll('article:not([data-kind=matrix]) [aria-sort]').length") == 0
    assert browser.wrong() == []


def test_a_toggle_turns_light_and_dark_and_the_first_key_leads_to_the_results(browser: Browser, url: str) -> None:
    browser.open(url, PHONE)
    assert browser.run("document.getElementById('contents').open") is False  # it would fill the window
    colour = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(colour)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) != light
    assert browser.run("document.getElementById('theme').textContent") == "Light"
    assert browser.run("getComputedStyle(document.images[0]).backgroundColor") == "rgb(255, 255, 255)"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == light
    browser.open(url, DESKTOP)
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the results"
    browser.press("Enter")
    assert browser.run("document.activeElement.id") == "main"
    assert browser.wrong() == []


def test_every_control_and_picture_has_a_name_for_those_who_hear_it(browser: Browser, url: str) -> None:
    browser.open(url, DESKTOP)
    nodes = browser("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "link", "image", "searchbox", "region", "navigation", "article", "heading", "columnheader"}
    named = [node for node in nodes if node.get("role", {}).get("value") in roles]
    assert {node["role"]["value"] for node in named} >= {
        "button",
        "link",
        "searchbox",
        "region",
        "heading",
        "columnheader",
    }
    unnamed = [node for node in named if not node.get("name", {}).get("value")]
    assert [node["role"]["value"] for node in unnamed if not node.get("ignored")] == []
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
