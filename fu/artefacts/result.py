"""What a kind of artefact returns, and how it is written: csv, md, pdf, png, each with preset and data stated."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from fu.artefacts.entry import Entry

matplotlib.use("Agg")
matplotlib.rcParams["text.parse_math"] = False  # a $ in a title or label is one; formulas say `parse_math=True`
matplotlib.rcParams.update({"font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7})
matplotlib.rcParams.update({"xtick.labelsize": 7, "ytick.labelsize": 7, "legend.frameon": False, "pdf.fonttype": 42})
matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


@dataclass(frozen=True)
class Result:
    """Tidy numbers, a Markdown body and a figure (which leaves its top and bottom margin to `write`)."""

    frame: pd.DataFrame
    body: str
    figure: Figure


def write(result: Result, entry: Entry, csv: Path, md: Path, pdf: Path, png: Path) -> None:
    """Write the four files; the pictures carry no dates, so that equal numbers give equal bytes."""
    result.frame.to_csv(csv, index=False, float_format="%.6g", lineterminator="\n")
    head = f"# {entry.heading}\n\n{entry.caption}\n\n{entry.setting} Paper: {entry.citation}\n\n"
    tail = f"\n{entry.definitions}\n" if entry.metrics else ""
    md.write_text(f"{head}{result.body}{tail}", encoding="utf-8")
    figure = result.figure
    width = figure.get_size_inches()[0]
    figure.suptitle(f"{entry.heading}  [preset {entry.preset}]", fontsize=11, weight="bold")
    figure.text(0.01, 0.0, fill(f"{entry.caption} {entry.setting}", int(width * 14)), fontsize=8, va="top", ha="left")
    figure.draw_without_rendering()  # lays out once what each `savefig` would lay out twice
    figure.set_layout_engine()
    box = figure.get_tightbbox().padded(0.1)
    figure.savefig(pdf, bbox_inches=box, metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(png, bbox_inches=box, dpi=150, metadata={"Software": None})
