"""Panels: aligned at the decimal point, nothing over anything, and as LaTeX and HTML what is in the cells."""

import ast
import re
import string
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

from fu.artefacts.panels import SPACE, html, latex, markdown, tex
from fu.pipeline.provenance.digest import ROOT
from tests.artefacts.factories import readable

ROWS = pd.DataFrame(
    [["ω⁰", "–", "–", "–", "1.25"], ["A & B²", "**0.120 (0.010) ±0.004 ↑**", "0.5 r", "-0.380", "12.5"]],
    columns=pd.MultiIndex.from_tuples(
        [("", "Method"), ("ASR", "ours"), ("ASR", "paper"), ("ASR", "diff"), ("", "s_1")]
    ),
)
FLAT = ROWS.iloc[:, [0, 4]]

LATEX = r"""\begin{table}
  \centering
  \caption{50\% of \$5}
  \label{tab:a_b}
  \begin{adjustbox}{max width=\linewidth}
    \begin{tabular}{lllll}
      \toprule
      \multicolumn{1}{c}{} & \multicolumn{3}{c}{ASR} & \multicolumn{1}{c}{} \\
      \cmidrule(lr){2-4}
      Method & ours & paper & diff & s\_1 \\
      \midrule
      $\omega$$^0$ & -- & -- & -- & \phantom{0}1.25 \\
      A \& B$^2$ & \textbf{0.120 (0.010) $\pm$0.004 $\uparrow$} & 0.5 r & $-$0.380 & 12.5 \\
      \bottomrule
    \end{tabular}
  \end{adjustbox}
  \par\smallskip\footnotesize\raggedright r: a \_ rise
\end{table}
"""


def files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.*")) if path.suffix in (".yaml", ".csv", ".py")]


def test_latex_holds_order_bold_marks_and_groups() -> None:
    assert latex(ROWS, "50% of $5", "tab:a_b", "r: a _ rise") == LATEX
    plain = latex(FLAT, "", "", "").splitlines()
    assert [line.strip() for line in plain[6:9]] == [r"\toprule", r"Method & s\_1 \\", r"\midrule"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\b", r"a\textbackslash{}b"),
        ("{_#}", r"\{\_\#\}"),
        ("x^2 ~ y", r"x\textasciicircum{}2 \textasciitilde{} y"),
        ("|a| < b > c", "$|$a$|$ $<$ b $>$ c"),
        ("é", "é"),
    ],
)
def test_what_latex_reads_as_a_command_is_escaped(text: str, expected: str) -> None:
    assert tex(text) == expected


@pytest.mark.parametrize(("first", "row"), [("[1]", "{}[1] & 2 \\\\"), ("*", "{}* & 2 \\\\"), ("1", "1 & 2 \\\\")])
def test_no_row_of_latex_begins_with_what_the_line_above_would_take_for_an_argument(first: str, row: str) -> None:
    rows = pd.DataFrame([[first, "2"]], columns=pd.MultiIndex.from_tuples([("", "A"), ("", "B")]))
    assert row in [line.strip() for line in latex(rows, "C", "tab:c", "").splitlines()]


def test_latex_can_read_whatever_papers_and_plug_ins_write() -> None:
    texts = [
        path.read_text() for folder in ("papers", "presets", "published") for path in files(ROOT / "workflow" / folder)
    ]
    for path in [path for room in ("artefacts", "evaluation", "datasets") for path in files(ROOT / "fu" / room)]:
        constants = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        texts += [text for text in constants if isinstance(text, str)]
    used = {*"".join(texts)} - {*string.printable}
    assert {*"ρ≤ω⁰¹²±↑–"} <= used
    assert {sign: tex(sign) for sign in used if not readable(tex(sign))} == {}
    assert tex("ρ_S ≤ 1, λ → 0") == r"$\rho_{S}$ $\leq$ 1, $\lambda$ $\rightarrow$ 0"


def test_html_holds_groups_bold_and_no_mark_of_a_label() -> None:
    text = html([("<small>", ROWS)])
    assert "<h2>&lt;small&gt;</h2>" in text
    assert '<th colspan="3">ASR</th>' in text
    assert text.count("<th>Method</th>") == 1
    assert "<th>A &amp; B²</th>" in text
    assert "<td><b>0.120 (0.010) ±0.004 ↑</b></td>" in text
    assert "<td>&numsp;1.25</td>" in text
    assert "<td>−0.380</td>" in text
    assert "colspan" not in html([("small", FLAT)])
    assert html([("small", FLAT)]).count("<tr>") == 3


def test_what_is_like_retraining_is_grey_on_a_page_a_cell_or_a_column() -> None:
    columns = pd.MultiIndex.from_tuples([("", "Method"), ("", "x"), ("", "y ≈")])
    rows = pd.DataFrame([["A", "1.0 ≈", "2.0"], ["B", "≈ 3.0", "4.0"]], columns=columns)
    grey = '<td><span class="like">{}</span></td>'
    cells = [line.strip() for line in html([("", rows)]).partition("<tbody>")[2].splitlines() if "</t" in line]
    assert [cell for cell in cells if cell[-3:] in ("td>", "th>")] == [
        "<th>A</th>",
        *map(grey.format, ("1.0 ≈", "2.0")),
        "<th>B</th>",
        "<td>≈ 3.0</td>",
        grey.format("4.0"),
    ]
    assert tex("1.0 ≈") == r"1.0 $\approx$"


def test_words_in_html_are_no_markup() -> None:
    assert "<p>ASR &lt; .05 &amp; falling</p>" in html([("small", FLAT)], [["ASR < .05 & falling"]])


def test_markdown_names_ours_by_the_group() -> None:
    text = markdown([("Small", ROWS)])
    assert text.startswith("## Small\n\n| Method ")
    head = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert head == ["Method", "ASR", "ASR paper", "ASR diff", "s_1"]


@pytest.mark.parametrize(
    ("column", "aligned"),
    [
        (["1.25", "12.5", "–"], [f"{SPACE}1.25", "12.5", "–"]),
        (["-0.5", "+0.25"], ["−0.5", "+0.25"]),
        (["7", "1200"], [f"{SPACE * 3}7", "1200"]),
        (["(0.1)", "0.1"], ["(0.1)", "0.1"]),
        (["**1.0**", "10.0"], [f"{SPACE}1.0", "10.0"]),
    ],
)
def test_numbers_stand_below_each_other_at_the_point(column: list[str], aligned: list[str]) -> None:
    columns = pd.MultiIndex.from_tuples([("", "Method"), ("", "x")])
    rows = pd.DataFrame(list(zip(["10-step", "2", "3"], column, strict=False)), columns=columns)
    body = html([("", rows)]).partition("<tbody>")[2]
    lines = [unescape(cell) for cell in re.findall(r"<t[dh]>(?:<b>)?(.*?)(?:</b>)?</t[dh]>", body)]
    assert lines[1::2] == aligned
    assert lines[::2] == ["10-step", "2", "3"][: len(column)]  # names are no numbers
