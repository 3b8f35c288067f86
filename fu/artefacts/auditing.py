"""Verdicts of audits: which methods are found, how much of the client is left at most, and which audits are fit to say.

Of controls it is known how much of the client is left. Every method is compared with a retraining, its reference, and
judged by the controls that are compared with the same one. P-values are corrected by Holm over all methods, audits and
scenarios of a table, so that with a probability of 95% none of them is found by chance.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pandas as pd

from fu.artefacts.entry import Audit, Entry, Method, Scenario
from fu.audits import share
from fu.audits.models import Floats
from fu.claims.correction import adjusted

LEVEL = 0.05
MARGIN = 0.1  # the largest share of the client that may be left in a method that passes
LINE = "line"  # the audit whose projections bound the share
FOUND, BOUNDED, UNDECIDED, UNJUDGED = "found", "bounded below", "undecided", "not judged"
MODELS = "repeats"  # the row of the frame that says how many models did not diverge
Places = dict[str, Floats]


class Judged(NamedTuple):
    """An audit in one scenario: its values and corrected p-values by method, and by reference why it judges nobody."""

    audit: Audit
    values: Mapping[str, Mapping[str, float]]
    p: Mapping[str, float]
    fails: Mapping[str, str]

    def found(self, method: str) -> bool:
        """Whether the audit finds something in a method's models."""
        return self.p.get(method, 1.0) < LEVEL

    def judges(self, method: Method) -> bool:
        """Whether the controls that are compared with the method's reference let the audit judge it."""
        return method.reference not in self.fails


class Left(NamedTuple):
    """How much of the client is left.

    `power`: control -> probe -> how often so many models like its own are found. `resolution`: reference -> probe ->
    the least share that is found with a power of 95%, None: not even the largest. `bound`: method -> the share that is
    left at most, None: it may be all, as where a model has diverged; methods whose reference has no probe with a
    resolution within the margin are missing.
    """

    power: dict[str, dict[str, float]]
    resolution: dict[str, dict[str, float | None]]
    bound: dict[str, float | None]

    def sharp(self, reference: str) -> list[str]:
        """Return the probes on which a share within the margin would be found."""
        known = self.resolution.get(reference, {})
        return [probe for probe, least in known.items() if least is not None and least <= MARGIN]


