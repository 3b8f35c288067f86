"""Panels of a table as Markdown, HTML, LaTeX and pictures; numbers stand below each other at the decimal point."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from math import ceil
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from fu.artefacts import escaping
from fu.artefacts.escaping import inline, paragraph
from fu.artefacts.wrapping import HARD, HINTED, width

# The label of each panel, and its cells by (group, column): text, bold between **.
Panels = list[tuple[str, pd.DataFrame]]
Words = Sequence[list[str]]  # sentences on each panel
OURS = "ours"  # the column of a group that Markdown calls by the group's name
FAINT = ("paper", "diff")
LIKE = "≈"  # behind a cell, or a column's name: like what it is compared with, so grey
SEVERAL = 2  # paragraphs below a panel of a page
SPACE = "\u2007"  # as wide as a digit
SIZE, LINE, GAP = 8, 13, 14  # of a picture with letters of 8 points: font, line, between two columns
LONG = 200  # points: a text whose letters, fitted to pixels, take more than a gap beyond its own width
PAGE = (560, 1800)  # width and height that a picture of many panels tries to keep, in points
SYMBOLS = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{sign: f"${sign}$" for sign in "<>|+"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"ω": r"$\omega$", "ρ": r"$\rho$", "λ": r"$\lambda$", "⁰": "$^0$", "¹": "$^1$", "²": "$^2$"},
        **{"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "ε": r"$\epsilon$"},
        **{"ζ": r"$\zeta$", "η": r"$\eta$", "θ": r"$\theta$", "Λ": r"$\Lambda$", "μ": r"$\mu$"},
        **{"ν": r"$\nu$", "φ": r"$\phi$", "χ": r"$\chi$", "∇": r"$\nabla$", "×": r"$\times$"},
        **{"‖": r"$\|$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "√": r"$\surd$", LIKE: r"$\approx$"},
        **{"±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "↑": r"$\uparrow$", "→": r"$\rightarrow$"},
        **{"“": "``", "”": "''", "–": "--", "−": "$-$", SPACE: r"\phantom{0}", HARD: "~"},
    }
)
RHO = re.compile(r"ρ_(\w)")
UNKNOWN = re.compile(r"[^ -~À-ÖØ-öø-ÿ]|[ÐÞðþ]")  # to pdflatex with the fonts that it has at first
OPTIONAL = ("[", "*")  # what LaTeX takes for an argument of the line above
Line = list[tuple[str, bool]]  # text, whether it is bold


def section(heading: str, rows: list[Any] | pd.DataFrame, above: str = "", below: Sequence[str] = ()) -> str:
    """Return rows as a table of Markdown below a heading, with the words above and below it."""
    cells = pd.DataFrame(rows).fillna("–").astype(str).map(escaping.cell).rename(columns=lambda name: inline(str(name)))
    table = cells.to_markdown(index=False, disable_numparse=True)
    return "\n\n".join(filter(None, [f"## {inline(heading)}", paragraph(above), table, *map(paragraph, below)])) + "\n"


def plain(rows: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Return the rows of a panel whose columns have no groups."""
    return pd.DataFrame(rows).pipe(lambda part: part.set_axis(pd.MultiIndex.from_product([[""], part.columns]), axis=1))


def markdown(panels: Panels, words: Words = ()) -> str:
    """Return the panels as Markdown, each with its words below."""
    text = []
    for (label, rows), says in zip(panels, words or [[] for _ in panels], strict=True):
        names = [" ".join(part for part in column if part not in ("", OURS)) for column in _columns(rows)]
        text.append(section(label, rows.set_axis(names, axis=1), below=says))
    return "\n".join(text)


def html(panels: Panels, words: Words = ()) -> str:
    """Return the panels as HTML, each with its words below; more than `SEVERAL` paragraphs of them are folded."""
    text = []
    for (label, rows), says in zip(panels, words or [[] for _ in panels], strict=True):
        heads = [name for _, name in _columns(rows)]
        cells = [[_styled(*cell, head) for cell, head in zip(line, heads, strict=True)] for line in _lines(rows)]
        columns = pd.MultiIndex.from_tuples([(marked(group), marked(name)) for group, name in _columns(rows)])
        table = pd.DataFrame(cells, columns=columns if _grouped(rows) else columns.get_level_values(1))
        below = "".join(f"<p>{marked(sentence)}</p>\n" for sentence in says)
        if len(says) > SEVERAL:
            below = f"<details><summary>In words</summary>\n{below}</details>\n"
        text.append(f"<h2>{marked(label)}</h2>\n{boxed(table, label)}\n{below}")
    return "\n".join(text)


