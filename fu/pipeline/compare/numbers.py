"""Which numbers of a table or figure differ between two runs, and by how much.

Compared are the per-seed rows (`*.rows.csv`) and, where these are equal, the numbers shown (`*.csv`). Differences are
given in standard deviations over seeds. Measured times differ from run to run and are counted separately.
"""

from math import inf, isfinite, isnan, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fu.artefacts.entry import SECONDS
from fu.artefacts.rows import COLUMNS
from fu.contents import require_file
from fu.pipeline.page.made import Artefact

TIMES = {"runtime": {SECONDS, "ratio"}}  # kind -> metrics that are measured times (others: seconds alone)
LABELS = (  # say which row it is
    *("claim", "statement", "system", "scenario", "panel", "line", "training", "method", "point", "setting", "x"),
    *("stage", "audit", "attack", "metric", "quantity", "cost"),
)
NUMBERED = ("client", "round")
FAR = 0.05  # of numbers up to 1, and of larger ones in proportion: more than that is far apart
FARTHEST = 0.7  # likewise: more than another CPU makes of any number (docs/measurements/machine.md, Other CPUs)
COUNTS = ("n", "diverged")  # of seeds: nearly always the same, so they would hide how many numbers differ
UNUSED = ("", "-1")  # what a row has in a column that is not its own


class Difference(NamedTuple):
    """Two numbers, or texts, of the same cell. `spread`: the standard deviation over seeds; NaN: there is none."""

    artefact: str
    cell: str
    first: str
    second: str
    spread: float = nan
    seeds: int = 1  # on which the cell differs; the numbers are those of the seed with the largest difference

    @property
    def change(self) -> float:
        """The second number less the first; NaN where one is missing or a text."""
        return _value(self.second) - _value(self.first)

    @property
    def far(self) -> bool:
        """Whether it is more than rounding makes of small data; what is missing or a text always is."""
        return not self.size <= FAR

    @property
    def size(self) -> float:
        """The absolute difference; between numbers above 1 in proportion to the larger one; NaN as in `change`."""
        return abs(self.change) / max(1, abs(_value(self.first)), abs(_value(self.second)))

    @property
    def rank(self) -> tuple[bool, float]:
        """Increases with the difference: in deviations, then those without in proportion to the numbers."""
        if not isfinite(self.change):
            return True, inf
        if isnan(self.spread):
            return False, abs(self.change) / max(abs(_value(self.first)), abs(_value(self.second)))
        return True, abs(self.change) / self.spread if self.spread else inf

    def __str__(self) -> str:
        if isnan(self.change):
            return f"{self.artefact}  {self.cell}: {self.first or 'none'} -> {self.second or 'none'}"
        far = f", {self.rank[1]:.2g} standard deviations over seeds" if self.spread else ", no variation over seeds"
        more = f"; {self.seeds} seeds differ" if self.seeds > 1 else ""
        told = "" if isnan(self.spread) else far
        return f"{self.artefact}  {self.cell}: {self.first} -> {self.second} ({self.change:+.3g}{told}{more})"


class Numbers(NamedTuple):
    """What comparing tables found. `compared`: how many numbers; `times`: measured times, of which some `moved`."""

    differences: list[Difference]
    compared: int
    times: int
    moved: int

    @property
    def far(self) -> float:
        """The share of numbers that are far apart; infinite where tables have other rows."""
        number = sum(one.far for one in self.differences)
        return number / self.compared if self.compared else inf if number else 0

    @property
    def farthest(self) -> float:
        """The largest `size` of a difference between two numbers."""
        return max((one.size for one in self.differences if isfinite(one.change)), default=0.0)


def compared(name: str, kind: str, a: Artefact, b: Artefact) -> Numbers:
    """Compare the rows behind an artefact, where both runs have them; where all are equal, what it shows."""
    times = TIMES.get(kind, {SECONDS})
    files = [artefact.file("rows.csv") for artefact in (a, b)]
    rows = _rows(name, times, *map(_table, files)) if all(map(Path.exists, files)) else Numbers([], 0, 0, 0)
    shown = _shown(name, times, *(_table(artefact.file("csv")) for artefact in (a, b)))
    return Numbers(
        rows.differences or shown.differences,
        rows.compared + shown.compared,
        rows.times + shown.times,
        rows.moved + shown.moved,
    )


