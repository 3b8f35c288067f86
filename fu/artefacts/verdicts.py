"""Verdicts on the paper's claims: in each scenario and overall, for our numbers and for the paper's own.

`fu.claims.judging` defines statistics, levels and undecided. Not judged is what rests on other data
than the paper's, on an attack that left nothing to forget, on rivals whose learning rates were chosen from fewer
values, or on runs without numbers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fu.artefacts.entry import Claim, Entry
from fu.artefacts.panels import Panels, grid
from fu.artefacts.result import Result, of_table
from fu.claims.judging import NO_SEED, Judged, judge, overall, stands
from fu.claims.testing import LEAST, MOST, unseen

INPUTS = ("artefacts",)
TABLE = True
ALL = ""  # in place of a scenario: all of them
COLUMNS = ["claim", "scenario", "verdict", "over", "mean", "low", "high", "n", "needed", "needed_90", "note"]
COLUMNS += ["published", "published_value", "reason", "against", "text", "place", "artefact", "kind"]
TERMS = (
    "Each claim is a predicate over the numbers of its table or figure, seed by seed. It holds, or does not, by a "
    "one-sided t-test at 2.5%, corrected for the number of scenarios (Holm) and of rivals; else it is undecided. "
    "Overall it holds if it holds in every judged scenario, and does not if it does not in one. Mean and interval are "
    "those of the deciding rival; the interval has the level of the verdict that the mean favours: 95% with one "
    "scenario and, where the mean contradicts the claim, one rival (97.5% where it contradicts an equality). A mean "
    f"needs at least {LEAST} seeds. Unseen: the "
    "share of all seeds that may be exceptions (with 95% confidence) though none of these is; where seeds form two "
    "groups far apart, none is stated, and the groups' shares are tested exactly, too. A diverged run counts as "
    "infinitely bad, a time that never ends as infinite: where there is one, the median is tested, by signs. Would "
    "decide: the seeds for a power of one half and of nine tenths in that scenario, if mean and standard deviation "
    "stay as observed. A number with its own interval, as an audit's, is decided where all of it lies on one side, not "
    "corrected. With one seed only what has no noise is judged. Claims on backdoors are judged on seeds in which they "
    "took hold. Over: how many of the paper's scenarios, rivals or seeds were judged. Paper: the same predicate on its "
    "own numbers, without a test, as it reports no spread; omitted where its own backdoor did not take hold."
)


class Scene(NamedTuple):
    """A claim where it is judged: a scenario, or several along a coordinate."""

    judged: Judged
    published: str = ""
    value: float = nan
    reason: str = ""
    over: str = ""


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Judge every claim. Frame: claim, unit, against, seed, value, error, published, low, high, exact, ties, reason.

    `low` and `high` bound the region of the claim (`fu.claims`); `reason`: why a unit is not judged.
    """
    scenes = {name: list(_scenes(frame[frame["claim"] == name], claim, entry)) for name, claim in entry.claims.items()}
    rows = [row for name, claim in entry.claims.items() for row in _rows(name, claim, scenes[name], entry)]
    found = pd.DataFrame(rows, columns=COLUMNS)
    return of_table(found, _panels(entry, found), TERMS, names=("claims", "scenarios"))


def _scenes(rows: pd.DataFrame, claim: Claim, entry: Entry) -> Iterator[Scene]:
    """Yield where a claim is judged, and where it is not."""
    numbers, out = rows[rows["reason"] == ""], rows[rows["reason"] != ""]
    ours, theirs = numbers[~numbers["published"]], numbers[numbers["published"]]
    region = (float(rows["low"].iloc[0]), float(rows["high"].iloc[0]))
    exact, ties = bool(rows["exact"].iloc[0]), bool(rows["ties"].iloc[0])
    held = stands(theirs, region, exact, ties)
    inside = theirs.assign(by=np.minimum(theirs["value"] - region[0], region[1] - theirs["value"]))
    nearest = inside.sort_values("by", kind="stable").groupby("unit")["value"].first()  # to leaving the region
    for one in [*judge(ours, region, exact, ties), *(Judged(unit, "not judged") for unit in out["unit"])]:
        said = {True: "holds", False: "does not hold", None: ""}[held.get(one.unit)]
        reason = "".join(out[out["unit"] == one.unit]["reason"])
        yield Scene(one, said, float(nearest.get(one.unit, nan)), reason, _over(one, ours, claim, entry))


def _over(one: Judged, ours: pd.DataFrame, claim: Claim, entry: Entry) -> str:
    """Return how many of the claim's rivals and seeds a verdict covers; "" where it covers all."""
    own = ours[ours["unit"] == one.unit]
    rivals = {*claim.params.get("among", ())} - {claim.params["of"]["method"]}
    numbers = {"rivals": (own["against"].nunique(), len(rivals)), "seeds": (one.n, len(entry.seeds))}
    if own["seed"].eq(NO_SEED).all():
        del numbers["seeds"]
    return ", ".join(f"{k} of {n} {what}" for what, (k, n) in numbers.items() if 0 < k < n)


