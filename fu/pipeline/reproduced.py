"""Verdicts so far, as `make docs` shows them: the README's table of papers, and a page with every claim.

`docs/measurements/verdicts` keeps, for each run, the `verdicts.csv` and `verdicts.json` that it made, as {paper}-{run}.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fu.artefacts.rows import FORMULAS
from fu.artefacts.verdicts import ALL, several
from fu.claims.testing import unseen
from fu.pipeline.digest import ROOT
from fu.pipeline.settings import papers
from fu.pipeline.settings.reference import rows

PAGE = "measurements/verdicts.md"
START, END = "<!-- verdicts: made by make docs -->\n", "<!-- end of verdicts -->\n"
HEAD = (
    *("claim", "place", "verdict", "in scenarios", "mean and interval"),
    *("seeds (unseen)", "the paper's own numbers"),
)
SHOWN = 3  # scenarios that are named
OURS = ("our own control", "our criterion")
BEYOND = "No paper's claims, but controls of our own and what we ask of every method:"
KINDS = ("holds", "does not hold", "undecided")


class Run(NamedTuple):
    """What one run judged: the paper's claims, and those that it judged, each in all scenarios and in every one."""

    paper: str
    claims: list[str]  # the place of each
    about: dict[str, Any]
    found: pd.DataFrame

    @property
    def overall(self) -> pd.DataFrame:
        """The judged claims, over all scenarios."""
        return self.found[(self.found["scenario"] == ALL) & (self.found["verdict"] != "not judged")]

    @property
    def scale(self) -> str:
        """Scenarios, of more than three the data and the artefacts that were judged; preset and seeds, in words."""
        scenarios, number = self.about["spec"]["scenarios"], len(self.about["spec"]["seeds"])
        labels = {one["name"]: one["label"] for one in scenarios} | {FORMULAS: FORMULAS}
        judged = self.found[(self.found["verdict"] != "not judged") & (self.found["scenario"] != ALL)]
        names = judged["scenario"].unique()
        if len(names) <= SHOWN and labels.keys() >= set(names):
            where = "; ".join(labels[name] for name in names)
        else:
            asked = [{*name.split("-")} for name in names]  # a family's name lacks what varies in it
            data = dict.fromkeys(
                one["data"] for one in scenarios if any(few <= {*one["name"].split("-")} for few in asked)
            )
            where = f"{', '.join(data)} ({', '.join(sorted(judged['artefact'].unique()))})"
        return f"{where}; preset {self.about['preset']}, {number} seed{'s' * (number > 1)}"


def runs(folder: Path = ROOT / "docs/measurements/verdicts") -> list[Run]:
    """Return the runs of a folder, by name."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        paper = path.stem.partition("-")[0]
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        frame = pd.read_csv(path, keep_default_na=False, na_values={"mean": "", "low": "", "high": ""})
        found.append(Run(paper, places(paper), about, frame))
    return found


def places(paper: str) -> list[str]:
    """Return where each claim of a paper's file comes from."""
    return [claim["place"] for claim in papers.read_paper(paper)["claims"].values()]


def ours(place: str) -> bool:
    """Whether a claim is our own control or criterion rather than a paper's."""
    return place.startswith(OURS)


def table(found: list[Run]) -> str:
    """Return the README's tables, a row per run: claims of papers, then our own controls and criteria."""
    counted = {own: [_counted(run, own) for run in found if _of(run.overall, own).any()] for own in (False, True)}
    columns = ("hold", "do not hold", "undecided", "scale")
    text = rows(("paper", "claims judged", *columns), counted[False])
    if not counted[True]:
        return text
    return f"{text}\n\n{BEYOND}\n\n{rows(('artefacts', 'controls and criteria judged', *columns), counted[True])}"


def _of(claims: pd.DataFrame, own: bool) -> "pd.Series[bool]":
    return claims["place"].map(ours).astype(bool) == own


def _counted(run: Run, own: bool) -> tuple[str, ...]:
    here = run.overall[_of(run.overall, own)]
    counts = Counter(here["verdict"])
    judged = f"{len(here)} of {sum(ours(place) == own for place in run.claims)}"
    return f"[{run.paper}](docs/papers/{run.paper}.md)", judged, *(str(counts[kind]) for kind in KINDS), run.scale


def page(found: list[Run]) -> str:
    """Return the page with every claim that was judged."""
    text = [
        "# Verdicts so far",
        "Made by `make docs` from the `verdicts.csv` of the runs named here. "
        "On real data, or on formulas: quadratics on which theorems are computed. Intervals are at the level that "
        "decides, corrected for the number of scenarios and rivals: of 95% where there is one scenario. Unseen: the "
        "share of all seeds that may be exceptions (with 95% confidence) though none of these is; [levels](levels.md).",
    ]
    for run in found:
        again = f" {run.about['again']}" if "again" in run.about else ""
        text += [
            f"## {run.paper}: {run.scale}",
            f"{len(run.overall)} of {len(run.claims)} claims judged; commit {run.about['commit'][:7]}.{again}",
        ]
        parts = {own: list(_lines(run, own)) for own in (False, True)}
        text += [rows(HEAD, parts[False])] if parts[False] else []
        text += [BEYOND, rows(HEAD, parts[True])] if parts[True] else []
    return "\n\n".join(text) + "\n"


def _lines(run: Run, own: bool) -> Iterator[tuple[str, ...]]:
    for claim in run.overall[_of(run.overall, own)].to_dict("records"):
        every = run.found[(run.found["claim"] == claim["claim"]) & (run.found["scenario"] != ALL)]
        numbers = [
            f"{one.mean:.3g} ({one.low:.3g} to {one.high:.3g})" for one in every[every["low"].notna()].itertuples()
        ]
        yield (
            claim["text"],
            claim["place"],
            f"**{claim['verdict']}**" + (f" (over {claim['over']})" if claim["over"] else ""),
            several(every["verdict"]),
            "; ".join([*numbers, *dict.fromkeys(note for note in every["note"] if note)]) or "–",
            f"{claim['n']} ({unseen(claim['n']):.0%})" if claim["n"] > 1 else "–",
            several(every[every["published"] != ""]["published"]),
        )


def renewed(text: str, found: list[Run]) -> str:
    """Return the README's text with the table of these runs."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return f"{before}{start}\n{table(found)}\n\n{end}{after}"
