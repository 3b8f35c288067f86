"""The results of a run as tidy pandas frames and torch models: `from fu import results` (docs/python.md).

It only reads files, needs no Snakemake, and refuses files without a valid certificate. Coordinates, units and shared
scenarios come from the certificates of tables and figures.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fu.artefacts.entry import ORIGINAL, SECONDS, Entry
from fu.errors import UserError, nearest
from fu.pipeline.provenance import catalogue
from fu.pipeline.provenance.digest import PACKAGES, ROOT
from fu.results.records import ORDER, Record, Run

if TYPE_CHECKING:
    from torch import nn

__all__ = ["artefact", "claims", "evaluations", "model", "traces"]

BEFORE = ("paper", "scenario")  # columns before the coordinates of scenarios, and those after them
AFTER = ("training", "method", "point", "chosen", "seed", "role", "round", "client", "metric", "value", "unit")
UNITS = {SECONDS: "s", "diverged_round": "rounds"}  # of metrics that no evaluator declares
UNITS |= dict.fromkeys(("gain", "gain_over_better", "V", "S", "Q"), "points")
VERDICTS = "verdicts"  # the artefact with the verdicts on a paper's claims, and its columns of text
TEXTS = (
    *("claim", "scenario", "verdict", "over", "note", "published"),
    *("reason", "against", "text", "place", "artefact", "kind"),
)
Root = str | Path | None


def evaluations(preset: str | None = None, *, paper: str | None = None, root: Root = None) -> pd.DataFrame:
    """Return every metric of every evaluated model, a row each.

    Columns: paper, scenario, its coordinates by their short names, training, method (of a trained model its training),
    point (of a grid; "" where there is none), chosen (tables show this point, or there is no other), seed, role
    (original, unlearned, recovered), client (missing where a model has one number), metric, value, unit. Those before
    value tell all rows apart.

    `preset`: it need not be named where `results` holds one alone. `paper`: that one alone. `root`: the folder
    `results` (default: in or above the working directory, else in the clone that has `fu`). `UserError` where a
    name is none of these, or a file is not as its certificate says.
    """
    run, parts = _run(preset, root), []
    for name in run.papers(paper):
        entries = run.entries(name)
        records = run.tables(name, entries, traces=False)
        if records:
            parts.append(_tidy(records, _rows(records).astype({"client": "Int64"}), entries))
    return _ordered(_joined(parts, f"{run.folder}: there are no evaluations yet"))


def traces(preset: str | None = None, *, paper: str | None = None, root: Root = None) -> pd.DataFrame:
    """Return what was measured and counted round by round: as `evaluations`, with `round` in place of `client`.

    Rounds of post-training go on from those of unlearning. Counts (steps, bytes, ...) are of all rounds of a model.
    """
    run, parts = _run(preset, root), []
    for name in run.papers(paper):
        entries = run.entries(name)
        records = run.tables(name, entries, traces=True)
        if records:
            long = _rows(records).melt(["path", "round"], var_name="metric").dropna(subset="value")
            parts.append(_tidy(records, long.sort_values(["path", "round"], kind="stable"), entries))
    return _ordered(_joined(parts, f"{run.folder}: there are no traces yet"))


def artefact(paper: str, artefact: str, preset: str | None = None, *, root: Root = None) -> pd.DataFrame:
    """Return the numbers of a table or figure: its CSV, with paper, coordinates of scenarios, and units of metrics.

    `role` is what the CSV calls stage; its other columns are those of the kind of artefact (mean, std, n, ...).
    """
    run = _run(preset, root)
    files = {path.stem: path for path in run.artefacts(*run.papers(paper))}
    if artefact not in files:
        where = run.folder / "artefacts" / paper
        raise UserError(f"{where}: there is no artefact {artefact!r}{nearest(artefact, files)}.")
    path = files[artefact]
    spec, frame = run.verify(path).spec, pd.read_csv(path).rename(columns={"stage": "role"})
    if "scenario" in frame:
        at = {scenario["name"]: _coordinates(scenario["at"], frame.columns) for scenario in spec["scenarios"]}
        coordinates = pd.DataFrame([at.get(name, {}) for name in frame["scenario"]], frame.index)
        place = [*frame.columns].index("scenario") + 1
        frame = pd.concat([frame.iloc[:, :place], coordinates, frame.iloc[:, place:]], axis=1)
    if "metric" in frame:
        frame["unit"] = _units(frame["metric"], {metric["name"]: metric["unit"] for metric in spec["metrics"]})
    if {"metric", "quantity"} <= {*frame}:  # V, S, Q: of an accuracy in points, of a loss in its own unit
        frame["unit"] = frame["unit"].replace("fraction", "points")
    return _of(paper, frame)


def claims(preset: str | None = None, *, paper: str | None = None, root: Root = None) -> pd.DataFrame:
    """Return the verdicts on the papers' claims, a row each, and one for each scenario where a claim is of several.

    Columns: paper, and those of each paper's artefact `verdicts`.
    """
    run, parts = _run(preset, root), []
    for name in run.papers(paper):
        for path in (path for path in run.artefacts(name) if path.stem == VERDICTS):
            run.verify(path)
            frame = pd.read_csv(path, dtype=dict.fromkeys(TEXTS, str))
            parts.append(_of(name, frame.fillna(dict.fromkeys(TEXTS, ""))))
    return _joined(parts, f"{run.folder}: there are no verdicts on claims yet")


def model(
    paper: str,
    scenario: str,
    method: str = ORIGINAL,
    *,
    role: str | None = None,
    point: str | None = None,
    seed: int = 0,
    preset: str | None = None,
    root: Root = None,
) -> "nn.Module":
    """Return a model with its weights, on the CPU and in evaluation mode; all names as in `evaluations`.

    `method`: a method or a training. `role`: default: the last one that there is, recovered before unlearned. `point`:
    default: the chosen one. `UserError` where the run diverged, or where the architecture was edited since.
    """
    from fu.results.models import load

    run = _run(preset, root)
    records, where = run.models(*run.papers(paper)), f"{run.folder / paper}"
    records = _where(records, "scenario", scenario, where)
    records = _where(records, "method", method, where)
    records = _where(records, "seed", seed, where)
    points = {record.point for record in records if record.chosen} if point is None else {point}
    if not points:
        allowed = ", ".join(sorted({record.point for record in records}))
        raise UserError(f"{where}: no grid point of {method!r} was chosen; pass one: {allowed}.")
    records = _where(records, "point", points.pop(), where)
    last = max((record.role for record in records), key=ORDER.index)
    path = _where(records, "role", role or last, where)[0].path
    return load(path, run.verify(path))


def _where(records: Iterable[Record], column: str, value: str | int, where: str) -> list[Record]:
    """Return the records that have a value; `UserError` where none has."""
    known = {getattr(record, column) for record in records}
    if value not in known:
        raise UserError(f"{where}: there is no {column} {value!r}{nearest(str(value), map(str, known))}.")
    return [record for record in records if getattr(record, column) == value]


def _run(preset: str | None, root: Root) -> Run:
    """Return the files of a preset; `UserError` where there are none."""
    folder = Path(root) if root is not None else _project() / "results"
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; root must be the folder `results` of a project.")
    presets = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if preset is None and len(presets) != 1:
        raise UserError(f"{folder}: pass a preset; allowed: {', '.join(presets) or 'none'}.")
    if preset is not None and preset not in presets:
        raise UserError(f"{folder}: there is no preset {preset!r}{nearest(preset, presets)}.")
    return Run(folder / (preset or presets[0]))


def _project() -> Path:
    """Return the project around the working directory, or a folder with results; else the clone with this very code."""
    here = Path.cwd()
    for folder in (here, *here.parents, *[ROOT] * (ROOT == PACKAGES)):
        if (folder / "workflow/papers").is_dir() or any(folder.glob("results/*/artefacts")):
            return folder
    raise UserError(f"{here}: not inside a project; pass root=, the folder with the results.")


def _rows(records: Iterable[Record]) -> pd.DataFrame:
    """Return the rows of all files, with the `path` of each."""
    frames = {str(path): pd.read_csv(path) for path in sorted({record.path for record in records})}
    filled = {path: frame for path, frame in frames.items() if len(frame)}
    return pd.concat(filled or frames, names=["path"]).reset_index("path")


def _tidy(records: list[Record], rows: pd.DataFrame, entries: Iterable[Entry]) -> pd.DataFrame:
    """Return the rows of files with what they are of; of equal ones, which a point and the chosen have, the first."""
    at = {scenario.name: _coordinates(scenario.at, ()) for entry in entries for scenario in entry.scenarios}
    known = [{**record._asdict(), "path": str(record.path), **at.get(record.scenario, {})} for record in records]
    about = pd.DataFrame(known)
    frame = about.drop(columns=[] if about["role"].all() else "role").merge(rows, on="path").drop(columns="path")
    metrics = [metric for entry in entries for metric in (*entry.metrics, *entry.spreads)]
    frame["unit"] = _units(frame["metric"], {metric.name: metric.unit for metric in metrics})
    return frame.drop_duplicates([name for name in frame if name not in ("value", "unit")])


def _coordinates(at: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    """Return the coordinates of a scenario; one that is called as another column gets `at.` before its name."""
    return {f"at.{name}" if name in (*BEFORE, *AFTER, *taken) else name: value for name, value in at.items()}


def _units(metrics: pd.Series, published: Mapping[str, str]) -> pd.Series:
    """Return the units of metrics by their names, as evaluators or else artefacts declare them; "" where none does."""
    known = {**published} | {name: metric.unit for name, metric in catalogue.metrics().items()} | UNITS
    return metrics.map(known).fillna("")


def _joined(parts: list[pd.DataFrame], nothing: str) -> pd.DataFrame:
    """Return the frames of all papers as one; `UserError` where there is none."""
    if not parts:
        raise UserError(f"{nothing}; make them first.")
    return pd.concat(parts, ignore_index=True)


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the coordinates of scenarios after these."""
    coordinates = [name for name in frame if name not in (*BEFORE, *AFTER)]
    return frame[[name for name in (*BEFORE, *coordinates, *AFTER) if name in frame]]


def _of(paper: str, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(paper=paper)[["paper", *frame]]
