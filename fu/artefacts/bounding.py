"""Bounds and verdicts: how much of the client is left at most, from controls with known shares.

`line` gives the projections of all models. Controls trained with a share of the client calibrate them: they give the
power to find such a share, the resolution of every probe, and an upper bound of the share left in a method.
"""

from typing import NamedTuple

import pandas as pd

from fu.artefacts.auditing import LEVEL, Judged, audits, controls, diverged, families, tested, uncontrolled
from fu.artefacts.entry import Entry, Method, Scenario
from fu.audits import share
from fu.audits.models import Floats, smallest_p

MARGIN = 0.1  # the largest share of the client that may be left in a method that passes
LINE = "line"  # the audit whose projections bound the share
UNSEEN = {False: ("held_out",), True: ("triggered", "triggered_altered")}  # withheld from methods, by whether attacked
FOUND, BOUNDED, UNDECIDED, UNJUDGED = "found", "bounded below", "undecided", "not judged"
Places = dict[str, Floats]  # projections [N] by kind of model: unlearned, retrained, original


class Left(NamedTuple):
    """How much of the client is left.

    `power`: control -> probe -> how often, at least, so many models like its own are found. `resolution`: reference ->
    probe -> the least share that is found with a power of 95%, None: not even the largest. `bound`: method -> the share
    that is left at most, None: it may be all; methods whose reference has no `sharp` probes, or controls that `line`
    fails, are missing. `unseen`: the probes that no method can prepare for.
    """

    power: dict[str, dict[str, float]]
    resolution: dict[str, dict[str, float | None]]
    bound: dict[str, float | None]
    unseen: tuple[str, ...]

    def resolved(self, reference: str) -> list[str]:
        """Return the probes on which a share within the margin would be found."""
        known = self.resolution.get(reference, {})
        return [probe for probe, least in known.items() if least is not None and least <= MARGIN]

    def sharp(self, reference: str) -> list[str]:
        """Return these probes, which bound a method; none, if a method can prepare for all of them."""
        found = self.resolved(reference)
        return found if {*found} & {*self.unseen} else []


class Scene(NamedTuple):
    """The audits of a scenario, how much is left, and the verdict on each method."""

    audits: list[Judged]
    left: Left
    verdicts: dict[str, str]


def judge(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> Scene:
    """Return the audits of a scenario and the verdict on every method."""
    several, left = audits(frame, entry, scenario), remaining(frame, entry, scenario)
    able = {one.name for audit in several if audit.audit.plugin == LINE for one in tested(entry) if audit.judges(one)}
    left = left._replace(bound={name: share for name, share in left.bound.items() if name in able})
    lost = diverged(frame, entry, scenario)
    verdicts = {one.name: _verdict(entry, one, several, left, lost=one.name in lost) for one in tested(entry)}
    return Scene(several, left, verdicts)


def remaining(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> Left:
    """Return how much of the client is left in each method, and how little of it would be found."""
    level, places = LEVEL / max(len(families(frame, entry)[0]), 1), projections(frame, scenario)
    bounded = len(entry.scenarios) * sum(not one.known for one in tested(entry))
    left = Left({}, {}, {}, UNSEEN[scenario.attacked])
    for reference in entry.against:
        of = {one.name: one.left[1] for one in _with_a_share(entry, reference) if one.left and one.name in places}
        probes = next(([*places[name]] for name in of), [])
        for name in of:
            left.power[name] = {probe: power(places[name][probe], level, len(probes)) for probe in probes}
        least = {probe: share.resolution({of[name]: left.power[name][probe] for name in of}) for probe in probes}
        if least:
            left.resolution[reference] = least
        sharp = left.sharp(reference)
        known = {probe: {of[name]: places[name][probe]["unlearned"] for name in of} for probe in sharp}
        for method in (one for one in tested(entry) if sharp and one.reference == reference and one.name in places):
            own = {probe: places[method.name][probe]["unlearned"] for probe in sharp}
            bounds = [share.bound(own[probe], known[probe], LEVEL / max(bounded, 1) / len(probes)) for probe in sharp]
            left.bound[method.name] = max(filter(None, bounds)) if all(bounds) else None
    return left


def power(places: Places, level: float, probes: int) -> float:
    """Return how often, at least, such models are found at the level of a test; never, if no p-value is below it."""
    control, retrained = places["unlearned"], places["retrained"]
    able = smallest_p(min(len(control), len(retrained))) < level
    return share.power(control, retrained, level / probes) if able else 0.0


def projections(frame: pd.DataFrame, scenario: Scenario) -> dict[str, dict[str, Places]]:
    """Return the projections [N] of a scenario's models by `line`: method -> probe -> kind of model."""
    here = frame[(frame["scenario"] == scenario.name) & frame["metric"].astype(str).str.startswith(f"{LINE}: ")]
    places: dict[str, dict[str, Places]] = {}
    for (method, metric), rows in here.groupby(["method", "metric"], sort=False):
        probe, _, kind = str(metric).removeprefix(f"{LINE}: ").rpartition(", ")
        places.setdefault(str(method), {}).setdefault(probe, {})[kind] = rows["value"].to_numpy()
    return places


def separated(places: Places) -> bool:
    """Whether all original models lie beyond all retrained ones, so that positions between them mean something."""
    return bool(places["original"].min() > places["retrained"].max())


def positions(places: Places) -> tuple[Floats, Floats]:
    """Return the positions [N] of unlearned and of retrained models, from 0 (retrained) to 1 (original, on average)."""
    one = places["original"].mean()
    return places["unlearned"] / one, places["retrained"] / one


def _with_a_share(entry: Entry, reference: str) -> list[Method]:
    """Return the controls trained with a share of the client: those of the plug-in with the most shares."""
    known = [one for one in controls(entry, reference) if one.left and one.left[1]]
    several = [[one for one in known if one.plugin == plugin] for plugin in dict.fromkeys(one.plugin for one in known)]
    return max(several, key=len, default=[])


def _verdict(entry: Entry, method: Method, judged: list[Judged], left: Left, *, lost: bool) -> str:
    """Return a method's verdict: found, bounded below a share, undecided, or not judged; `lost`: some runs diverged."""
    deciding = [audit for audit in judged if audit.audit.p]
    if method.name in uncontrolled(entry) or not deciding:
        return UNJUDGED
    fit = [audit for audit in deciding if audit.judges(method)]
    if lost or any(audit.found(method.name) for audit in fit):
        return FOUND
    bound = left.bound.get(method.name)
    complete = all(audit.judges(method) and method.name in audit.p for audit in deciding)
    if complete and bound is not None and bound <= MARGIN:
        return f"{BOUNDED} {bound:.0%}"
    return UNDECIDED
