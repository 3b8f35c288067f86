"""Compare the numbers of two runs: folders of a preset, bundles, or folders of tables, such as `docs/expected/smoke`.

Compared are, of each table and figure that both have, the rows behind it, seed by seed (`*.rows.csv`), and where these
are equal the numbers that it shows (`*.csv`). Measured times are left out.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from math import inf, nan
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fu.artefacts.entry import SECONDS
from fu.contents import require_file
from fu.errors import UserError
from fu.pipeline.bundle.check import opened
from fu.pipeline.page.made import Artefact, read
from fu.pipeline.provenance.certificate import Certificate

TIMES = (SECONDS, "ratio")  # metrics and costs: measured times and their ratios
LABELS = (  # columns that identify a row
    *("claim", "statement", "system", "scenario", "panel", "line", "training", "method", "point", "setting", "x"),
    *("stage", "audit", "attack", "metric", "quantity", "cost", "client", "round"),
)
NUMBERED = ("client", "round", "seed")
UNUSED = ("", "-1")  # what a row has in a column that is not its own
LINES = 20  # of differences that are printed


class Comparison(NamedTuple):
    """Two runs compared, in words; `equal`: no number differs and no file is damaged."""

    lines: list[str]
    equal: bool


class Run(NamedTuple):
    """Tables and figures by target, and a sentence on each that cannot be read."""

    artefacts: dict[str, Artefact]
    wrong: dict[str, str]


def compare(first: Path, second: Path, targets: Sequence[str] = ()) -> Comparison:
    """Compare two runs, or those tables and figures that `targets` name; `UserError` where there is nothing."""
    with _run(first, targets) as a, _run(second, targets) as b:
        shared = sorted(a.artefacts.keys() & b.artefacts.keys())
        wrong = [f"{name}: {text}" for name, run in (("A", a), ("B", b)) for text in run.wrong.values()]
        known = {name for run in (a, b) for name in (*run.artefacts, *run.wrong)}
        if unknown := [target for target in targets if target not in known]:
            raise UserError(f"{first} and {second}: have no table or figure {unknown[0]!r}.")
        if not shared:
            raise UserError(" ".join([f"{first} and {second}: have no table or figure in common.", *wrong]))
        tables = {name: _differences(a.artefacts[name], b.artefacts[name]) for name in shared}
        lines = [f"A: {first}, B: {second}", *wrong]
        for name, one, other in (("A", a, b), ("B", b, a)):
            if alone := sorted(one.artefacts.keys() - other.artefacts.keys()):
                lines.append(f"Only in {name}: {', '.join(alone)}")
        certified = all(artefact.made.key for run in (a, b) for artefact in run.artefacts.values())
        lines += [*(_provenance(a, b, shared) if certified else ()), *_largest(tables)]
        if wrong:
            what = "table or figure" if len(wrong) == 1 else "tables or figures"
            lines.append(f"Not compared, for the reasons above: {len(wrong)} {what}")
        return Comparison(lines, not wrong and all(unequal.empty for unequal, _ in tables.values()))


@contextmanager
def _run(path: Path, targets: Sequence[str]) -> Iterator[Run]:
    """Read a run; the files of a bundle are there as long as they are needed."""
    if not path.is_dir():
        with opened(path) as (_, root, _):
            yield _only(targets, *read(root / "artefacts"))
    elif (path / "artefacts").is_dir():
        yield _only(targets, *read(path / "artefacts"))
    elif tables := sorted(file for file in path.glob("*/*.csv") if not file.name.endswith(".rows.csv")):
        bare = Certificate("", "", {}, "", {}, {})
        yield _only(targets, [Artefact(file.with_suffix(""), bare) for file in tables], {})
    else:
        raise UserError(
            f"{path}: has neither a folder 'artefacts', like results/smoke, nor tables, like docs/expected/smoke."
        )


def _only(targets: Sequence[str], artefacts: list[Artefact], wrong: dict[str, str]) -> Run:
    named = {"_".join(artefact.key): artefact for artefact in artefacts}
    return Run(
        {name: artefact for name, artefact in named.items() if not targets or name in targets},
        {name: text for name, text in wrong.items() if not targets or name in targets},
    )


def _differences(a: Artefact, b: Artefact) -> tuple[pd.DataFrame, int]:
    """Return the unequal numbers, with their columns A, B and `size`, and how many were compared."""
    compared, unequal = 0, pd.DataFrame()
    for file in ("rows.csv", "csv"):
        if not (a.file(file).is_file() and b.file(file).is_file()):
            continue
        both = pd.concat({"A": _cells(a.file(file)), "B": _cells(b.file(file))}, axis=1)
        numeric = both.map(_number).notna().any(axis=1)
        compared += int(numeric.sum())
        both["size"] = [_size(one, two) for one, two in zip(both["A"], both["B"], strict=True)]
        if unequal.empty:
            unequal = both[both["size"] != 0]
    return unequal, compared


def _cells(path: Path) -> pd.Series:
    """Return the texts of a CSV file by row (in words), place among rows that read the same, and column."""
    require_file(path)
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError:
        raise UserError(f"{path}: is not valid CSV.") from None
    frame = frame[~frame[[name for name in ("metric", "cost") if name in frame]].isin(TIMES).any(axis=1)]
    of_seeds = path.name.endswith(".rows.csv")
    labels = [name for name in frame if (name != "value" if of_seeds else name in LABELS)]
    rows = pd.Series([_describe(row) for row in frame[labels].to_dict("records")], frame.index, dtype=str)
    index = pd.MultiIndex.from_arrays([rows, rows.groupby(rows).cumcount()], names=["cell", "place"])
    cells = frame.drop(columns=labels).set_axis(index).rename_axis(columns="column").stack()
    assert isinstance(cells, pd.Series)
    return cells


def _describe(row: dict[Hashable, str]) -> str:
    """Return in words what a row is of: "small, ours, recovered, seed 0, asr"."""
    parts = []
    for name, value in row.items():
        if name == "published":
            parts += ["the paper's own"] if value == "1" else []
        elif value not in UNUSED:
            parts.append(f"{name} {value}" if name in NUMBERED else value)
    return ", ".join(dict.fromkeys(parts))


def _number(text: object) -> float:
    """Return a number, or NaN for what is none."""
    try:
        return float(str(text))
    except ValueError:
        return nan


def _size(first: object, second: object) -> float:
    """Return how far two cells are apart, above 1 in proportion; infinite if one is missing, NaN of texts."""
    if first == second:
        return 0.0
    if not (isinstance(first, str) and isinstance(second, str)):
        return inf
    one, two = _number(first), _number(second)
    return abs(one - two) / max(1, abs(one), abs(two))


def _provenance(a: Run, b: Run, shared: Sequence[str]) -> Iterator[str]:
    """Yield what made the shared tables and figures, where it differs."""
    sides = [[_about(run.artefacts[name]) for name in shared] for run in (a, b)]
    for key in dict.fromkeys(key for side in sides for about in side for key in about):
        one, two = (", ".join(sorted({about.get(key, "none") for about in side})) for side in sides)
        if one != two:
            yield f"{key}: {one} in A, {two} in B"


def _about(artefact: Artefact) -> dict[str, str]:
    about = artefact.about
    several = {name: " and ".join(map(str, about[name])) or "none" for name in ("devices", "threads")}
    versions = {f"version of {library}": text for library, text in about["versions"].items()}
    return {"commit": artefact.commit, "preset": about["preset"], **several, **versions}


def _largest(tables: dict[str, tuple[pd.DataFrame, int]]) -> Iterator[str]:
    """Yield which numbers differ, the largest differences first; what is missing or a text before all."""
    number = sum(compared for _, compared in tables.values())
    unequal = pd.concat({name: part for name, (part, _) in tables.items()}, names=["name"])
    if unequal.empty:
        yield f"Numbers: all {number} are equal"
        return
    cells = "1 cell differs" if len(unequal) == 1 else f"{len(unequal)} cells differ"
    yield f"Numbers: {number} compared; {cells}, largest differences first:"
    worst = unequal.sort_values("size", ascending=False, kind="stable", key=lambda size: size.fillna(inf))
    for (name, cell, _, column), one, two, size in worst[:LINES].itertuples():
        where = ", ".join(filter(None, [cell, "" if column == "value" else column]))
        change = f" ({float(two) - float(one):+.3g})" if size < inf else ""
        first, second = (text if isinstance(text, str) and text else "none" for text in (one, two))
        yield f"  {name}  {where}: {first} -> {second}{change}"
    if len(worst) > LINES:
        yield f"  and {len(worst) - LINES} more"
