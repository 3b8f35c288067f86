"""What a kind of artefact returns, and how it is written: numbers, pages, LaTeX, and the pictures of a figure."""

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

import pandas as pd
from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from fu.artefacts import panels
from fu.artefacts.entry import Entry
from fu.artefacts.escaping import inline, paragraph
from fu.artefacts.panels import Panels, Words, marked, tex

SIZE = (1600, 2000)  # pixels that a png should not exceed where it stays readable
MADE = "How it was made"
MARGIN = 0.03  # inches around what is drawn
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }
.scroll { overflow-x: auto }
table { border-collapse: collapse; border-block: 2px solid; font-variant-numeric: tabular-nums; font-size: 14px }
th, td { padding: .15em .8em; text-align: left; white-space: nowrap }
thead tr:last-child th { border-bottom: 1px solid }
tbody th { font-weight: normal }
.like { color: #6b6b6b }
img { max-width: 100%; height: auto }
"""


@dataclass(frozen=True)
class Result:
    """Tidy numbers and a Markdown body; a figure without heading, the panels of a table, or both.

    `names`: those of the panels in LaTeX's labels (default: the scenarios').
    """

    frame: pd.DataFrame
    body: str
    figure: Figure | None = None
    panels: Panels | None = None
    notes: str = ""
    words: Words = ()
    names: tuple[str, ...] = ()


def of_table(
    frame: pd.DataFrame,
    shown: Panels,
    notes: str,
    words: Words = (),
    names: tuple[str, ...] = (),
    figure: Figure | None = None,
) -> Result:
    """Return the result of a kind that shows numbers in panels, optionally with a figure.

    `names`: those of the panels, where there is not one for each scenario.
    """
    body = f"{panels.markdown(shown, words)}\n{paragraph(notes)}\n"
    return Result(frame, body, figure, shown, notes, words, names)


def of_figure(frame: pd.DataFrame, shown: Panels, notes: str, figure: Figure, words: Words = ()) -> Result:
    """Return the result of a kind that shows a figure, whose numbers stand in Markdown alone."""
    return Result(frame, f"{panels.markdown(shown, words)}\n{paragraph(notes)}\n", figure, notes=notes)


def write(result: Result, entry: Entry, csv: Path, md: Path, html: Path, tex: Path, *pictures: Path) -> None:
    """Write the files; they carry no dates, so that equal numbers give equal bytes.

    `pictures`: the pdf, svg and png of a figure, without heading and caption, as a paper needs them.
    """
    result.frame.to_csv(csv, index=False, float_format="%.6g", lineterminator="\n")
    md.write_text(markdown(result, entry), encoding="utf-8")
    tex.write_text(latex(result, entry), encoding="utf-8")
    shown = panels.html(result.panels, result.words) if result.panels else ""
    if result.figure:
        shown += f"<p>{_embedded(_draw(result.figure, entry, *pictures), _in_words(result.figure))}</p>"
    parts = [f"<p>{marked(entry.caption)}</p>", shown, folded("How to read this", result.notes, entry.definitions)]
    title = escape(entry.heading)
    html.write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<main>\n<h1>{title}</h1>\n" + "\n".join([*parts, folded(MADE, _about(entry))]) + "\n</main>\n</html>\n",
        encoding="utf-8",
    )


def _draw(figure: Figure, entry: Entry, pdf: Path, svg: Path, png: Path) -> Path:
    """Write a figure in three formats, and return the one for pages."""
    box = _laid_out(figure, entry)
    figure.savefig(pdf, bbox_inches=box, metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(svg, bbox_inches=box, metadata={"Date": None})
    dpi = max(100, min(200, SIZE[0] / box.width, SIZE[1] / box.height))
    figure.savefig(png, bbox_inches=box, dpi=dpi, metadata={"Software": None})
    return svg


def markdown(result: Result, entry: Entry) -> str:
    """Return an artefact as a page of Markdown."""
    head = f"# {inline(entry.heading)}\n\n{paragraph(entry.caption)}\n\n{paragraph(_about(entry))}\n\n"
    tail = f"\n{paragraph(entry.definitions)}\n" if entry.metrics else ""
    return f"{head}{result.body}{tail}"


def folded(summary: str, *texts: str) -> str:
    """Return paragraphs folded under a summary, as HTML; "" where there is no text."""
    paragraphs = "\n".join(f"<p>{marked(text)}</p>" for text in texts if text)
    return f"<details><summary>{summary}</summary>\n{paragraphs}\n</details>" if paragraphs else ""


def _about(entry: Entry) -> str:
    return f"{entry.setting} {'Paper:' if entry.in_paper else 'Not in the paper; based on'} {entry.citation}"


def _laid_out(figure: Figure, entry: Entry) -> Bbox:
    """Lay a figure out once, tag it where the preset or other data stand in, and return what is saved of it."""
    wide = figure.get_figwidth()
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)  # with any, even "none", each `savefig` would draw twice
    box = figure.get_tightbbox()
    if entry.tag:
        style = {"fontsize": rcParams["xtick.labelsize"], "color": "0.4", "ha": "right", "va": "bottom"}
        tag = figure.text(1, (box.y1 + MARGIN) / figure.get_figheight(), entry.tag, **style)
        box = Bbox.union([box, tag.get_window_extent().transformed(figure.dpi_scale_trans.inverted())])
    return Bbox([[min(0, box.x0 - MARGIN), box.y0 - MARGIN], [max(wide, box.x1), box.y1 + MARGIN]])


def latex(result: Result, entry: Entry) -> str:
    """Return an artefact as floats of LaTeX: a table for each panel, or a figure, or both."""
    title = re.sub(r"^(Table|Figure) \d+: ", "", entry.heading)  # LaTeX numbers by itself
    title = title[:1].upper() + title[1:]
    name = f"{entry.paper}-{entry.artefact}"
    about = f"{entry.caption} {entry.setting}"
    figure, tables = "", ""
    if result.figure:
        share = min(1, result.figure.get_figwidth() / rcParams["figure.figsize"][0])
        size = f"width={share:.3g}\\linewidth,height=.8\\textheight,keepaspectratio"
        caption = tex(f"{title}. {about} {result.notes}".strip())
        figure = (
            "% needs \\usepackage{graphicx}\n\\begin{figure}\n  \\centering\n"
            f"  \\includegraphics[{size}]{{{entry.artefact}.pdf}}\n"
            f"  \\caption{{{caption}}}\n  \\label{{fig:{name}}}\n\\end{{figure}}\n"
        )
    if result.panels:
        names = result.names or [scenario.name for scenario in entry.scenarios]
        tables = "% needs \\usepackage{booktabs,adjustbox}\n" + "\n".join(
            panels.latex(rows, f"{title}: {label}. {about}", f"tab:{name}-{panel}", result.notes)
            for panel, (label, rows) in zip(names, result.panels, strict=True)
        )
    return "\n".join(filter(None, [figure, tables]))


def _embedded(svg: Path, alt: str) -> str:
    """Return a picture as part of a page: it shares no names with other pictures, and nothing in it is run."""
    text = " ".join(svg.read_text(encoding="utf-8").split())
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', text)
    assert size  # as matplotlib writes it; a page keeps the place free until the picture is shown
    wide, high = (round(float(points) * 96 / 72) for points in size.groups())
    data = escape(quote(text, safe=" /:;,=()+*!@?&'"))
    return f'<img loading="lazy" width="{wide}" height="{high}" alt="{escape(alt)}" src="data:image/svg+xml,{data}">'


def _in_words(figure: Figure) -> str:
    """Return what panels, axes and legend say, for those who do not see them."""
    axes = figure.axes
    heads = [axis.get_title("left") or axis.get_title() for axis in axes]
    said = {
        "Panels": heads,
        "Axes": [text for axis in axes for text in (axis.get_xlabel(), axis.get_ylabel())],
        "Legend": [text.get_text() for box in figure.legends for text in box.findobj(Text)],
    }
    several = {name: dict.fromkeys(" ".join(text.split()) for text in texts if text) for name, texts in said.items()}
    return ". ".join(f"{name}: {'; '.join(texts)}" for name, texts in several.items() if texts)
