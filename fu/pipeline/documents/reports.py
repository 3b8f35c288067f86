"""A reproducibility report per paper: docs/reports/{paper}.md.in, with numbers from kept runs.

`make docs` fills in the numbers, so none can differ from the CSV it comes from. In a template,
`{{ claim("mnist", "falls-less", "mnist-samples") }}` is the mean of a claim with its interval, `printed(...)` the same
of the paper, `cell("mnist/table1.csv", "mean", method="fats", metric="accuracy")` any other cell, `verdicts("mnist")` a
table of all claims that a run judged, `counts()` how many are, and `hours("mnist")` what a run took.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import isinf
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from fu.artefacts.entry import OWN
from fu.artefacts.rows import FORMULAS
from fu.artefacts.verdicts import ALL, several
from fu.claims.testing import MOST
from fu.errors import UserError, nearest
from fu.pipeline.documents import reproduced
from fu.pipeline.documents.kept import Kept
from fu.pipeline.documents.reference import rows
from fu.pipeline.plan.estimates import counted
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings import papers

FOLDER = ROOT / "docs/reports"
TEMPLATE = ".md.in"
NONE = "–"
LEGEND = (
    "Most numbers are differences; where there are several rivals, ours is from the one that decides the verdict (the "
    "least certain comparison, not always the best rival), the paper's from its best. For a trend the number is the "
    "fitted change from the smallest to the largest value of the coordinate, negative where the quantity falls as the "
    "coordinate grows. A cell with several numbers has one per scenario. Intervals are at the level that decides the "
    "verdict (95% before correction). (ours): not a claim of the paper."
)
EACH = 4  # scenarios whose numbers a table shows; of more, the least and the largest


class Numbers:
    """The numbers in the kept runs of a paper; methods raise `UserError` for one that is not there, or was edited."""

    def __init__(self, runs: Mapping[str, Kept]) -> None:
        """`runs`: by name."""
        self.runs = runs
        self._read = cache(lambda path: pd.read_csv(path, dtype=str, keep_default_na=False))
        self._changed = cache(lambda run: [name for one in reproduced.runs([self._run(run)]) for name in one.changed])

    def cell(self, file: str, column: str, **where: object) -> str:
        """Return one cell of a CSV (`run/name.csv`): that of the only row with these values."""
        run, _, name = file.partition("/")
        table = self._table(run, name)
        for key in (column, *where):
            if key not in table:
                raise UserError(f"{file} has no column {key!r}{nearest(key, table.columns)}.")
        found = table[(table[[*where]] == [str(value) for value in where.values()]).all(axis=1)]
        if len(found) != 1:
            raise UserError(f"{file} has {len(found)} rows with {where}; one is needed.")
        return str(found[column].iloc[0])

    def number(self, file: str, column: str, **where: object) -> str:
        """Return one number of a CSV, with three digits."""
        return short(self.cell(file, column, **where))

    def claim(self, run: str, name: str, scenario: str) -> str:
        """Return mean and interval of a claim in a scenario."""
        return _interval(*(self._verdict(run, name, scenario, key) for key in ("mean", "low", "high")))

    def printed(self, run: str, name: str, scenario: str) -> str:
        """Return the same number of the paper."""
        return short(self._verdict(run, name, scenario, "published_value"))

    def needed(self, run: str, name: str) -> str:
        """Return how many seeds would decide a claim with a power of one half, and of nine tenths."""
        known = [self._verdict(run, name, ALL, key) for key in ("needed", "needed_90")]
        if self._verdict(run, name, ALL, "verdict") != "undecided" or "" in known:
            raise UserError(f"{run}: how many seeds would decide {name!r} is not known, or it is decided.")
        numbers = [float(one) for one in known]
        words = dict.fromkeys(f"more than {MOST:,}" if isinf(one) else f"{one:.0f}" for one in numbers)
        return f"{' to '.join(words)} seeds"

    def counts(self) -> str:
        """Return a sentence: how many of the paper's claims are judged, and how."""
        number, known, holds, fails, undecided = reproduced.counted(reproduced.runs([*self.runs.values()]), own=False)
        held, failed = f"{holds} {'holds' if holds == 1 else 'hold'}", f"{fails} {'does' if fails == 1 else 'do'} not"
        judged = f"All {number} of the paper's claims" if known == number else f"{known} of the paper's {number} claims"
        return (
            f"{judged} have been judged: {held}, {failed}, {undecided} {'is' if undecided == 1 else 'are'} undecided."
        )

    def legend(self) -> str:
        """Return the note that explains the numbers in a table of verdicts."""
        return LEGEND

    def hours(self, run: str) -> str:
        """Return the core hours of a run."""
        hours = self._run(run).about.hours
        if hours is None:
            raise UserError(f"{self._run(run).folder}: its hours are not known.")
        return f"{hours:.1f}"

    def seeds(self, run: str) -> str:
        """Return the number of seeds of a run."""
        return counted(len(self._run(run).about.seeds), "seed")

    def verdicts(self, run: str) -> str:
        """Return a table of all claims that a run judged."""
        table, lines = self._table(run, reproduced.CSV), []
        table = table[~table["claim"].isin(self._changed(run))]
        claims = papers.read_paper(self._run(run).paper)["claims"]  # a citation may be corrected
        for claim in table[(table["scenario"] == ALL) & (table["verdict"] != "not judged")].to_dict("records"):
            each = table[(table["claim"] == claim["claim"]) & (table["scenario"] != ALL)]
            known = each[(each["low"] != "") & (each["scenario"] != FORMULAS)]
            ours = [_interval(*row) for row in known[["mean", "low", "high"]].to_numpy()]
            if len(ours) > EACH:
                means = known["mean"].astype(float)
                ours = [f"{short(means.min())} to {short(means.max())} in {len(ours)} scenarios"]
            theirs = [short(value) for value in each["published_value"] if value]
            more = [several(each["verdict"])] if each["verdict"].nunique() > 1 else []
            more += [f"over {claim['over']}"] if claim["over"] else []
            verdict = f"**{claim['verdict']}**" + (f" ({'; '.join(more)})" if more else "")
            whose = " (ours)" if claims[claim["claim"]]["place"].startswith(OWN) else ""
            lines.append((f"{claim['text']}{whose}", verdict, "; ".join(ours) or NONE, "; ".join(theirs) or NONE))
        return rows(("claim", "verdict", "here (interval)", "paper"), lines)

    def _verdict(self, run: str, name: str, scenario: str, column: str) -> str:
        if name in self._changed(run):
            raise UserError(f"{run}: the claim {name!r} has changed since it was judged.")
        return self.cell(f"{run}/{reproduced.CSV}", column, claim=name, scenario=scenario)

    def _run(self, name: str) -> Kept:
        if name not in self.runs:
            raise UserError(f"there is no kept run {name!r}{nearest(name, self.runs)}.")
        one = self.runs[name]
        if one.wrong:
            raise UserError(f"{one.folder}: {one.wrong[0]}; a report shows what was kept.")
        return one

    def _table(self, run: str, name: str) -> pd.DataFrame:
        one = self._run(run)
        if name not in one.about.files:
            raise UserError(f"{one.folder} keeps no {name!r}{nearest(name, one.about.files)}.")
        return self._read(one.folder / name)


def short(number: object) -> str:
    """Return a number with three digits, as the other pages write it: 14.8, .25, -.00021."""
    value = float(str(number))
    text = f"{value:.3g}" if value == 0 or abs(value) >= 1e-4 else f"{value:.6f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _interval(mean: str, low: str, high: str) -> str:
    return f"{short(mean)} ({short(low)} to {short(high)})"


def reports(runs: Sequence[Kept], folder: Path = FOLDER) -> dict[str, str]:
    """Return the reports by their paths below docs/; `UserError` where a template asks for what no run keeps."""
    engine = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, keep_trailing_newline=True)
    texts = {}
    for path in sorted(folder.glob(f"*{TEMPLATE}")):
        paper = path.name.removesuffix(TEMPLATE)
        numbers = Numbers({one.name: one for one in runs if one.paper == paper})
        names = {name: getattr(numbers, name) for name in dir(Numbers) if not name.startswith("_")}
        try:
            texts[f"reports/{paper}.md"] = engine.get_template(path.name).render(names)
        except (TemplateError, UserError) as error:
            raise UserError(f"{path}: {error}") from None
    return texts
