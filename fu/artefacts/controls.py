"""Which audit finds which control, and the power to find a share of the client: whether audits can be relied on."""

from itertools import product
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.auditing import Judged, audits, controls, families
from fu.artefacts.bounding import remaining
from fu.artefacts.entry import Entry, Method
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table

INPUTS = ("audits",)
TABLE = True
NEEDS = ("against",)
COLUMNS = ["scenario", "method", "reference", "left", "audit", "p", "found", "claimed"]
POWER = "power"
READ = (
    "Bold: found. –: not found. !: the audit misses a control that it must find, or finds models without the "
    "client; it judges no method with this reference, nor, where it misses one, with references that lack such a "
    "control. In parentheses: p, corrected for the {number} tests of "
    "controls. Power: how often, at least, this many models of such a control would be found (95% confidence), at the "
    "level that holds for all tests of methods."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return a panel of findings and one of powers for each scenario."""
    shown, names, rows = [], [], []
    labels = {method.name: method.label for method in entry.methods}
    known = [method for reference in entry.against for method in controls(entry, reference)]
    for scenario in entry.scenarios:
        cells = {method.name: {"Control": method.label, "Against": labels[method.reference]} for method in known}
        for audit, method in product(audits(frame, entry, scenario), known):
            if not audit.audit.p:
                continue
            p, found, claimed = audit.p.get(method.name), audit.found(method.name), _claimed(method, audit)
            about: dict[str, Any] = {"scenario": scenario.name, "method": method.name, "reference": method.reference}
            about |= {"left": method.left[1] if method.left else None, "audit": audit.audit.plugin}
            rows.append({**about, "p": p, "found": found, "claimed": claimed})
            wrong = (found and method.left is not None and not method.left[1]) or (claimed and not found)
            text = "" if p is None else f"{'found' if found else '–'} ({p:.3f}){' !' if wrong else ''}"
            cells[method.name][audit.audit.label] = f"**{text}**" if found else text
        shown.append((f"{scenario.label}: controls", grid(cells.values())))
        power = remaining(frame, entry, scenario).power
        rows += [
            {"scenario": scenario.name, "method": method, "audit": f"{POWER}: {probe}", "p": value}
            for method, of in power.items()
            for probe, value in of.items()
        ]
        table = grid(
            {"Method": labels[method]} | {probe.replace("_", " "): f"{value:.0%}" for probe, value in of.items()}
            for method, of in power.items()
        )
        shown.append((f"{scenario.label}: power, by probe", table))
        names += [f"{scenario.name}-controls", f"{scenario.name}-power"]
    text = notes.joined(entry, READ.format(number=len(families(frame, entry)[1])))
    return of_table(pd.DataFrame(rows, columns=COLUMNS), shown, text, names=tuple(names))


def _claimed(method: Method, audit: Judged) -> bool:
    """Return whether an audit claims to find a control: one with all of the client, or one of those that it names."""
    return (method.left is not None and method.left[1] == 1) or method.plugin in audit.sees
