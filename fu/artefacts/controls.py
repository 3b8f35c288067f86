"""Which audit finds which control, and the power to find a share of the client: whether audits can be relied on."""

from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.auditing import Judged, audits, controls, family
from fu.artefacts.bounding import remaining
from fu.artefacts.entry import Entry, Method, Scenario
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table

INPUTS = ("audits",)
TABLE = True
NEEDS = ("against",)
COLUMNS = ["scenario", "method", "reference", "left", "audit", "p", "found", "claimed"]
POWER = "power"
READ = (
    "Bold: found. –: not found. !: the audit claims to see this control and does not, or finds a model without the "
    "client; it judges no method with this reference. In parentheses: p, corrected for the {number} tests of this "
    "table. Power: how often so many models of such a control would be found, at the level that holds for all tests."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return a panel of findings and one of powers for each scenario."""
    shown, names, rows = [], [], []
    for scenario in entry.scenarios:
        judged = [audit for audit in audits(frame, entry, scenario) if audit.audit.p]
        rows += [row for audit in judged for row in _rows(entry, scenario, audit)]
        shown.append((f"{scenario.label}: controls", _panel(entry, judged)))
        power = remaining(frame, entry, scenario).power
        rows += [
            {"scenario": scenario.name, "method": method, "audit": f"{POWER}: {probe}", "p": value}
            for method, of in power.items()
            for probe, value in of.items()
        ]
        labels = {method.name: method.label for method in entry.methods}
        table = grid(
            {"Method": labels[method]} | {probe.replace("_", " "): f"{value:.0%}" for probe, value in of.items()}
            for method, of in power.items()
        )
        shown.append((f"{scenario.label}: power, by probe", table))
        names += [f"{scenario.name}-controls", f"{scenario.name}-power"]
    text = notes.joined(entry, READ.format(number=len(family(frame, entry))))
    return of_table(pd.DataFrame(rows, columns=COLUMNS), shown, text, names=tuple(names))


def _rows(entry: Entry, scenario: Scenario, audit: Judged) -> list[dict[str, Any]]:
    return [
        {"scenario": scenario.name, "method": method.name, "reference": method.reference}
        | {"left": method.left[1] if method.left else None, "audit": audit.audit.plugin, "p": audit.p.get(method.name)}
        | {"found": audit.found(method.name), "claimed": _claimed(method, audit)}
        for method in _controls(entry)
    ]


def _controls(entry: Entry) -> list[Method]:
    return [method for reference in entry.against for method in controls(entry, reference)]


def _claimed(method: Method, audit: Judged) -> bool:
    """Return whether an audit claims to find a control: one with all of the client, or one of those that it names."""
    return (method.left is not None and method.left[1] == 1) or method.plugin in audit.audit.sees


def _panel(entry: Entry, judged: list[Judged]) -> pd.DataFrame:
    labels = {method.name: method.label for method in entry.methods}
    return grid(
        {"Control": method.label, "Against": labels[method.reference]}
        | {one.audit.label: _cell(method, one) for one in judged}
        for method in _controls(entry)
    )


def _cell(method: Method, audit: Judged) -> str:
    if method.name not in audit.p:
        return ""
    found = audit.found(method.name)
    wrong = (found and method.left is not None and not method.left[1]) or (_claimed(method, audit) and not found)
    text = f"{'found' if found else '–'} ({audit.p[method.name]:.3f}){' !' if wrong else ''}"
    return f"**{text}**" if found else text
