"""What a kind of artefact returns, and how it is written: csv, md, pdf, png, each with preset and data stated."""

import json
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from fu.errors import UserError

matplotlib.use("Agg")
STAGE_LABELS = {"original": "", "unlearned": "¹", "recovered": "²"}


@dataclass(frozen=True)
class Result:
    """Tidy numbers, a Markdown body and a figure (which leaves its top and bottom margin to `write`)."""

    frame: pd.DataFrame
    body: str
    figure: Figure


def setting(spec: dict[str, Any]) -> str:
    """Return one sentence on what the numbers were made with."""
    if not spec["scenarios"]:
        return f"Preset {spec['preset']}; computed from the formulas alone, on no data."
    datasets = sorted({scenario["dataset"] for scenario in spec["scenarios"].values()})
    rounds = sorted({tuple(scenario["rounds"]) for scenario in spec["scenarios"].values()})
    trained = ", ".join(f"{before} rounds of training and {total} after the request" for before, total in rounds)
    seeds = spec["seeds"]
    return (
        f"Preset {spec['preset']}; data: {', '.join(datasets)}; {trained}; "
        f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''} ({', '.join(map(str, seeds))})."
    )


def heading(spec: dict[str, Any]) -> str:
    """Return the title, marked where the paper has no such artefact."""
    return spec["title"] + ("" if spec["in_paper"] else " (not in the paper)")


def write(result: Result, spec: dict[str, Any], csv: Path, md: Path, pdf: Path, png: Path) -> None:
    """Write the four files; the pictures carry no dates, so that equal numbers give equal bytes."""
    result.frame.to_csv(csv, index=False, float_format="%.6g", lineterminator="\n")
    md.write_text(
        f"# {heading(spec)}\n\n{spec['caption']}\n\n{setting(spec)} Paper: {spec['citation']}\n\n{result.body}",
        encoding="utf-8",
    )
    figure = result.figure
    width = figure.get_size_inches()[0]
    text = fill(f"{spec['caption']} {setting(spec)}", int(width * 14))
    figure.suptitle(f"{heading(spec)}  [preset {spec['preset']}]", fontsize=11, weight="bold")
    figure.text(0.01, 0.0, text, fontsize=8, va="top", ha="left")
    figure.savefig(pdf, bbox_inches="tight", metadata={"CreationDate": None, "ModDate": None})
    figure.savefig(png, bbox_inches="tight", dpi=150, metadata={"Software": None})


def read(path: Path) -> pd.DataFrame:
    """Read a CSV file of the pipeline."""
    try:
        return pd.read_csv(path)
    except (FileNotFoundError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise UserError(f"{path}: the file is missing or damaged; delete it and run snakemake again.") from None


@dataclass(frozen=True)
class Shown:
    """The point of a method's grid that an artefact shows: its name, what the grid sets there (the rate where there is
    no grid) and its models (file names without suffix).
    """

    point: str
    setting: str
    chosen: bool
    models: list[str]


def shown(spec: dict[str, Any], root: Path, scenario: str, method: str) -> Shown:
    """Return the point that was chosen for a method in a scenario, or the only one."""
    points = dict(spec["methods"][method]["points"][scenario])
    name = next(iter(points))
    if len(points) > 1:
        path = root / spec["paper"] / scenario / f"{method}.selected.json"
        try:
            name = json.loads(path.read_text())["selected"]
        except (OSError, json.JSONDecodeError, KeyError):
            raise UserError(f"{path}: the file is missing or damaged; delete it and run snakemake again.") from None
    set_to = list(points[name]["coordinates"].values()) or [points[name]["lr"]]
    setting = ", ".join(f"{value:g}" if isinstance(value, int | float) else str(value) for value in set_to)
    return Shown(name, setting, len(points) > 1, points[name]["models"])


def models_of(spec: dict[str, Any], scenario: str) -> list[tuple[str, str, str]]:
    """Return (method, role, label) of every model that an artefact shows for a scenario, in order of the rows."""
    out = [("original", "original", "ω⁰")] if "original" in spec["stages"] else []
    for role in ("unlearned", "recovered"):
        if role not in spec["stages"]:
            continue
        for name, method in spec["methods"].items():
            roles = len(method["points"][scenario][0][1]["models"])
            if role == "unlearned" or roles == 2:
                mark = "" if method["in_paper"] else " *"
                out.append((name, role, method["label"] + (STAGE_LABELS[role] if roles == 2 else "") + mark))
    return out


def footnotes(spec: dict[str, Any]) -> str:
    """Explain the marks of the rows."""
    text = "ω⁰: the original model; ¹ after unlearning; ² after post-training."
    if any(not method["in_paper"] for method in spec["methods"].values()):
        text += " * not in the paper."
    return text
