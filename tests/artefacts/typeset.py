"""What TeX says of what is written for it."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

COMPILERS = ("tectonic", "pdflatex")
HEAD = "\\documentclass{article}\n\\usepackage{booktabs,adjustbox,graphicx}\n\\begin{document}\n"


def compiled(files: Iterable[Path], folder: Path) -> None:
    """Compile a document with all these files, their pictures beside them; skip where there is no TeX."""
    compiler = next((name for name in COMPILERS if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("there is no TeX (tectonic or pdflatex), so no .tex is compiled")
    body = [f"\\graphicspath{{{{{file.parent}/}}}}\n\\input{{{file}}}\n\\clearpage\n" for file in files]
    document = folder / "all.tex"
    document.write_text(f"{HEAD}{''.join(body)}\\end{{document}}\n")
    words = ["-interaction=nonstopmode", "-halt-on-error"] if compiler == "pdflatex" else []
    done = subprocess.run([compiler, *words, document.name], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    assert document.with_suffix(".pdf").stat().st_size > 1000