def boxed(cells: pd.DataFrame, label: str) -> str:
    """Return cells of HTML as a table whose first column heads its rows, in a box in which it scrolls."""
    head = cells.columns[0]
    rows = cells.iloc[:, 1:].set_axis([*cells.iloc[:, 0]])
    rows.columns = rows.columns.set_names(["", head[1]] if rows.columns.nlevels > 1 else [head])
    table = rows.style.to_html(exclude_styles=True).strip().replace(" >", ">")  # in text it is &gt;
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">\n{table}\n</div>'


def latex(rows: pd.DataFrame, caption: str, label: str, notes: str) -> str:
    """Return one panel as a float of LaTeX with booktabs, no wider than a line."""
    heads: list[str] = []
    rules: list[str] = []
    last = 0
    for group, several in _groups(rows):
        heads.append(f"\\multicolumn{{{several}}}{{c}}{{{tex(group)}}}")
        rules += [f"\\cmidrule(lr){{{last + 1}-{last + several}}}"] if group else []
        last += several
    top = [f"{' & '.join(heads)} \\\\", " ".join(rules)] if rules else []
    head, *body = (_row(line) for line in [[(name, False) for _, name in _columns(rows)], *_lines(rows)])
    lines = ["\\toprule", *top, head, "\\midrule", *body, "\\bottomrule"]
    return "\n".join(
        [
            "\\begin{table}",
            "  \\centering",
            f"  \\caption{{{tex(caption)}}}",
            f"  \\label{{{label}}}",
            "  \\begin{adjustbox}{max width=\\linewidth}",
            f"    \\begin{{tabular}}{{{'l' * rows.shape[1]}}}",
            *(f"      {line}" for line in lines),
            "    \\end{tabular}",
            "  \\end{adjustbox}",
            f"  \\par\\smallskip\\footnotesize\\raggedright {tex(notes)}",
            "\\end{table}\n",
        ]
    )


def _row(line: Line) -> str:
    """Return a row of LaTeX: what it begins with is no argument of the line above."""
    text = " & ".join(f"\\textbf{{{tex(cell)}}}" if bold else tex(cell) for cell, bold in line)
    return f"{'{}' if text.startswith(OPTIONAL) else ''}{text} \\\\"


def tex(text: str) -> str:
    """Return text with what LaTeX would read as a command escaped, and indices set as such: ρ_S.

    A letter that pdflatex does not know stands there by its number: (U+4E2D).
    """
    escaped = re.sub(r"\$\\rho\$\\_([A-Za-z0-9])", r"$\\rho_{\1}$", text.translate(SYMBOLS))
    return UNKNOWN.sub(lambda sign: f"(U+{ord(sign[0]):04X})", re.sub(r"\s+", " ", escaped))


