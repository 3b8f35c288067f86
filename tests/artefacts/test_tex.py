"""What is written as TeX is what pdflatex reads, whatever papers and plug-ins call things."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fu.artefacts import result
from fu.artefacts.panels import latex, tex
from tests.artefacts.factories import made, readable
from tests.artefacts.hostile import HOSTILE, hostile
from tests.contract.names import plugins_of

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")
COMPILERS = ("tectonic", "pdflatex")
HEAD = "\\documentclass{article}\n\\usepackage{booktabs,adjustbox,graphicx}\n\\begin{document}\n"


def compiled(files: Iterable[Path], folder: Path) -> None:
    """Compile a document with all these files, and a picture for each; skip where there is no TeX."""
    compiler = next((name for name in COMPILERS if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("there is no TeX (tectonic or pdflatex), so no .tex is compiled")
    Figure().savefig(folder / "thing.pdf")
    body = [f"\\input{{{file.name}}}\n\\clearpage\n" for file in files]
    document = folder / "all.tex"
    document.write_text(f"{HEAD}{''.join(body)}\\end{{document}}\n")
    words = ["-interaction=nonstopmode", "-halt-on-error"] if compiler == "pdflatex" else []
    done = subprocess.run([compiler, *words, document.name], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    assert document.with_suffix(".pdf").stat().st_size > 1000


def test_tex_of_every_kind_is_compiled_whatever_things_are_called(tmp_path: Path) -> None:
    files = []
    for kind in plugins_of("artefacts"):
        entry = hostile(kind)
        text = result.latex(made(entry), entry)
        files.append(tmp_path / f"{kind}.tex")
        files[-1].write_text(text)
        assert "\\input{" not in text
        assert readable(text)
    compiled(files, tmp_path)


def test_tex_of_any_text_is_compiled(tmp_path: Path) -> None:
    """Every sign of the planes that people write in, in a caption, in heads and cells, and at the start of a row."""
    signs = "".join(sign for number in range(0x2FFF) if (sign := chr(number)).isprintable() or sign.isspace())
    names = [("", "[1]"), ("*", "[2]"), ("*", "*")]
    rows = pd.DataFrame(
        [["[3]", signs[:500], "ρ_é ρ_S"], ["*", "-1", "**[4]**"]], columns=pd.MultiIndex.from_tuples(names)
    )
    file = tmp_path / "signs.tex"
    file.write_text(latex(rows, HOSTILE, "tab:signs", signs))
    assert readable(file.read_text())
    compiled([file], tmp_path)


def test_what_pdflatex_does_not_know_stands_by_its_number_and_a_line_break_is_a_space() -> None:
    assert tex("a 中\nþ é") == "a (U+4E2D) (U+00FE) é"
