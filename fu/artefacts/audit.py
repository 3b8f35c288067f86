"""What remains of the client: every method's verdict, from all audits together, and where its models lie.

A method is found if an audit finds something in its models; it passes if nothing is found and at most a tenth of the
client is left with a confidence of 95%; else it is undecided.
"""

from collections.abc import Mapping
from itertools import product
from math import isnan, nan
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fu.artefacts import drawing, notes
from fu.artefacts.auditing import counted, families, silent, tested
from fu.artefacts.bounding import (
    BOUNDED,
    FOUND,
    MARGIN,
    UNDECIDED,
    UNJUDGED,
    Left,
    Places,
    Scene,
    judge,
    positions,
    projections,
    separated,
)
from fu.artefacts.entry import Entry, Method, Metric, Scenario
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus
from fu.audits.models import Floats
from fu.claims.rows import ends

INPUTS = ("audits",)
NEEDS = ("against",)
BY_SEED = ("found", "passes")  # 1 or 0
GREY, BAND = "0.65", "0.88"
NOWHERE = "No positions: on no probe do all original\nmodels lie beyond all retrained ones."
POINT: dict[str, Any] = {"marker": "o", "markersize": 3, "linestyle": "none"}
BLACK = {"color": "0.25", **POINT}
SIGNS = {
    FOUND: BLACK,
    BOUNDED: {**BLACK, "markerfacecolor": "white"},
    UNDECIDED: {**BLACK, "color": GREY},
    UNJUDGED: {**BLACK, "color": GREY, "marker": "x"},
}
LEGEND = {FOUND: FOUND, BOUNDED: f"{BOUNDED} {MARGIN:.0%}", UNDECIDED: UNDECIDED, UNJUDGED: UNJUDGED}
COLUMNS = ["scenario", "method", "reference", "left", "audit", "metric", "value"]
COLUMNS += ["p", "found", "fails", "verdict", "bound"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the results of every audit for every method, the verdicts, and a picture of the models' positions."""
    scenes = {scenario.name: judge(frame, entry, scenario) for scenario in entry.scenarios}
    shown = [(one.label, _panel(entry, frame, one, scenes[one.name])) for one in entry.scenarios]
    words = [_words(entry, scene) for scene in scenes.values()]
    text = notes.joined(entry, *_notes(frame, entry))
    return of_table(tidy(entry, scenes), shown, text, words, figure=_picture(frame, entry, scenes))


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return the shown metrics of each method, and whether it is found or passes; of undecided ones neither.

    An audit that judges no method gives no number of them. Of controls `found` is the share of the audits that find
    something, of those that are fit or claim to see them.
    """
    shown = {metric.name for metric in entry.metrics}
    numbers: dict[tuple[str, str], dict[str, float]] = {}
    for scenario in entry.scenarios:
        judged, _, verdicts = judge(frame, entry, scenario)
        for method in tested(entry):
            name, said = method.name, verdicts[method.name]
            telling = [one for one in judged if name in one.p and (method.known or one.judges(method))]
            values = {key: value for one in telling for key, value in one.values[name].items() if key in shown}
            if method.known:
                able = [one for one in telling if method.left or method.plugin in one.sees]
                values |= {"found": sum(one.found(name) for one in able) / len(able)} if able else {}
            elif said == FOUND or said.startswith(BOUNDED):
                values |= {"found": float(said == FOUND), "passes": float(said != FOUND)}
            numbers[scenario.name, name] = values
    rows = frame.drop_duplicates(["scenario", "method"])[["scenario", "method", "trial", "stage", "seed"]]
    return pd.DataFrame(
        [
            {**row, "metric": metric, "value": value}
            for row in rows.to_dict("records")
            for metric, value in numbers.get((row["scenario"], row["method"]), {}).items()
        ]
    )


def tidy(entry: Entry, scenes: Mapping[str, Scene]) -> pd.DataFrame:
    """Return a row for each scenario, method, audit and metric: its value, the audit's corrected p, and the verdict.

    `left`: of a control how much of the client is left; `p`, `found`: empty where the audit only describes; `fails`:
    why the audit judges no method with this reference; `bound`: the share that is left at most.
    """
    rows = []
    for (scenario, (audits, left, verdicts)), method in product(scenes.items(), tested(entry)):
        about: dict[str, Any] = {"scenario": scenario, "method": method.name, "reference": method.reference}
        about |= {"left": method.left[1] if method.left else None}
        end = {"verdict": verdicts[method.name], "bound": left.bound.get(method.name)}
        for one in audits:
            p = one.p.get(method.name)
            found = None if p is None else one.found(method.name)
            result = {"p": p, "found": found, "fails": one.fails.get(method.reference, "")}
            rows += [
                {**about, "audit": one.audit.plugin, "metric": metric, "value": value, **result, **end}
                for metric, value in one.values.get(method.name, {}).items()
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _panel(entry: Entry, frame: pd.DataFrame, scenario: Scenario, scene: Scene) -> pd.DataFrame:
    """Return a row for each method: its reference, its verdict, and the results of the audits."""
    labels, shown, rows = {one.name: one.label for one in entry.methods}, counted(frame, entry, scenario), []
    several = len({method.reference for method in tested(entry)}) > 1
    for method in tested(entry):
        row = {"Method": shown[method.name]} | ({"Against": labels[method.reference]} if several else {})
        if any(one.audit.p for one in scene.audits):
            said, share = scene.verdicts[method.name], scene.left.bound.get(method.name, nan)
            row["Verdict"] = f"**{said}**" if said == FOUND else said
            row["Left, at most"] = "> 100%" if share is None else "–" if isnan(share) else f"{share:.0%}"
        for one in scene.audits:
            of = one.values.get(method.name, {})
            for metric in (metric for metric in _alone(entry) if metric.name in one.audit.metrics):
                low, high = ends(metric.name)
                digits = {"fraction": 3, "probability": 3, "runs": 0}.get(metric.unit, 2)
                text = plus_minus(of.get(metric.name, nan), digits=digits)
                if not isnan(of.get(low, nan)):
                    text += f" ({plus_minus(of[low], digits=digits)} to {plus_minus(of[high], digits=digits)})"
                row[metric.label] = text
            if one.audit.p:
                p = one.p.get(method.name, nan)
                row[f"{one.audit.label}: p"] = "< 0.001" if p < 0.001 else plus_minus(p)
        rows.append(row)
    return grid(rows)


def _words(entry: Entry, scene: Scene) -> list[str]:
    """Return sentences on the audits that judge no method, and on the resolution of each probe."""
    labels = {method.name: method.label for method in entry.methods}
    several = [text for one in scene.audits for text in silent(entry, f"“{one.audit.label}”", one.fails)]
    several += [
        f"{one.label} is not judged: no retraining has its optimiser." for one in tested(entry) if one.own_optimiser
    ]
    present = {method.plugin for method in tested(entry)}
    for one in (one for one in scene.audits if one.audit.p):
        if lacking := [plugin for plugin in one.sees if plugin not in present]:
            several.append(f"{one.audit.label} is not validated here on: {', '.join(lacking)}.")
    for reference, probes in scene.left.resolution.items():
        least = [
            f"{probe.replace('_', ' ')} {'> 100%' if one is None else f'{one:.0%}'}" for probe, one in probes.items()
        ]
        several.append(f"Resolution against {labels[reference]}, by probe: {', '.join(least)}.")
        if scene.left.resolved(reference) and not scene.left.sharp(reference):
            several.append(
                f"Against {labels[reference]} no method is bounded: a method can prepare for every probe with a "
                f"resolution within {MARGIN:.0%}."
            )
    several += [
        f"Against {labels[one]} no method can be bounded: no control keeps a share of the client within {MARGIN:.0%}."
        for one in dict.fromkeys(method.reference for method in tested(entry) if not method.known)
        if one not in scene.left.resolution
    ]
    return several


def _notes(frame: pd.DataFrame, entry: Entry) -> list[str]:
    """Explain verdicts and columns."""
    methods, known = families(frame, entry)
    made = (
        f"{len(entry.seeds)} models of each kind, which differ only in initial weights and random draws: unlearned "
        "ones are compared with as many retrained and original ones, by their predictions on fixed samples."
    )
    if not methods and not known:
        return [made, "These audits only describe: no method passes or fails."]
    return [
        made,
        f"Found: an audit's p, corrected for the {len(methods)} tests of methods (Holm; {len(known)} of controls are "
        "corrected apart), is below .05, so that the probability that any method is found by chance is at most 5%; or "
        "runs of the method diverged. Bounded: nothing is found, and controls with at least this share of the client "
        "lie further towards the original models (95% confidence for all methods and probes together; at most "
        f"{MARGIN:.0%}). Undecided: neither. Resolution: the smallest share that this many models find with a power of "
        "95% at least, at the level that holds for all tests of methods together (95% confidence); only probes with a "
        "resolution within that margin bound a method, and only if a method cannot prepare for one of them: new images "
        "with the trigger or, without a backdoor, the client's held-out samples.",
        "In parentheses: 95% intervals over models." if _intervals(entry) else "",
        *(audit.caveat for audit in entry.audits.values()),
    ]


def _alone(entry: Entry) -> list[Metric]:
    """Return the metrics that have a column of their own; the limits of an interval are shown with their metric."""
    limits = {limit for metric in entry.metrics for limit in ends(metric.name)}
    return [metric for metric in entry.metrics if metric.name not in limits]


def _intervals(entry: Entry) -> bool:
    """Return whether any of the metrics shown has an interval."""
    measured = {name for audit in entry.audits.values() for name in audit.metrics}
    return any(measured.issuperset(ends(metric.name)) for metric in entry.metrics)


def _picture(frame: pd.DataFrame, entry: Entry, scenes: Mapping[str, Scene]) -> Figure:
    """Return a panel for each scenario: every model's position, on the probe where its method's lie furthest."""
    methods = tested(entry)
    height = (0.17 * len(methods) + 0.6) * len(entry.scenarios)
    figure = Figure(figsize=(rcParams["figure.figsize"][0], height), layout="constrained")
    axes = figure.subplots(len(entry.scenarios), 1, squeeze=False, sharex=True)[:, 0]
    used = set[str]()
    for axis, scenario in zip(axes, entry.scenarios, strict=True):
        places = furthest(projections(frame, scenario), scenes[scenario.name].left, methods)
        for k, method in enumerate(methods):
            said = scenes[scenario.name].verdicts[method.name]
            sign = BOUNDED if said.startswith(BOUNDED) else said
            if method.name in places:
                used.add(LEGEND[sign])
                unlearned, retrained = places[method.name]
                axis.fill_betweenx([k - 0.5, k + 0.5], retrained.min(), retrained.max(), color=BAND, linewidth=0)
                axis.plot(unlearned, [k] * len(unlearned), **SIGNS[sign])
        if not places:
            axis.text(0.5, len(methods) / 2, NOWHERE, ha="center", va="center", backgroundcolor="white")
        axis.set_yticks(range(len(methods)), [method.marked for method in methods])
        axis.set_ylim(len(methods) - 0.5, -0.5)
        for at in (0, 1):
            axis.axvline(at, color="0.4", linewidth=0.6, zorder=0)
        axis.grid(axis="y", linewidth=0.4, color="0.9")
        axis.set_axisbelow(True)
        drawing.head(axis, entry.heading_of(scenario.label))
    axes[-1].set_xlabel("position from retrained (0) to original models (1)")
    signs = drawing.signs(used, {LEGEND[one]: style for one, style in SIGNS.items()})
    if used:
        drawing.legend(figure, [*signs, Patch(color=BAND, label="retrained models")])
    return figure


def furthest(
    places: Mapping[str, Mapping[str, Places]], left: Left, methods: list[Method]
) -> dict[str, tuple[Floats, Floats]]:
    """Return the positions of each method's unlearned and retrained models, on the probe where they are largest.

    Of the probes that would show a share within the margin, or else of those that separate original models.
    """
    largest = {}
    for method in methods:
        sharp, probes = left.sharp(method.reference), places.get(method.name, {})
        usable = [positions(of) for probe, of in probes.items() if (probe in sharp if sharp else separated(of))]
        if usable:
            largest[method.name] = max(usable, key=lambda pair: float(pair[0].mean()))
    return largest