def audits(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> list[Judged]:
    """Return every audit of a scenario, in the order of the entry's metrics."""
    rows, corrected, several = _values(frame, scenario), family(frame, entry), []
    order = [metric.name for metric in entry.metrics]  # as keys of a spec are sorted
    for audit in sorted(entry.audits.values(), key=lambda one: min(map(order.index, {*one.metrics} & {*order}))):
        values = {method: {key: of[key] for key in audit.metrics if key in of} for method, of in rows.items()}
        p = {method: corrected[key] for method in rows if (key := (scenario.name, method, audit.plugin)) in corrected}
        found = {method: value < LEVEL for method, value in p.items()}
        fails = {name: why for name in entry.against if (why := unfit(entry, name, found, audit.sees))}
        several.append(Judged(audit, {method: of for method, of in values.items() if of}, p, fails))
    return several


def family(frame: pd.DataFrame, entry: Entry) -> dict[tuple[str, str, str], float]:
    """Return the corrected p-value of every test of a table, by scenario, method and audit."""
    judged = {method.name for method in tested(entry)} - uncontrolled(entry)
    names = {audit.p: audit.plugin for audit in entry.audits.values() if audit.p}
    rows = frame[frame["metric"].isin(names) & frame["method"].isin(judged)]
    keys = zip(rows["scenario"], rows["method"], rows["metric"].map(names), strict=True)
    return dict(zip(keys, adjusted(rows["value"].to_list()), strict=True))


def unfit(entry: Entry, reference: str, found: Mapping[str, bool], sees: Collection[str]) -> str:
    """Return why a test judges no method with a reference: what its own controls show; "" if it does.

    `found`: whether it finds something, by method; `sees`: plug-ins of the controls that it must find, whatever these
    are compared with.
    """
    own = {method.name for method in controls(entry, reference)}
    for method in (one for one in tested(entry) if one.name in found):
        left = method.left[1] if method.left and method.name in own else None
        if found[method.name] and left == 0:
            return f"“{method.label}” fails it"
        if not found[method.name] and (left == 1 or method.plugin in sees):
            return f"“{method.label}” passes it"
    return ""


def silent(entry: Entry, name: str, fails: Mapping[str, str]) -> list[str]:
    """Say with which references a test judges no method, and why."""
    labels = {method.name: method.label for method in entry.methods}
    where = {one: f" against {labels[one]}" if len(entry.against) > 1 else " here" for one in fails}
    return [f"{name} judges no method{where[reference]}: {why}." for reference, why in fails.items()]


def controls(entry: Entry, reference: str) -> list[Method]:
    """Return the controls that are compared with a retraining."""
    return [method for method in tested(entry) if method.reference == reference and method.known]


def uncontrolled(entry: Entry) -> set[str]:
    """Return the methods with whose reference no independent retraining and no control with all of the client stands.

    Nothing shows what an audit detects in these.
    """
    fit = set()
    for reference in entry.against:
        left = {method.left[1] if method.left else 1.0 for method in controls(entry, reference) if not method.hides}
        if {0.0, 1.0} <= left:
            fit.add(reference)
    return {method.name for method in tested(entry) if method.reference not in fit}


def marked(entry: Entry, method: Method, judged: bool = True) -> str:
    """Return a method's label, marked if others are judged and it is not."""
    alone = judged and method.name in uncontrolled(entry)
    return f"{method.marked} (not judged: no controls)" if alone else method.marked


def tested(entry: Entry) -> list[Method]:
    """Return the audited methods: all except those they are compared with."""
    return [method for method in entry.methods if method.name not in entry.against]


def remaining(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> Left:
    """Return how much of the client is left in each method, and how little of it would be found."""
    here = frame[(frame["scenario"] == scenario.name) & frame["metric"].astype(str).str.startswith(f"{LINE}: ")]
    level = LEVEL / max(len(family(frame, entry)), 1)
    places: dict[str, dict[str, Places]] = {}  # method -> kind of model -> probe -> projections
    for (method, metric), rows in here.groupby(["method", "metric"], sort=False):
        probe, _, kind = str(metric).removeprefix(f"{LINE}: ").rpartition(", ")
        places.setdefault(str(method), {}).setdefault(kind, {})[probe] = rows["value"].to_numpy()
    left = Left({}, {}, {})
    for reference in entry.against:
        of = {one.name: one.left[1] for one in _with_a_share(entry, reference) if one.left and one.name in places}
        probes = next((places[name]["unlearned"] for name in of), {})
        for name in of:
            left.power[name] = {
                probe: share.power(
                    places[name]["unlearned"][probe], places[name]["retrained"][probe], level / len(probes)
                )
                for probe in probes
            }
        least = {probe: share.resolution({of[name]: left.power[name][probe] for name in of}) for probe in probes}
        if least:
            left.resolution[reference] = least
        sharp = left.sharp(reference)
        known = {probe: {of[name]: places[name]["unlearned"][probe] for name in of} for probe in sharp}
        for method in (one for one in tested(entry) if sharp and one.reference == reference and one.name in places):
            own = places[method.name]["unlearned"]
            bounds = [share.bound(own[probe], known[probe]) for probe in sharp]
            whole = all(bounds) and len(own[sharp[0]]) >= len(entry.seeds)  # a model that diverged may have kept all
            left.bound[method.name] = max(filter(None, bounds)) if whole else None
    return left


def _with_a_share(entry: Entry, reference: str) -> list[Method]:
    """Return the controls that are trained with a share of the client, the plug-in that has the most shares."""
    known = [one for one in controls(entry, reference) if one.left and one.left[1]]
    several = [[one for one in known if one.plugin == plugin] for plugin in dict.fromkeys(one.plugin for one in known)]
    return max(several, key=len, default=[])


def verdict(entry: Entry, method: Method, judged: list[Judged], left: Left) -> str:
    """Return what is said of a method: found, bounded below a share, undecided; or that nothing can be said."""
    deciding = [audit for audit in judged if audit.audit.p]
    if method.name in uncontrolled(entry) or not deciding:
        return UNJUDGED
    fit = [audit for audit in deciding if audit.judges(method)]
    if any(audit.found(method.name) for audit in fit):
        return FOUND
    bound = left.bound.get(method.name)
    if len(fit) == len(deciding) and bound is not None and bound <= MARGIN:
        return f"{BOUNDED} {bound:.0%}"
    return UNDECIDED


def _values(frame: pd.DataFrame, scenario: Scenario) -> dict[str, dict[str, float]]:
    here = frame[(frame["scenario"] == scenario.name) & frame["run"].isna()]
    rows: dict[str, dict[str, float]] = {}
    for method, metric, value in zip(here["method"], here["metric"], here["value"], strict=True):
        rows.setdefault(method, {})[metric] = value
    return rows
