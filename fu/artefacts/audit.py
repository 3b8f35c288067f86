"""Results of the audits for the models of every method, and for controls.

Of controls it is known how much of the client is left. An audit that one more retraining fails, or that a model passes
which forgot nothing, or that ranks what is left wrongly, is grey in that scenario: no method is judged by it. Nor is a
method whose training no control shares. The smallest share left in that fails it, as all larger ones do, is its
resolution.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import nan
from statistics import fmean
from typing import Any, NamedTuple

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fu.artefacts import drawing, notes
from fu.artefacts.entry import Audit, Entry, Method, Scenario
from fu.artefacts.panels import LIKE, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus

INPUTS = ("audits",)
NEEDS = ("against",)
BY_SEED = ("found", "in_order")  # shares of the audits that decide something
GREY = "0.78"  # of an audit that judges nobody
SPREAD = 30  # between the smallest and the largest score, from where on the axis is logarithmic
MODELS = "repeats"  # the row of the frame that says how many models did not diverge


BLACK: dict[str, Any] = {"color": "0.25", "marker": "o", "markersize": drawing.POINT, "linestyle": "none"}
UNJUDGED = "not judged"
SIGNS = {
    "differs from retraining": BLACK,
    "passes the audit": {**BLACK, "markerfacecolor": "white"},
    UNJUDGED: {**BLACK, "color": GREY},
}
PASSES = f"{LIKE}, grey: passes the audit, which proves only that less remains than it can detect."
UNFIT = f"A column with {LIKE} in its heading fails its own controls, so that no method is judged by it."


class Judged(NamedTuple):
    """An audit in one scenario: its values for each method, which methods fail it, and why it judges none.

    `resolution`: the smallest share left in that it finds, as all larger ones; None: not even all of it.
    """

    audit: Audit
    values: Mapping[str, Mapping[str, float]]
    found: Mapping[str, bool]
    fails: str
    resolution: float | None


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return what every audit says of every method, who passes, and a picture of the scores."""
    judged = {scenario.name: audits(frame, entry, scenario) for scenario in entry.scenarios}
    shown = [(scenario.label, _panel(entry, frame, scenario, judged[scenario.name])) for scenario in entry.scenarios]
    words = [[unfit(one.audit.label, one.fails) for one in several if one.fails] for several in judged.values()]
    return of_table(tidy(entry, judged), shown, _notes(entry, judged), words, figure=_picture(entry, judged))