def picture(panels: Panels) -> Figure:
    """Draw the panels in as many columns as fit a page, or exceed it least."""
    widths = [_widths(rows) for _, rows in panels]
    heights = [LINE * (len(rows) + 3.5 + _grouped(rows)) for _, rows in panels]
    headings = [width(label, SIZE + 1) for label, _ in panels]
    wide, tall = max(*map(sum, widths), *headings) + GAP, max(heights)

    def excess(across: int) -> float:
        return max(1, across * wide / PAGE[0], ceil(len(panels) / across) * tall / PAGE[1])

    across = min(range(len(panels), 0, -1), key=excess)
    tops = [0.0]
    for first in range(0, len(panels), across):
        tops.append(tops[-1] + max(heights[first : first + across]))
    height = tops[-1]
    scale = rcParams["font.size"] / SIZE
    figure = Figure(figsize=(scale * across * wide / 72, scale * height / 72))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, across * wide), ylim=(height, 0))
    axes.axis("off")
    for k, (label, rows) in enumerate(panels):
        _draw(axes, k % across * wide, tops[k // across], label, rows, widths[k])
    return figure


def marked(text: str) -> str:
    """Return text for a page, with indices set as such: ρ_S."""
    return RHO.sub(r"ρ<sub>\1</sub>", escape(text))


def _styled(cell: str, bold: bool, head: str) -> str:
    """Return a cell of a page below its column's name: bold, or grey."""
    if LIKE in (cell[-1:], head[-1:]):
        return f'<span class="like">{_safe(cell)}</span>'
    return f"<b>{_safe(cell)}</b>" if bold else _safe(cell)


def _safe(cell: str) -> str:
    return marked(cell).replace(SPACE, "&numsp;")  # as a character pandas strips it


def _draw(axes: Axes, x: float, y: float, label: str, rows: pd.DataFrame, widths: list[float]) -> None:
    starts = [x + sum(widths[:k]) for k in range(len(widths) + 1)]

    def put(at: float, text: str, **style: Any) -> None:
        """Write text, with indices set as such: ρ_S."""
        math = "$" not in text and bool(RHO.search(text))
        shown = RHO.sub(r"$\\rho_{\1}$", text) if math else text
        axes.text(at, y, shown, **{"fontsize": rcParams["font.size"], "va": "center", **style}, parse_math=math)

    def write(column: int, text: str, bold: bool = False) -> None:
        colour = "0.4" if _columns(rows)[column][1] in FAINT else "0"
        put(starts[column], text, weight="bold" if bold else "normal", color=colour)

    def rule(first: int, last: int, width: float) -> None:
        axes.plot([starts[first], starts[last] - GAP / 2], [y, y], color="0", linewidth=width)

    y += LINE / 2
    put(x, label, fontsize=rcParams["font.size"] * (SIZE + 1) / SIZE, weight="bold")
    y += LINE * 0.7
    rule(0, len(widths), 0.8)
    y += LINE * 0.6
    if _grouped(rows):
        first = 0
        for group, several in _groups(rows):
            middle = (starts[first] + starts[first + several] - GAP) / 2
            put(middle, group, ha="center")
            if group:
                y += LINE / 2
                rule(first, first + several, 0.3)
                y -= LINE / 2
            first += several
        y += LINE
    for column, (_, name) in enumerate(_columns(rows)):
        write(column, name)
    y += LINE * 0.6
    rule(0, len(widths), 0.5)
    y += LINE * 0.6
    for line in _lines(rows):
        for column, (text, bold) in enumerate(line):
            write(column, text, bold)
        y += LINE
    y -= LINE * 0.4
    rule(0, len(widths), 0.8)


def _widths(rows: pd.DataFrame) -> list[float]:
    """Return the width of each column in points, the gap behind it included."""
    lines = [[(name, False) for _, name in _columns(rows)], *_lines(rows)]
    found = [max(_width(*cell) for cell in column) + GAP for column in zip(*lines, strict=True)]
    last = 0
    for group, several in _groups(rows):
        last += several
        found[last - 1] += max(0, _width(group, False) + GAP - sum(found[last - several : last]))
    return found


def _width(text: str, bold: bool) -> float:
    font = FontProperties(size=SIZE, weight="bold" if bold else "normal")
    wide = float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
    return wide * HINTED if wide > LONG else wide  # in pixels a long text would run into the next column


def _lines(rows: pd.DataFrame) -> list[Line]:
    """Return the cells line by line, numbers aligned."""
    columns = []
    for k in range(rows.shape[1]):
        cells = [str(cell) for cell in rows.iloc[:, k]]
        bold = [cell.startswith("**") and cell.endswith("**") for cell in cells]
        texts = [cell[2:-2] if strong else cell for cell, strong in zip(cells, bold, strict=True)]
        columns.append(zip(_aligned(texts) if k else texts, bold, strict=True))
    return [list(line) for line in zip(*columns, strict=True)]


def _aligned(texts: list[str]) -> list[str]:
    """Pad numbers, so that their decimal points stand below each other; give them a true minus."""
    before = [len(found[0]) if (found := re.match(r"[+-]?\d+", text)) else None for text in texts]
    most = max((digits for digits in before if digits is not None), default=0)
    padded = [SPACE * (0 if digits is None else most - digits) for digits in before]
    return [space + re.sub(r"^-(?=\d)", "−", text) for space, text in zip(padded, texts, strict=True)]


def _columns(rows: pd.DataFrame) -> list[tuple[str, str]]:
    return [(str(column[0]), str(column[1])) for column in rows.columns.to_list()]


def _grouped(rows: pd.DataFrame) -> bool:
    return any(group for group, _ in _columns(rows))


def _groups(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Return each group of columns in order, and how many it has."""
    return [(group, len(list(found))) for group, found in groupby(group for group, _ in _columns(rows))]
