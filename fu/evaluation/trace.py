"""The columns of a trace: what the traced evaluators measure in a round, and the counts of `Cost`. Imports no torch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COUNTS = (
    *("client_rounds", "forgotten_rounds", "steps", "samples", "time_steps", "replayed"),
    *("bytes_up", "bytes_down", "stored"),
)
TIMES = ("time_steps", "replayed")


def columns(traced: Iterable[Sequence[str]], rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns of a trace: round, what is traced, counts, and whatever else the rows hold.

    `traced`: the `TRACE` of each traced evaluator, in order.
    """
    known = ["round", *(name for names in traced for name in names), *COUNTS]
    return tuple(dict.fromkeys([*known, *(name for row in rows for name in row)]))
