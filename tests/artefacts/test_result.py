"""What is written of an artefact: what a person writes as it is, and pictures for a paper."""

import re
from html import escape
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from fu import plugins
from fu.artefacts.drawing import styled
from fu.artefacts.panels import tex as escaped
from fu.artefacts.result import Result
from fu.artefacts.style import Figures
from fu.pipeline.provenance.catalogue import available, drawn
from tests.artefacts.factories import made, make_entry, make_frame, readable, written

DOLLARS = r"$5, $x_{ and \frac{1$"


@pytest.mark.whole
@pytest.mark.parametrize("kind", [kind for kind in available("artefacts") if drawn(kind)])
def test_a_dollar_is_no_formula(kind: str, tmp_path: Path) -> None:
    plain = make_entry(kind)
    scenarios = tuple(found.model_copy(update={"label": DOLLARS}) for found in plain.scenarios)
    methods = tuple(found.model_copy(update={"label": f"{DOLLARS} {found.name}"}) for found in plain.methods)
    changed = {"title": DOLLARS, "caption": DOLLARS, "scenarios": scenarios, "methods": methods}
    entry = plain.model_copy(update=changed)
    result = plugins.load("artefacts", kind).make(make_frame(entry), entry)
    written(result, entry, tmp_path)
    texts = [text for text in result.figure.findobj(Text) if DOLLARS in text.get_text()]
    assert texts or kind == "losses"  # which shows no label of a scenario or method
    assert not any(text.get_parse_math() for text in texts)


@pytest.mark.parametrize("kind", available("artefacts"))
def test_a_page_latex_and_a_picture_of_every_kind_state_what_it_is(kind: str, tmp_path: Path) -> None:
    plain = make_entry(kind, title="Table 7: a & b", caption="All of <it>.")
    scenarios = tuple(found.model_copy(update={"label": "Other data"}) for found in plain.scenarios)
    entry = plain.model_copy(update={"scenarios": scenarios})
    result = made(entry)
    _, _, html, tex, *pictures = written(result, entry, tmp_path)
    page, text, panels = html.read_text(), tex.read_text(), result.panels
    assert "<h1>Table 7: a &amp; b</h1>" in page
    assert "<p>All of &lt;it&gt;.</p>" in page
    assert entry.setting.replace("'", "&#x27;") in page
    assert not re.search(r'(src|href)="(?!data:)', page)  # it needs no other file and no network
    assert panels is not None or pictures
    assert ("<table" in page) is (panels is not None)
    assert page.count('src="data:image/svg+xml,') == bool(pictures)
    assert re.search(r"<main>\n<h1>.*</main>\n</html>\n$", page, re.DOTALL)
    assert f"\\begin{{{'figure' if panels is None else 'table'}}}" in text
    title = "A \\& b" + (f": {panels[0][0]}. " if panels else ". ")
    assert f"\\caption{{{title}All of $<$it$>$. Preset smoke; " in text
    first = (result.names or ["small"])[0]
    assert ("\\label{fig:toy-thing}" if panels is None else f"\\label{{tab:toy-thing-{first}}}") in text
    assert text.count("{thing.pdf}") == bool(pictures)
    assert escaped(result.notes) in text
    assert readable(text)
    if pictures and kind != "losses":  # which shows no scenario
        assert any("Other data" in text.get_text() for text in result.figure.findobj(Text))
        assert "Other data" in result.body or kind == "images"


@pytest.mark.parametrize(("in_paper", "words"), [(True, "Paper: "), (False, "Not in the paper; based on ")])
def test_what_a_paper_lacks_is_not_attributed_to_it(in_paper: bool, words: str, tmp_path: Path) -> None:
    entry = make_entry("table", in_paper=in_paper)
    _, md, html, *_ = written(made(entry), entry, tmp_path)
    for text in (md.read_text(), html.read_text()):
        assert re.findall(r"\. ([^.]*)Somebody 2024\.", text) == [words]


def test_numbers_are_written_with_six_digits_and_metrics_are_defined(tmp_path: Path) -> None:
    entry = make_entry("table", metrics=("asr",))
    result = made(entry)
    csv, md, html, *_ = written(result, entry, tmp_path)
    numbers = [float(number) for number in result.frame["mean"]]
    assert pd.read_csv(csv)["mean"].tolist() == [float(f"{number:.6g}") for number in numbers]
    assert max(len(f"{number:.6g}") for number in numbers) == 8
    assert md.read_text().endswith(f"\n\n{entry.definitions}\n")
    assert f"<p>{escape(entry.definitions)}</p>" in html.read_text()


