"""Two runs of one artefact, with numbers that are known."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fu.artefacts.entry import Entry
from fu.artefacts.rows import COLUMNS
from tests.pipeline.page.folder import EVALUATION, ROOT, certify, copied, put

Row = dict[str, Any]
SHOWN = "loss,value\nCE,1\n"


def csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV; those that say no more are of the attack success rate of `ours` in `small`."""
    usual = {"scenario": "small", "method": "ours", "stage": "recovered", "round": -1, "metric": "asr", "published": 0}
    columns = dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)])
    lines = [[str({**usual, **row}.get(column, "")) for column in columns] for row in rows]
    return "".join(",".join(line) + "\n" for line in [[*columns], *lines])


def run(folder: Path, entry: Entry, rows: Sequence[Row], shown: str = SHOWN, **about: Any) -> Path:
    """Return the results of a preset with `toy_thing` and, where there were none, `toy_other` without rows."""
    stem = ROOT / "artefacts/toy/thing"
    if not ROOT.exists():
        put(entry, **about).with_name("thing.csv").write_text(SHOWN)
        copied(stem, "other")
    stem.with_name("thing.rows.csv").write_text(csv(rows))
    stem.with_name("thing.csv").write_text(shown)
    certify(stem, "publish", {"results": [EVALUATION]})
    shutil.copytree(ROOT, folder)
    return folder
