"""Audits of a table: which methods they find, and which of them may judge.

Of controls it is known how much of the client is left. Every method is compared with a retraining, its reference, and
judged by the controls that are compared with the same one. P-values are corrected by Holm over all methods, audits and
scenarios of a table, so that with a probability of 95% none of them is found by chance; those of controls likewise, by
themselves.
"""

from collections.abc import Collection, Mapping
from math import nan
from typing import NamedTuple

import pandas as pd

from fu.artefacts.entry import Audit, Entry, Method, Scenario
from fu.claims.correction import adjusted

LEVEL = 0.05
MODELS = "repeats"  # metric: number of repeats without a diverged model
UNTOUCHED = "untouched"  # the plug-in of the control that does nothing
CHEAT = "cheat"  # that of the control which audits claim to find where there is a trigger
Family = dict[tuple[str, str, str], float]  # p-values by scenario, method and audit or attack


class Judged(NamedTuple):
    """An audit in one scenario: its values and corrected p-values by method, and by reference why it judges nobody.

    `sees`: plug-ins of the controls that it must find there.
    """

    audit: Audit
    sees: tuple[str, ...]
    values: Mapping[str, Mapping[str, float]]
    p: Mapping[str, float]
    fails: Mapping[str, str]

    def found(self, method: str) -> bool:
        """Whether the audit finds something in a method's models."""
        return self.p.get(method, 1.0) < LEVEL

    def judges(self, method: Method) -> bool:
        """Whether the controls that are compared with the method's reference let the audit judge it."""
        return method.reference not in self.fails


def audits(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> list[Judged]:
    """Return every audit of a scenario, in the order of the entry's metrics."""
    here = frame[(frame["scenario"] == scenario.name) & frame["run"].isna()]
    rows = {
        str(name): dict(zip(of["metric"], of["value"], strict=True)) for name, of in here.groupby("method", sort=False)
    }
    methods, known = families(frame, entry)
    both, several = methods | known, []
    order = [metric.name for metric in entry.metrics]  # as keys of a spec are sorted
    for audit in sorted(entry.audits.values(), key=lambda one: min(map(order.index, {*one.metrics} & {*order}))):
        values = {method: {key: of[key] for key in audit.metrics if key in of} for method, of in rows.items()}
        p = {method: both[key] for method in rows if (key := (scenario.name, method, audit.plugin)) in both}
        found = {method: p[method] < LEVEL if method in p else None for method in rows} if audit.p else {}
        sees = tuple(one for one in audit.sees if one != CHEAT or scenario.attacked)
        fails = {name: why for name in entry.against if (why := unfit(entry, name, found, sees))}
        several.append(Judged(audit, sees, {method: of for method, of in values.items() if of}, p, fails))
    return several


def families(frame: pd.DataFrame, entry: Entry) -> tuple[Family, Family]:
    """Return the adjusted p-values of all audits: of methods, and of controls."""
    names = {audit.p: audit.plugin for audit in entry.audits.values() if audit.p}
    rows = frame[frame["metric"].isin(names)]
    keys = zip(rows["scenario"], rows["method"], rows["metric"].map(names), strict=True)
    return corrected(dict(zip(keys, rows["value"].to_list(), strict=True)), entry)


def corrected(p: Family, entry: Entry) -> tuple[Family, Family]:
    """Return p-values adjusted by Holm's method, those of methods as one family and those of controls as another."""

    def family(known: bool) -> Family:
        judged = {method.name for method in tested(entry) if method.known == known} - uncontrolled(entry)
        keys = [key for key in p if key[1] in judged]
        return dict(zip(keys, adjusted([p[key] for key in keys]), strict=True))

    return family(False), family(True)


def unfit(entry: Entry, reference: str, found: Mapping[str, bool | None], sees: Collection[str]) -> str:
    """Return why a test judges no method with a reference: what its own controls show; "" if it does.

    `found`: whether it finds something, by method; None: it has no result. `sees`: plug-ins of the controls that it
    must find: those compared with this reference, or all controls of a plug-in that this reference lacks.
    """
    own = {method.name: method.plugin for method in controls(entry, reference)}
    for method in (one for one in tested(entry) if one.name in found):
        counts = method.name in own or method.plugin not in own.values()
        left = method.left[1] if method.left and method.name in own else None
        claimed = left == 1 or (counts and method.plugin in sees)
        if found[method.name] is None and (claimed or left == 0):
            return f"it has no result for “{method.label}”"
        if found[method.name] and left == 0:
            return f"“{method.label}” fails it"
        if not found[method.name] and claimed:
            return f"“{method.label}” passes it"
    return ""


def diverged(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> set[str]:
    """Return the methods with fewer complete repeats than some control that has the same reference."""
    rows, number = frame[(frame["scenario"] == scenario.name) & (frame["metric"] == MODELS)], dict[str, float]()
    whole, several = dict(zip(rows["method"], rows["value"], strict=True)), tested(entry)
    for method in (one for one in several if one.known):
        number[method.reference] = max(number.get(method.reference, 0), whole.get(method.name, 0))
    return {one.name for one in several if whole.get(one.name, nan) < number.get(one.reference, 0)}


def silent(entry: Entry, name: str, fails: Mapping[str, str]) -> list[str]:
    """Return sentences on the references with which a test judges no method, and why."""
    labels = {method.name: method.label for method in entry.methods}
    where = {one: f" compared with “{labels[one]}”" if len(entry.against) > 1 else " here" for one in fails}
    return [f"{name} judges no method{where[reference]}: {why}." for reference, why in fails.items()]


def controls(entry: Entry, reference: str) -> list[Method]:
    """Return the controls that are compared with a retraining."""
    return [method for method in tested(entry) if method.reference == reference and method.known]


def uncontrolled(entry: Entry) -> set[str]:
    """Return the methods for which nothing shows what an audit detects.

    Their reference has another optimiser, or lacks an independent retraining or a control with all of the client.
    """
    fit = set()
    for reference in entry.against:
        known = controls(entry, reference)
        left = {one.left[1] if one.left else 1.0 for one in known if one.left or one.plugin == UNTOUCHED}
        if {0.0, 1.0} <= left:
            fit.add(reference)
    return {method.name for method in tested(entry) if method.own_optimiser or method.reference not in fit}


def marked(entry: Entry, method: Method, judged: bool = True) -> str:
    """Return a method's label, marked if others are judged and it is not."""
    if not judged or method.name not in uncontrolled(entry):
        return method.marked
    return f"{method.marked} (not judged: {'its own optimiser' if method.own_optimiser else 'no controls'})"


def counted(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> dict[str, str]:
    """Return the label of each audited method, with the number of its models where some diverged."""
    rows = frame[(frame["scenario"] == scenario.name) & (frame["metric"] == MODELS)]
    numbers = dict(zip(rows["method"], rows["value"].astype(int), strict=True))
    labels = {method.name: method.marked for method in tested(entry)}
    fewer = {name: f" ({numbers.get(name, 0)} models)" for name in labels if numbers.get(name, 0) < len(entry.seeds)}
    return {name: label + fewer.get(name, "") for name, label in labels.items()}


def tested(entry: Entry) -> list[Method]:
    """Return the audited methods: all except those they are compared with."""
    return [method for method in entry.methods if method.name not in entry.against]
