"""The published numbers (workflow/published), checked row by row against the paper's file before the first job."""

import csv
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from fu.artefacts.entry import ORIGINAL
from fu.errors import UserError, nearest
from fu.pipeline.provenance import catalogue
from fu.pipeline.settings.records import Paper

COLUMNS = ("scenario", "method", "stage", "metric", "value")
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?([eE][+-]?\d{1,2})?")


class Row(NamedTuple):
    """One number of the paper; `method` may be a point of a grid: stability+lambda1."""

    scenario: str
    method: str
    stage: str
    metric: str
    value: str


def check(path: Path, paper: Paper, kind: str, stated: Collection[str] = ()) -> None:
    """Raise `UserError` where a file is malformed, has an unknown name, or gives a number twice.

    `stated`: scenarios that the paper has and the preset leaves out.
    """
    further = catalogue.declared("artefacts", kind).get("PUBLISHED", {})  # further names of this kind
    metrics = catalogue.metrics()
    fractions = {name for name, metric in metrics.items() if metric.unit == "fraction"}
    roles = {name: {"unlearned", *(["recovered"] * (m.post_training == "after"))} for name, m in paper.methods.items()}
    roles |= {name: {ORIGINAL} for name in (ORIGINAL, *paper.trainings)}
    known = {*metrics, *further.get("metrics", ())}
    seen: dict[Row, int] = {}
    for line, row in _rows(path):
        where = f"{path.parent.name}/{path.name}: line {line}"
        method = _method(row.method, paper)
        for what, name, allowed in (
            ("scenario", row.scenario, {*paper.scenarios, *stated}),
            ("method", method, roles),
            ("stage", row.stage, further.get("stages") or roles.get(method, {})),
            ("metric", row.metric, known),
        ):
            if name not in allowed:
                of = f" of {row.method!r}" if what == "stage" else ""
                raise UserError(f"{where}: there is no {what} {name!r}{of}{nearest(name, allowed)}.")
        if not NUMBER.fullmatch(row.value):
            raise UserError(f"{where}: the value must be a number, got {row.value!r}.")
        if row.metric in fractions and not 0 <= float(row.value) <= 1:
            raise UserError(f"{where}: {row.metric!r} must be a fraction (0 to 1), not a percentage, got {row.value}.")
        before = seen.setdefault(row._replace(value=""), line)
        if before != line:
            raise UserError(f"{where}: duplicates line {before}.")


def _method(name: str, paper: Paper) -> str:
    """Return the method of a point of its grid, if the name is one; else the name."""
    method, _, point = name.partition("+")
    grid = paper.methods[method].settings.get("grid", {}) if method in paper.methods else {}
    pattern = "-".join(rf"{re.escape(key.rpartition('.')[2])}\d\S*" for key in grid)
    return method if grid and re.fullmatch(pattern, point) else name


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield each row below the header with its line number; blank lines are skipped."""
    where = f"{path.parent.name}/{path.name}"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if (header := next(lines, [])) != list(COLUMNS):
                raise UserError(
                    f"{where}: line 1: the columns must be {', '.join(COLUMNS)}, got {', '.join(header)!r}."
                )
            for fields in lines:
                if len(fields) not in (0, len(COLUMNS)):
                    raise UserError(
                        f"{where}: line {lines.line_num}: must have {len(COLUMNS)} fields, got {len(fields)}."
                    )
                if fields:
                    yield lines.line_num, Row(*fields)
    except UnicodeDecodeError:
        raise UserError(f"{where}: is not valid CSV (not UTF-8).") from None
    except csv.Error as error:
        raise UserError(f"{where}: line {lines.line_num}: is not valid CSV ({error}).") from None
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror}).") from None
