"""Panels of a table as Markdown, HTML and LaTeX; numbers are aligned at the decimal point."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import pandas as pd

from fu.artefacts import escaping
from fu.artefacts.escaping import inline, paragraph
from fu.artefacts.wrapping import HARD

# The label of each panel, and its cells by (group, column): text, bold between **.
Panels = list[tuple[str, pd.DataFrame]]
Words = Sequence[list[str]]  # sentences on each panel
OURS = "ours"  # the column of a group that Markdown calls by the group's name
LIKE = "≈"  # behind a cell, or a column's name: like what it is compared with, so grey
SEVERAL = 2  # paragraphs below a panel of a page
SPACE = "\u2007"  # as wide as a digit
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


def grid(rows: Iterable[Mapping[Any, Any]]) -> pd.DataFrame:
    """Return rows as a panel; columns are named by a head, or by (group, head). – stands where a row has no cell."""
    named = [{key if isinstance(key, tuple) else ("", str(key)): text for key, text in row.items()} for row in rows]
    heads = [*dict.fromkeys(head for row in named for head in row)] or [("", "Method")]
    cells = pd.DataFrame(named or [{}], columns=pd.MultiIndex.from_tuples(heads), dtype=object)
    return cells.fillna("–").astype(str)


def markdown(panels: Panels, words: Words = ()) -> str:
    """Return the panels as Markdown, each with its words below."""
    text = []
    for (label, rows), says in zip(panels, words or [[] for _ in panels], strict=True):
        names = [inline(" ".join(part for part in column if part not in ("", OURS))) for column in _columns(rows)]
        table = rows.map(escaping.cell).set_axis(names, axis=1).to_markdown(index=False, disable_numparse=True)
        text.append("\n\n".join([f"## {inline(label)}", table, *map(paragraph, filter(None, says))]) + "\n")
    return "\n".join(text)


def html(panels: Panels, words: Words = ()) -> str:
    """Return the panels as HTML, each with its words below; more than `SEVERAL` paragraphs of them are folded."""
    text = []
    for (label, rows), says in zip(panels, words or [[] for _ in panels], strict=True):
        heads = [name for _, name in _columns(rows)]
        cells = [[_styled(*cell, head) for cell, head in zip(line, heads, strict=True)] for line in _lines(rows)]
        columns = pd.MultiIndex.from_tuples([(marked(group), marked(name)) for group, name in _columns(rows)])
        table = pd.DataFrame(
            cells, columns=columns if any(columns.get_level_values(0)) else columns.get_level_values(1)
        )
        below = "".join(f"<p>{marked(sentence)}</p>\n" for sentence in says if sentence)
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
    for group, found in groupby(group for group, _ in _columns(rows)):
        several = len(list(found))
        heads.append(f"\\multicolumn{{{several}}}{{c}}{{{tex(group)}}}")
        rules += [f"\\cmidrule(lr){{{last + 1}-{last + several}}}"] if group else []
        last += several
    top = [f"{' & '.join(heads)} \\\\", " ".join(rules)] if rules else []
    names: Line = [(name, False) for _, name in _columns(rows)]
    cells = [
        [f"\\textbf{{{tex(cell)}}}" if bold else tex(cell) for cell, bold in line] for line in [names, *_lines(rows)]
    ]
    # What a row begins with is no argument of the line above.
    head, *body = (f"{'{}' if line[0].startswith(OPTIONAL) else ''}{' & '.join(line)} \\\\" for line in cells)
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


def tex(text: str) -> str:
    """Return text with what LaTeX would read as a command escaped, and indices set as such: ρ_S.

    A letter that pdflatex does not know stands there by its number: (U+4E2D).
    """
    escaped = re.sub(r"\$\\rho\$\\_([A-Za-z0-9])", r"$\\rho_{\1}$", text.translate(SYMBOLS))
    return UNKNOWN.sub(lambda sign: f"(U+{ord(sign[0]):04X})", re.sub(r"\s+", " ", escaped))


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
