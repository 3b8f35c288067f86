"""What is written of an artefact: what a person writes as it is, and for a paper no heading."""

import re
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.image as plt
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from fu import plugins
from fu.artefacts.panels import tex as escaped
from fu.artefacts.result import Result
from tests.artefacts.factories import made, make_entry, make_frame, readable, written
from tests.contract.names import plugins_of

DOLLARS = r"$5, $x_{ and \frac{1$"


@pytest.mark.parametrize("kind", plugins_of("artefacts"))
def test_a_dollar_is_no_formula(kind: str, tmp_path: Path) -> None:
    plain = make_entry(kind)
    scenarios = tuple(found.model_copy(update={"label": DOLLARS}) for found in plain.scenarios)
    methods = tuple(found.model_copy(update={"label": f"{DOLLARS} {found.name}"}) for found in plain.methods)
    changed = {"title": DOLLARS, "caption": DOLLARS, "scenarios": scenarios, "methods": methods}
    entry = plain.model_copy(update=changed)
    result = plugins.load("artefacts", kind).make(make_frame(entry), entry)
    written(result, entry, tmp_path)
    texts = [text for text in result.figure.findobj(Text) if DOLLARS in text.get_text()]  # type: ignore[attr-defined]
    assert len(texts) > 1
    assert not any(text.get_parse_math() for text in texts)


@pytest.mark.parametrize("kind", plugins_of("artefacts"))
def test_a_page_and_latex_of_every_kind_state_what_it_is(kind: str, tmp_path: Path) -> None:
    entry = make_entry(kind, title="Table 7: a & b", caption="All of <it>.")
    _, _, html, tex, _, _ = written(made(entry), entry, tmp_path)
    page, text = html.read_text(), tex.read_text()
    assert "<h1>Table 7: a &amp; b</h1>" in page
    assert "<p>All of &lt;it&gt;.</p>" in page
    assert entry.setting.replace("'", "&#x27;") in page
    assert not re.search(r'(src|href)="(?!data:)', page)  # it needs no other file and no network
    panels = made(entry).panels
    table = panels is not None
    assert ("<table" in page) is table
    assert ("data:image/png;base64," in page) is not table
    environment = "table" if table else "figure"
    assert f"\\begin{{{environment}}}" in text
    title = "A \\& b" + (f": {panels[0][0]}. " if panels else ". ")
    assert f"\\caption{{{title}All of $<$it$>$. Preset smoke; " in text
    first = (made(entry).names or ["small"])[0]
    assert (f"\\label{{tab:toy-thing-{first}}}" if table else "\\label{fig:toy-thing}") in text
    assert ("{thing.pdf}" in text) is not table
    assert escaped(made(entry).notes) in text
    assert readable(text)


def test_numbers_are_written_with_six_digits_and_metrics_are_defined(tmp_path: Path) -> None:
    entry = make_entry("table", metrics=("asr",))
    result = made(entry)
    csv, md, html, *_ = written(result, entry, tmp_path)
    numbers = [float(number) for number in result.frame["mean"]]
    assert pd.read_csv(csv)["mean"].tolist() == [float(f"{number:.6g}") for number in numbers]
    assert max(len(f"{number:.6g}") for number in numbers) == 8
    assert md.read_text().endswith(f"\n\n{entry.definitions}\n")
    assert f"<p>{escape(entry.definitions)}</p>" in html.read_text()


def test_a_table_has_a_page_and_a_float_for_each_panel(tmp_path: Path) -> None:
    entry = make_entry("table", metrics=("asr",))
    result = made(entry)
    assert result.panels
    two = tuple(entry.scenarios[0].model_copy(update={"name": name}) for name in ("one", "two"))
    shown = Result(result.frame, result.body, result.figure, result.panels * 2, "A note_.")
    _, _, html, tex, pdf, _ = written(shown, entry.model_copy(update={"scenarios": two}), tmp_path)
    assert pdf.read_bytes().count(b"/Type /Page ") == 2
    text = tex.read_text()
    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:toy-thing-one", "tab:toy-thing-two"]
    assert text.count("A note\\_.") == 2
    assert html.read_text().count("<p>A note_.</p>") == 1


@pytest.mark.parametrize("kind", ["table", "curves"])
def test_heading_and_caption_stand_in_the_picture_and_not_in_the_pdf(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, set[str]] = {}

    def note(self: Figure, file: Any, **options: Any) -> None:
        drawn[Path(file).suffix if isinstance(file, Path) else ".pdf"] = {
            text.get_text().strip()
            for text in self.findobj(Text)  # type: ignore[attr-defined]
        }
        save(self, file, **options)

    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", note)
    entry = make_entry(kind)
    written(made(entry), entry, tmp_path)
    heading = "A thing  [preset smoke]"
    assert heading in drawn[".png"]
    assert any(text.startswith("What it shows. Preset smoke;") for text in drawn[".png"])
    assert len(drawn[".pdf"]) > 3
    assert not any(heading in text or "What it shows." in text for text in drawn[".pdf"])


def test_a_long_heading_has_lines_that_do_not_touch_and_brackets_in_one_piece(tmp_path: Path) -> None:
    entry = make_entry("losses", title=f"{'A long title, ' * 5}which has two lines [on digits rgb]")
    result = made(entry)
    written(result, entry, tmp_path)
    [title] = [text for text in result.figure.texts if text.get_text().startswith("A long")]
    lines = title.get_text().splitlines()
    assert len(lines) == 2
    assert "[on digits rgb]" in lines[1]
    between = title.get_window_extent().height
    title.set_text(f"{lines[0]}\n")
    points = (between - title.get_window_extent().height) * 72 / result.figure.dpi
    assert points >= 1.1 * float(title.get_fontsize())


@pytest.mark.parametrize("size", [(4, 3), (16, 3), (4, 18)], ids=["small", "wide", "tall"])
def test_a_picture_is_sharp_and_of_a_sensible_size(size: tuple[int, int], tmp_path: Path) -> None:
    figure = Figure(figsize=size)
    figure.add_axes((0, 0, 1, 1))
    result = Result(pd.DataFrame(), "", figure)
    png = written(result, make_entry("losses"), tmp_path)[-1]
    height, width, _ = plt.imread(png).shape
    dpi = width / size[0]
    assert 100 <= dpi <= 175  # with a margin for the text around it
    assert width <= 1800
    assert height <= 2200
