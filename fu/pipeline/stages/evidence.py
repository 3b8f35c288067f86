"""The evidence for claims: the statistics of their predicates on the rows of tables and figures."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from fu import plugins
from fu.artefacts.entry import ORIGINAL, Entry, Scenario
from fu.artefacts.rows import FORMULAS
from fu.artefacts.words import BACKDOOR, took_hold

ADDED = "not a scenario of the paper's table or figure"
SILENT = (
    "no numbers: runs diverged, the preset omits them, the original model was already accurate enough, "
    "or the audit failed its controls, has none, or can neither find nor bound what is left"
)


def evidence(entry: Entry, rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the statistics of all claims; `rows`: those of each table or figure, by its name.

    Columns: claim, unit, against, seed, value, error, published, low, high, exact, ties, reason. `published`: whether
    the number is the paper's own; `low`, `high`: bounds of the claim's region; `reason`: why a unit is not judged.
    """
    return pd.concat([_statistics(entry, name, rows) for name in entry.claims], ignore_index=True)


def _statistics(entry: Entry, name: str, of: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    claim = entry.claims[name]
    kind = plugins.load("claims", claim.kind)
    p = plugins.params("claims", plugins.Choice(name=claim.kind, params=claim.params), f"claims.{name}")
    rows = of[claim.artefact]
    rows = rows[rows["scenario"].isin([*claim.scenarios, FORMULAS])]
    attacked = any(one.metric in BACKDOOR for one in kind.operands(p))
    rates, printed = (_backdoors(of.values(), attacked, published) for published in (0, 1))
    out = {one: why for one in claim.scenarios if (why := _excluded(entry.scenario(one), rates))}
    out = entry.untuned.get(name, {}) | out
    if not claim.ours:
        out |= {one: ADDED for one in claim.scenarios if one not in {*entry.stated.get(name, claim.scenarios), *out}}
    own = rows[(rows["published"] == 0) & ~rows["scenario"].isin(out)]
    judged = kind.statistics(_that_took_hold(own, rates), p)
    units = set(judged["unit"])
    if units <= {*claim.scenarios}:  # else scenarios along a coordinate are one unit
        out |= {one: SILENT for one in claim.scenarios if one not in {*units, *out}}
    elif FORMULAS not in units:
        known = {name for one in kind.operands(p) for name in one.pick(own)["scenario"]}
        out |= {one: SILENT for one in claim.scenarios if one not in {*known, *out}}
    if not (units or out):
        out[claim.artefact] = SILENT
    reasons = pd.DataFrame([*out.items()], columns=["unit", "reason"])
    paper = _that_took_hold(rows[rows["published"] == 1], printed)
    theirs = kind.statistics(paper, p)
    if hasattr(kind, "reach"):  # a trend over a shorter range than ours is another quantity
        printed_range, our_range = kind.reach(paper, p), kind.reach(own, p)
        shorter = [unit for unit, ends in printed_range.items() if unit in our_range and _lacks(ends, our_range[unit])]
        theirs = theirs[~theirs["unit"].isin(shorter)]
    parts = [judged, theirs.assign(published=True), reasons]
    least, most = kind.region(p)
    about = {"claim": name, "low": least, "high": most}
    about |= {flag.lower(): getattr(kind, flag, False) for flag in ("EXACT", "TIES")}
    found = pd.concat([part for part in parts if len(part)], ignore_index=True)
    found = found.reindex(columns=[*judged.columns, "published", "reason"]).assign(**about)
    found["published"] = found["published"] == True  # noqa: E712 (NaN in our own rows)
    return found.assign(**{text: found[text].astype(object).fillna("") for text in ("reason", "against")})


def _lacks(ends: tuple[float, float], whole: tuple[float, float]) -> bool:
    """Whether a range does not include both ends of another."""
    return ends[0] > whole[0] or ends[1] < whole[1]


def _backdoors(of: Iterable[pd.DataFrame], attacked: bool, published: int) -> pd.Series:
    """Return the original model's ASR by scenario and seed, from the rows of artefacts, ours or the paper's."""
    if not attacked:
        return pd.Series(dtype=float)
    rows = pd.concat(of, ignore_index=True)
    own = rows[(rows["method"] == ORIGINAL) & (rows["metric"] == "asr") & (rows["published"] == published)]
    return own[np.isfinite(own["value"])].groupby(["scenario", "seed"])["value"].mean()


def _that_took_hold(rows: pd.DataFrame, rates: pd.Series) -> pd.DataFrame:
    """Return the rows without the scenarios and seeds in which the backdoor did not take hold."""
    low = rates.index[~rates.map(took_hold).astype(bool)]
    return rows[~pd.MultiIndex.from_frame(rows[["scenario", "seed"]]).isin(low)]


def _excluded(scenario: Scenario, rates: pd.Series) -> str:
    """Return why a claim is not judged in a scenario, or ""; `rates`: the backdoors that it is about."""
    if scenario.replaces:
        return f"{scenario.data} in place of {scenario.replaces}"
    own = rates[rates.index.get_level_values(0) == scenario.name] if len(rates) else rates
    if len(own) and not own.map(took_hold).any():
        return f"the backdoor did not take hold: ω⁰ has an ASR of {own.mean():.3f}"
    return ""
