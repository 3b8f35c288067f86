"""What is written as TeX is what pdflatex reads, whatever papers and plug-ins call things."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fu.artefacts import result
from fu.artefacts.panels import latex, tex
from fu.pipeline.provenance.catalogue import available
from tests.artefacts.factories import made, readable
from tests.artefacts.hostile import HOSTILE, hostile
from tests.artefacts.typeset import compiled

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")


def test_tex_of_every_kind_is_compiled_whatever_things_are_called(tmp_path: Path) -> None:
    files = []
    Figure().savefig(tmp_path / "thing.pdf")
    for kind in available("artefacts"):
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
