"""What a kind of artefact returns, and how it is written: numbers, pages to read, LaTeX and pictures for a paper."""

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from fu.artefacts import panels
from fu.artefacts.entry import Entry
from fu.artefacts.panels import Panels, Words, tex
from fu.artefacts.wrapping import fill

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False  # a $ in a title or label is one; formulas say `parse_math=True`
matplotlib.rcParams.update({"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7})
matplotlib.rcParams.update({"xtick.labelsize": 7, "ytick.labelsize": 7, "legend.frameon": False, "pdf.fonttype": 42})
matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})

SIZE = (1600, 2000)  # pixels that a png should not exceed where it stays readable
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; border-block: 2px solid; font-variant-numeric: tabular-nums; font-size: 14px }
th, td { padding: .15em .8em; text-align: left; white-space: nowrap }
thead tr:last-child th { border-bottom: 1px solid }
img { max-width: 100% }
"""


@dataclass(frozen=True)
class Result:
    """Tidy numbers, a Markdown body and a figure without heading; a table also has its panels and its notes.

    `names`: those of the panels in LaTeX's labels (default: the scenarios').
    """

    frame: pd.DataFrame
    body: str
    figure: Figure
    panels: Panels | None = None
    notes: str = ""
    words: Words = ()
    names: tuple[str, ...] = ()


def of_table(frame: pd.DataFrame, shown: Panels, notes: str, words: Words = (), names: tuple[str, ...] = ()) -> Result:
    """Return the result of a kind that shows numbers in panels, with what they say in words.

    `names`: those of the panels, where there is not one for each scenario.
    """
    body = f"{panels.markdown(shown, words)}\n{notes}\n"
    return Result(frame, body, panels.picture(shown), shown, notes, words, names)


def write(result: Result, entry: Entry, csv: Path, md: Path, html: Path, tex: Path, pdf: Path, png: Path) -> None:
    """Write the six files; they carry no dates, so that equal numbers give equal bytes.

    The PDF is for a paper: without heading and caption, which stand in the LaTeX, and with a page for each panel.
    """
    result.frame.to_csv(csv, index=False, float_format="%.6g", lineterminator="\n")
    about = f"{entry.setting} Paper: {entry.citation}"
    head = f"# {entry.heading}\n\n{entry.caption}\n\n{about}\n\n"
    tail = f"\n{entry.definitions}\n" if entry.metrics else ""
    md.write_text(f"{head}{result.body}{tail}", encoding="utf-8")
    pages = [panels.picture([panel]) for panel in result.panels] if result.panels else [result.figure]
    with PdfPages(pdf, metadata={"CreationDate": None, "ModDate": None}) as file:
        for page in pages:
            page.draw_without_rendering()  # lays out once what each `savefig` would lay out again
            page.set_layout_engine()
            file.savefig(page, bbox_inches=page.get_tightbbox().padded(0.03))
    _add_text(result, entry)
    width, height = result.figure.get_size_inches()
    dpi = max(100, min(150, SIZE[0] / width, SIZE[1] / height))
    box = result.figure.get_tightbbox().padded(0.1)
    result.figure.savefig(png, bbox_inches=box, dpi=dpi, metadata={"Software": None})
    tex.write_text(_latex(result, entry), encoding="utf-8")
    shown = panels.html(result.panels, result.words) if result.panels else _embedded(png)
    paragraphs = [f"<p>{escape(text)}</p>" for text in (entry.caption, about)]
    notes = [f"<p>{escape(text)}</p>" for text in (result.notes, entry.definitions) if text]
    title = escape(entry.heading)
    html.write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<h1>{title}</h1>\n" + "\n".join([*paragraphs, shown, *notes]) + "\n</html>\n",
        encoding="utf-8",
    )


def _add_text(result: Result, entry: Entry) -> None:
    """Write heading, caption and notes above and below the figure."""
    figure = result.figure
    width = int(figure.get_size_inches()[0] * 14)  # in letters
    title = fill(f"{entry.heading}  [preset {entry.preset}]", width * 5 // 7)
    figure.text(0, 1, f"{title}\n", fontsize=11, weight="bold", va="bottom")
    below = [f"{entry.caption} {entry.setting}", *([result.notes] if result.notes else [])]
    figure.text(0, 0, "\n\n".join(fill(text, width) for text in below), fontsize=8, va="top")


def _latex(result: Result, entry: Entry) -> str:
    title = re.sub(r"^(Table|Figure) \d+: ", "", entry.heading)  # LaTeX numbers by itself
    title = title[:1].upper() + title[1:]
    name = f"{entry.paper}-{entry.artefact}"
    about = f"{entry.caption} {entry.setting}"
    if not result.panels:
        caption = tex(f"{title}. {about} {result.notes}".strip())
        return (
            "% needs \\usepackage{graphicx}\n\\begin{figure}\n  \\centering\n"
            f"  \\includegraphics[width=\\linewidth,height=.8\\textheight,keepaspectratio]{{{entry.artefact}.pdf}}\n"
            f"  \\caption{{{caption}}}\n  \\label{{fig:{name}}}\n\\end{{figure}}\n"
        )
    names = result.names or [scenario.name for scenario in entry.scenarios]
    floats = [
        panels.latex(rows, f"{title}: {label}. {about}", f"tab:{name}-{panel}", result.notes)
        for panel, (label, rows) in zip(names, result.panels, strict=True)
    ]
    return "% needs \\usepackage{booktabs,adjustbox}\n" + "\n".join(floats)


def _embedded(png: Path) -> str:
    return f'<img alt="" src="data:image/png;base64,{b64encode(png.read_bytes()).decode()}">'