def _table(path: Path) -> pd.DataFrame:
    """Return a CSV file as texts."""
    require_file(path)
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _rows(name: str, times: set[str], a: pd.DataFrame, b: pd.DataFrame) -> Numbers:
    """Compare rows seed by seed; those of one cell differ in seed and value alone."""
    keys = [column for column in dict.fromkeys([*COLUMNS, *a, *b]) if column != "value"]
    first, second = (frame.reindex(columns=[*keys, "value"], fill_value="") for frame in (a, b))
    first, second = (frame.assign(copy=frame.groupby(keys).cumcount()) for frame in (first, second))  # of equal keys
    both = first.merge(second, on=[*keys, "copy"], how="outer", suffixes=("_a", "_b")).fillna("")
    timed = both["metric"].isin(times)
    unequal = pd.Series([not _same(*pair) for pair in zip(both["value_a"], both["value_b"], strict=True)], dtype=bool)
    cell = [key for key in keys if key != "seed"]
    number = both.groupby(cell).ngroup()
    differences = []
    for _, part in both[number.isin(number[unequal & ~timed])].groupby(cell):
        spread = _spread(part["value_a"].map(_value), part["value_b"].map(_value))
        apart = part[unequal[part.index]]
        several = [
            Difference(name, _cell(row), str(row["value_a"]), str(row["value_b"]), spread, len(apart))
            for row in apart[[*keys, "value_a", "value_b"]].to_dict("records")
        ]
        differences.append(max(several, key=lambda one: one.rank))
    return Numbers(differences, int((~timed).sum()), int(timed.sum()), int((unequal & timed).sum()))


def _spread(*sides: pd.Series) -> float:
    """Return the standard deviation over seeds, pooled over the sides that have two or more; NaN where none has."""
    variances = [float(side.var()) for side in sides if side.notna().sum() > 1]
    return sqrt(sum(variances) / len(variances)) if variances else nan


def _shown(name: str, times: set[str], a: pd.DataFrame, b: pd.DataFrame) -> Numbers:
    """Compare the numbers that an artefact shows, place by place."""
    if [*a] != [*b] or len(a) != len(b):
        first, second = (f"{len(frame)} rows of {', '.join(map(str, frame))}" for frame in (a, b))
        return Numbers([Difference(name, "table", first, second)], 0, 0, 0)
    columns = [column for column in a if column not in (*LABELS, *NUMBERED)]
    differences, compared, timed, moved = list[Difference](), 0, 0, 0
    for place, (one, two) in enumerate(zip(a.to_dict("records"), b.to_dict("records"), strict=True), 1):
        where = _cell(one) or f"row {place}"
        if other := [key for key in (*LABELS, *NUMBERED) if one.get(key) != two.get(key)]:
            differences.append(Difference(name, f"row {place}", where, _cell(two) or other[0]))
            continue
        for column in columns:
            same = _same(one[column], two[column])
            if times & {one.get("metric"), one.get("cost")}:
                timed, moved = timed + (not isnan(_value(one[column]))), moved + (not same)
            else:
                compared += not isnan(_value(one[column])) and column not in COUNTS
                if not same:
                    spread = _value(one.get("std", "")) if column == "mean" else nan
                    cell = f"{where}, {column}"
                    differences.append(Difference(name, cell, one[column], two[column], spread))
    return Numbers(differences, compared, timed, moved)


def _cell(row: dict[Any, Any]) -> str:
    """Return in words what a row is of: "iid, fedosd, recovered, asr, seed 0"."""
    parts = [row[key] for key in LABELS if row.get(key)]
    parts += ["the paper's own"] if row.get("published") == "1" else []
    parts += [f"{key} {row[key]}" for key in (*NUMBERED, "seed") if row.get(key, "") not in UNUSED]
    return ", ".join(dict.fromkeys(parts))


def _same(first: str, second: str) -> bool:
    return first == second or _value(first) == _value(second)


def _value(text: str) -> float:
    """Return a number, or NaN for a text that is none."""
    try:
        return float(text)
    except ValueError:
        return nan