def test_a_page_has_the_notes_once_and_latex_a_float_for_each_panel_and_the_figure(tmp_path: Path) -> None:
    entry = make_entry("table", metrics=("asr",))
    table, curves = made(entry), made(make_entry("curves")).figure
    assert table.panels
    two = tuple(entry.scenarios[0].model_copy(update={"name": name}) for name in ("one", "two"))
    shown = Result(table.frame, table.body, panels=table.panels * 2, notes="A note_.")
    _, _, html, tex = written(shown, entry.model_copy(update={"scenarios": two}), tmp_path)
    assert re.findall(r"\\label\{(.*)\}", tex.read_text()) == ["tab:toy-thing-one", "tab:toy-thing-two"]
    assert tex.read_text().count("A note\\_.") == 2
    assert html.read_text().count("<p>A note_.</p>") == 1
    both = Result(table.frame, table.body, curves, table.panels * 2, "A note.", names=("a", "b"))
    _, _, html, tex, *_ = written(both, entry, tmp_path)
    assert re.findall(r"\\label\{(.*)\}", tex.read_text()) == ["fig:toy-thing", "tab:toy-thing-a", "tab:toy-thing-b"]
    page = html.read_text()
    assert page.rindex("</table>") < page.index("<img ") < page.index("<p>A note.</p>")


@pytest.mark.parametrize("width", [3.25, 7.0])
def test_a_style_says_how_wide_a_picture_is_how_large_its_letters_are_and_the_rest(
    width: float, tmp_path: Path
) -> None:
    (tmp_path / "my.mplstyle").write_text("axes.grid: True  # a grid\nfont.family: serif\nfigure.figsize: 2, 2\n")
    style = Figures(width=width, font=9.0, style=str(tmp_path / "my.mplstyle"))  # type: ignore[arg-type]
    entry = make_entry("curves", figures=style)
    with styled(entry.figures):
        result = made(entry)
        *_, pdf, svg, _ = written(result, entry, tmp_path)
    assert re.search(rf'width="{72 * width:g}pt"', svg.read_text())
    assert float(re.findall(rb"/MediaBox \[ 0 0 (\S+) ", pdf.read_bytes())[0]) == 72 * width
    axis = result.figure.axes[0]
    assert axis.xaxis.label.get_fontsize() == 9
    assert axis.xaxis.label.get_fontfamily() == ["serif"]
    assert axis.get_xticklabels()[0].get_fontsize() == 8
    assert axis.xaxis.get_gridlines()[0].get_visible()
    assert not made(entry).figure.axes[0].xaxis.get_gridlines()[0].get_visible()


@pytest.mark.parametrize(("size", "pixels"), [((7, 16), (875, 2000)), ((16, 4), (1600, 400)), ((4, 3), (800, 600))])
def test_a_png_is_as_sharp_as_its_size_allows(size: tuple[int, int], pixels: tuple[int, int], tmp_path: Path) -> None:
    """At most 1,600 x 2,000 pixels and 200 to an inch, by hand: 2,000 / 16 = 125 to an inch."""
    entry = make_entry("curves", preset="paper")
    figure = Figure(figsize=size)
    figure.add_axes((0, 0, 1, 1), xticks=[], yticks=[])
    *_, png = written(Result(pd.DataFrame(), "", figure), entry, tmp_path)
    with Image.open(png) as image:
        assert image.size == pytest.approx(pixels, rel=0.02)  # with the margin


def test_fonts_are_embedded_and_files_have_no_dates(tmp_path: Path) -> None:
    entry = make_entry("curves")
    first, again = (
        {path.suffix: path.read_bytes() for path in written(made(entry), entry, tmp_path / name)} for name in "ab"
    )
    assert first == again
    assert b"/FontFile2" in first[".pdf"]
    assert b"/Type3" not in first[".pdf"]
    assert b"<text" not in first[".svg"]  # letters are drawn: no font is needed to show them


@pytest.mark.parametrize(
    ("preset", "replaces", "tag"),
    [("smoke", "MNIST", "preset smoke, on digits"), ("paper", "MNIST", "on digits"), ("paper", None, "")],
)
def test_pictures_say_where_the_preset_or_other_data_stand_in(
    preset: str, replaces: str | None, tag: str, tmp_path: Path
) -> None:
    plain = make_entry("curves")
    other = plain.scenarios[0].model_copy(update={"replaces": replaces})
    entry = plain.model_copy(update={"preset": preset, "scenarios": (other,)})
    result = made(entry)
    written(result, entry, tmp_path)
    assert [text.get_text() for text in result.figure.texts] == ([tag] if tag else [])