def audits(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> list[Judged]:
    """Return every audit of a scenario, judged by its controls."""
    here = frame[frame["scenario"] == scenario.name]
    rows: dict[str, dict[str, float]] = {}
    for method, metric, value in zip(here["method"], here["metric"], here["value"], strict=True):
        rows.setdefault(method, {})[metric] = value
    several, alone = [], uncontrolled(entry, scenario)
    order = [metric.name for metric in entry.metrics]  # as keys of a spec are sorted
    for audit in sorted(entry.audits.values(), key=lambda one: min(map(order.index, {*one.metrics} & {*order}))):
        values = {method: {key: of[key] for key in audit.metrics if key in of} for method, of in rows.items()}
        values = {method: of for method, of in values.items() if of}
        found = {
            method: bool(rows[method][audit.found])
            for method in values
            if audit.found in rows[method] and method not in alone
        }
        scores = {method: of[audit.score] for method, of in values.items() if audit.score in of}
        several.append(Judged(audit, values, found, *controlled(entry, scores, found)))
    return several


def uncontrolled(entry: Entry, scenario: Scenario) -> set[str]:
    """Return the methods whose training no control shares, so that nothing shows what an audit can detect in them."""
    trained = {method.name: entry.trial(scenario.name, method).trained for method in entry.methods}
    known = {trained[method.name] for method in entry.methods if method.left or method.control}
    return {method for method, training in trained.items() if training not in known}


def unfit(name: str, fails: str) -> str:
    """Say why an audit judges no method."""
    return f"{name} judges no method here: {fails}."


def marked(entry: Entry, scenario: Scenario, method: Method, judged: bool = True) -> str:
    """Return a method's label, marked if others are judged and it is not."""
    alone = judged and method.name not in entry.against and method.name in uncontrolled(entry, scenario)
    return f"{method.marked} (not judged: no controls)" if alone else method.marked


def tested(entry: Entry) -> list[Method]:
    """Return the audited methods: all except those they are compared with."""
    return [method for method in entry.methods if method.name not in entry.against]


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return what audits say of each method: the metrics, and in which share of the audits it is found.

    An audit that fails its own controls says nothing of other methods; of controls all do, and in which share of them
    the scores of those that are found grow with what is left.
    """
    numbers: dict[tuple[str, str], dict[str, float]] = {}
    named = {metric.name for metric in entry.metrics}
    controls = {method.name for method in entry.methods if method.left or method.control}
    for scenario in entry.scenarios:
        judged = [audit for audit in audits(frame, entry, scenario) if audit.found]
        for method in tested(entry):
            said = [one for one in judged if method.name in one.found and (method.name in controls or not one.fails)]
            values = {key: value for one in said for key, value in one.values[method.name].items() if key in named}
            if said:
                values["found"] = fmean(one.found[method.name] for one in said)
                if method.name in controls:
                    values["in_order"] = fmean(not misordered(entry, _scores(one), one.found) for one in said)
            numbers[scenario.name, method.name] = values
    rows = frame.drop_duplicates(["scenario", "method"])[["scenario", "method", "trial", "stage", "seed"]]
    return pd.DataFrame(
        [
            {**row, "metric": metric, "value": value}
            for row in rows.to_dict("records")
            for metric, value in numbers.get((row["scenario"], row["method"]), {}).items()
        ]
    )


def _scores(judged: Judged) -> dict[str, float]:
    score = judged.audit.score
    return {method: of[score] for method, of in judged.values.items() if score in of}


def controlled(entry: Entry, scores: Mapping[str, float], found: Mapping[str, bool]) -> tuple[str, float | None]:
    """Return why an audit fails its own controls, or "", and its resolution.

    `scores` and `found`: by method; an audit that only describes finds nothing anywhere, and fails nothing.
    """
    known = [method for method in entry.methods if method.name in found]
    steps = sorted((method for method in known if method.left), key=_left)
    never = [method for method in known if method.control or (method.left and _left(method) == 1)]
    if wrong := next((one for one in steps if _left(one) == 0 and found[one.name]), None):
        return f"“{wrong.label}” fails it", None
    if wrong := next((one for one in never if not found[one.name]), None):
        return f"“{wrong.label}” passes it", None
    if wrong_order := misordered(entry, scores, found):
        return wrong_order, None
    longest = max(_families(entry, found), key=len, default=[])
    return "", next((_left(one) for one in longest if found[one.name]), None)


def misordered(entry: Entry, scores: Mapping[str, float], found: Mapping[str, bool]) -> str:
    """Return which two controls an audit ranks wrongly, or ""; of scores only those count that it finds."""
    for family in _families(entry, found):
        for less, more in pairwise(family):
            if found[less.name] and not found[more.name]:
                return f"“{less.label}” fails it and “{more.label}” passes it"
        for less, more in pairwise(one for one in family if found[one.name]):
            if scores[less.name] > scores[more.name]:
                return f"it scores “{less.label}” higher than “{more.label}”"
    return ""


def _families(entry: Entry, found: Mapping[str, bool]) -> list[list[Method]]:
    """Return the controls of each plug-in, less left first."""
    steps = sorted((method for method in entry.methods if method.left and method.name in found), key=_left)
    return [[one for one in steps if _family(one) == family] for family in dict.fromkeys(map(_family, steps))]


def _family(method: Method) -> str:
    assert method.left
    return method.left[0]


def _left(method: Method) -> float:
    assert method.left
    return method.left[1]


def tidy(entry: Entry, judged: Mapping[str, list[Judged]]) -> pd.DataFrame:
    """Return a row for each scenario, method, audit and metric: its value, and what the audit finds.

    `left`: of a control how much of the client is left; `found`: None where the audit only describes; `fails`: why no
    method is judged by the audit, if it is not.
    """
    left = {method.name: method.left[1] if method.left else None for method in entry.methods}
    rows = [
        {"scenario": scenario, "method": method, "left": left[method], "audit": audit.audit.plugin, "metric": metric}
        | {"value": value, "found": audit.found.get(method), "fails": audit.fails, "resolution": audit.resolution}
        for scenario, audits in judged.items()
        for audit in audits
        for method, values in audit.values.items()
        for metric, value in values.items()
    ]
    names = ["scenario", "method", "left", "audit", "metric", "value", "found", "fails", "resolution"]
    return pd.DataFrame(rows, columns=names)


def _panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario, audits: list[Judged]) -> pd.DataFrame:
    """Return a row for each method: a cell is grey where it passes, a heading where the audit judges none."""
    counted = frame[(frame["scenario"] == scenario.name) & (frame["metric"] == MODELS)]
    repeats = dict(zip(counted["method"], counted["value"], strict=True))
    decides, rows = any(audit.found for audit in audits), []
    for method in tested(entry):
        number = int(repeats.get(method.name, 0))
        fewer = f" ({number} models)" if number < len(entry.seeds) else ""
        row = {"Method": marked(entry, scenario, method, decides).replace(method.marked, method.marked + fewer)}
        for audit in audits:
            of = audit.values.get(method.name, {})
            grey = not audit.fails and audit.found.get(method.name) is False
            for metric in (one for one in entry.metrics if one.name in audit.audit.metrics):
                digits = 3 if metric.unit in ("fraction", "probability") else 2
                text = plus_minus(of.get(metric.name, nan), digits=digits)
                head = f"{metric.label} {LIKE}" if audit.fails else metric.label
                row[head] = f"{text} {LIKE}" if grey and text != "–" else text
        rows.append(row)
    return grid(rows)


def _notes(entry: Entry, judged: Mapping[str, list[Judged]]) -> str:
    """Explain rows, columns and marks."""
    audits = [audit for several in judged.values() for audit in several]
    return notes.joined(
        entry,
        f"{len(entry.seeds)} models of each kind, which differ in first weights and draws alone: unlearned ones are "
        "compared with as many retrained and original ones, by what they say of fixed samples.",
        PASSES if any(audit.found for audit in audits) else "These audits only describe: no method passes or fails.",
        UNFIT if any(audit.fails for audit in audits) else "",
        *(audit.caveat for audit in entry.audits.values()),
    )


def _picture(entry: Entry, judged: Mapping[str, list[Judged]]) -> Figure:
    """Return a panel for each audit and scenario: a marker for each method's score, filled where something is found."""
    methods = tested(entry)
    wide = rcParams["figure.figsize"][0]
    columns = max(len(audits) for audits in judged.values())
    figure = Figure(figsize=(wide, (0.17 * len(methods) + 0.6) * len(judged)), layout="constrained")
    axes = figure.subplots(len(judged), columns, squeeze=False, sharey=True)
    styles, used = drawing.looks(methods), set[str]()
    for row, scenario in zip(axes, entry.scenarios, strict=True):
        for axis, audit in zip(row, judged[scenario.name], strict=True):
            used |= _draw(axis, audit, styles)
            metric = next((one for one in entry.metrics if one.name == audit.audit.score), None)
            score = metric.label if metric else ""
            if scenario is entry.scenarios[0]:
                drawing.head(axis, score if audit.audit.label in score else f"{audit.audit.label}: {score}")
            if metric and metric.unit != "fraction" and scenario is entry.scenarios[-1]:
                axis.set_xlabel(metric.unit)
        row[0].set_yticks(range(len(methods)), [method.marked for method in methods])
        row[0].set_ylabel(entry.heading_of(scenario.label))
    axes[0, 0].invert_yaxis()  # of all, as they share it
    if used:
        drawing.legend(figure, drawing.signs(used, SIGNS))
    return figure


def _draw(axis: Axes, audit: Judged, styles: Mapping[str, drawing.Look]) -> set[str]:
    """Draw the scores of an audit, grey where it judges others but not this method; return the signs that are used."""
    scores, alone = _scores(audit), {*audit.values} - {*audit.found}
    grey = {*styles} if audit.fails else alone if audit.found else set()
    for place, (name, look) in enumerate(styles.items()):
        if name in scores:
            style = {"color": GREY} if name in grey else {}
            axis.plot(scores[name], place, **look.point(audit.found.get(name) is not False, **style))
    if scores and 0 < SPREAD * min(scores.values()) < max(scores.values()):
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
    else:
        axis.xaxis.set_major_locator(MaxNLocator(4))
        if scores and min(scores.values()) < 0 < max(scores.values()):
            axis.axvline(0, color="0.4", linewidth=0.6, zorder=0)
    axis.grid(axis="y", linewidth=0.4, color="0.9")
    axis.set_axisbelow(True)
    return {*([] if audit.fails or not audit.found else [*SIGNS][:2]), *([UNJUDGED] if grey & {*styles} else [])}