def _rows(name: str, claim: Claim, scenes: list[Scene], entry: Entry) -> Iterator[dict[str, Any]]:
    about = {"claim": name, "text": claim.text, "place": claim.place, "artefact": claim.artefact, "kind": claim.kind}
    verdict = overall(scene.judged.verdict for scene in scenes)
    ours, stated = {*claim.scenarios}, {*entry.stated.get(name, claim.scenarios)}
    added, omitted = len(ours - stated), len(stated - ours)
    if claim.ours:  # which is judged wherever it is asked for
        added, omitted = 0, 0 if added else omitted
    undecided = [scene.judged for scene in scenes if scene.judged.verdict == verdict == "undecided"]
    printed = [scene.published for scene in scenes if scene.published]
    reasons = {scene.reason for scene in scenes} if verdict == "not judged" else set()
    left_out = omitted - added + sum(scene.judged.verdict == "not judged" for scene in scenes)
    number = omitted - added + max(len(claim.scenarios), len(scenes))
    over = [f"{number - left_out} of {number} scenarios"] if left_out and verdict != "not judged" else []
    yield {
        **about,
        "scenario": ALL,
        "verdict": verdict,
        "over": ", ".join(dict.fromkeys([*over, *(scene.over for scene in scenes if scene.over)])),
        "n": min((scene.judged.n for scene in scenes if scene.judged.verdict != "not judged"), default=0),
        "needed": _needed((one.needed, one.fails) for one in undecided),
        "needed_90": _needed((one.needed_90, one.fails) for one in undecided),
        "published": "" if not printed else "holds" if set(printed) == {"holds"} else "does not hold",
        "reason": reasons.pop() if len(reasons) == 1 else "",
    }
    for scene in scenes:
        numbers = {"published": scene.published, "published_value": scene.value}
        numbers |= {"reason": scene.reason, "over": scene.over}
        own = scene.judged._asdict()
        yield {**about, "scenario": own.pop("unit"), **own, **numbers}


def _panels(entry: Entry, found: pd.DataFrame) -> Panels:
    labels = {scenario.name: scenario.label for scenario in entry.scenarios}
    each = found[found["scenario"] != ALL]
    rows = []
    for claim in found[found["scenario"] == ALL].to_dict("records"):
        own = each[each["claim"] == claim["claim"]]
        over = f" (over {claim['over']})" if claim["over"] else ""
        rows.append(
            {
                "Claim": claim["text"],
                "Where": claim["place"],
                "Verdict": f"**{claim['verdict']}{over}**",
                "Scenarios": several(own["verdict"]),
                "Paper": several(own[own["published"] != ""]["published"]),
            }
        )
    lines = []
    for row in each.to_dict("records"):
        more = filter(None, [row["reason"], f"over {row['over']}" if row["over"] else "", row["note"]])
        half, most = (f"more than {MOST:,}" if n == inf else f"{n:.0f}" for n in (row["needed"], row["needed_90"]))
        undecided = row["verdict"] == "undecided" and not isnan(row["needed"])
        said = "; ".join(more)
        lines.append(
            {
                "Claim": row["claim"],
                "Scenario": labels.get(str(row["scenario"]), row["scenario"]),
                "Verdict": row["verdict"] + (f" ({said})" if said else ""),
                "Mean": _number(row["mean"]) + (f" (against {row['against']})" if row["against"] else ""),
                "Interval": "–" if isnan(row["low"]) else f"{_number(row['low'])} to {_number(row['high'])}",
                "Seeds": str(row["n"] or "–"),
                "Unseen": unseen(row["n"], [row["note"]]),
                "Would decide": f"{half} seeds, {most} (90%)" if undecided else "–",
                "Paper": f"{_number(row['published_value'])}, {row['published']}" if row["published"] else "–",
            }
        )
    return [(label, grid(part)) for label, part in (("Claims", rows), ("In each scenario", lines))]


def several(verdicts: "pd.Series[str]") -> str:
    """Return how many scenarios have each verdict, or the one that all have."""
    found = Counter(verdicts)
    if len(found) < 2:
        return "–" if not found else f"{next(iter(found))}" + (f" ({len(verdicts)})" if len(verdicts) > 1 else "")
    return ", ".join(f"{verdict} {number}" for verdict, number in found.most_common())


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.3g}".replace("inf", "∞")


def _needed(seeds: Iterable[tuple[float, bool]]) -> float:
    """Return how many seeds would decide a claim that is undecided in some scenarios: for each its number, and whether
    it contradicts the claim. One that does decides alone; else all must. NaN where a number is not known.
    """
    each = list(seeds)
    against = [number for number, fails in each if fails and not isnan(number)]
    if against:
        return min(against)
    return nan if not each or any(isnan(number) for number, _ in each) else max(number for number, _ in each)
