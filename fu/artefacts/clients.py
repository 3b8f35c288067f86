"""Audits of several forgotten clients: inference for further clients beside inference for further runs.

`x` names the coordinate of scenarios that tells which client is forgotten; scenarios of one client differ in their
partition. Positions on the line from retrained (0) to original models (1) are those of `line`, on one probe for all:
others' test images with the trigger, or without a backdoor the forgotten samples.
"""

from collections.abc import Mapping
from math import isnan
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure

from fu.artefacts import drawing, notes
from fu.artefacts.audit import BLACK, LEGEND
from fu.artefacts.auditing import families, tested
from fu.artefacts.bounding import FOUND, Places, judge, positions, projections, separated
from fu.artefacts.entry import Entry, Method
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus
from fu.artefacts.wrapping import width
from fu.audits.crossed import Cell, Crossed, crossed
from fu.audits.models import FORGOTTEN, TRIGGERED

INPUTS = ("audits",)
NEEDS = ("against", "x")
COLUMNS = ["scenario", "client", "method", "verdict", "models", "position", "deviation"]
INTERVALS: dict[str, dict[str, Any]] = {
    "95% over runs": {"color": "0.25", "linewidth": 1},
    "95% over clients": {"color": "0.75", "linewidth": 4, "zorder": 1},
}
PAD = 12  # points between the labels of the methods and the panel, and to the right of it
READ = (
    "Verdicts: in how many scenarios, corrected for the {number} tests of methods, and separately for those of "
    "controls (Holm). Position: from retrained (0) to original models (1), mean over clients and partitions. Over "
    "clients: {clients}. Over runs: 95% interval for these very clients and partitions, were unlearned and retrained "
    "models trained again with other seeds. Deviations: of the clients' means, and of the runs of one client on one "
    "partition."
)
SEVERAL = "95% interval for the mean over further clients with the same seeds, Student's t over the means of {number}"
ALONE = "no interval, as one client gives none"
Verdicts = Mapping[tuple[str, str], str]  # by scenario and method
Cells = Mapping[tuple[str, str], Cell]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return verdicts and positions of every method over clients and of each client, and a picture."""
    said = {scenario.name: judge(frame, entry, scenario).verdicts for scenario in entry.scenarios}
    verdicts = {(scenario, method): word for scenario, of in said.items() for method, word in of.items()}
    cells = cells_of(frame, entry)
    shown = {metric.name for metric in entry.metrics}
    values = frame[frame["run"].isna() & frame["metric"].isin(shown)][["scenario", "method", "metric", "value"]]
    single = pd.DataFrame([_row(entry, *key, verdicts, cells) for key in verdicts], columns=COLUMNS)
    rows = single.merge(values, on=["scenario", "method"])
    means = {method.name: over_clients(entry, method, cells) for method in tested(entry)}
    number = len({scenario.at[str(entry.x)] for scenario in entry.scenarios})
    clients = SEVERAL.format(number=number) if number > 1 else ALONE
    text = notes.joined(entry, READ.format(number=len(families(frame, entry)[0]), clients=clients))
    tables = [
        ("Over clients", grid(_over(entry, method, verdicts, means[method.name]) for method in tested(entry))),
        ("Each client: verdict, position", grid(_each(entry, method, verdicts, cells) for method in tested(entry))),
    ]
    return of_table(rows, tables, text, names=("over", "each"), figure=_picture(entry, single, means))


def over_clients(entry: Entry, method: Method, cells: Cells) -> Crossed | None:
    """Return the inference over clients; None where a scenario gives no positions."""
    groups: dict[Any, list[Cell]] = {}
    for scenario in entry.scenarios:
        if (scenario.name, method.name) not in cells:
            return None
        groups.setdefault(scenario.at[str(entry.x)], []).append(cells[scenario.name, method.name])
    return crossed([*groups.values()], len(entry.seeds))


def cells_of(frame: pd.DataFrame, entry: Entry) -> Cells:
    """Return positions of unlearned and retrained models, of scenarios that separate original ones."""
    cells = {}
    for scenario in entry.scenarios:
        for method, probes in projections(frame, scenario).items():
            places: Places = probes.get(TRIGGERED) or probes[FORGOTTEN]
            if separated(places) and min(map(len, places.values())) > 1:
                cells[scenario.name, method] = positions(places)
    return cells


def _row(entry: Entry, scenario: str, method: str, verdicts: Verdicts, cells: Cells) -> dict[str, Any]:
    client = next(one.at[str(entry.x)] for one in entry.scenarios if one.name == scenario)
    row = {"scenario": scenario, "client": client, "method": method, "verdict": verdicts[scenario, method]}
    if (scenario, method) in cells:
        unlearned, retrained = cells[scenario, method]
        row |= {"models": len(unlearned), "position": unlearned.mean() - retrained.mean()}
        row |= {"deviation": unlearned.std(ddof=1)}
    return row


def _over(entry: Entry, method: Method, verdicts: Verdicts, mean: Crossed | None) -> dict[Any, str]:
    own = [verdicts[scenario.name, method.name] for scenario in entry.scenarios]
    counts = {word: sum(one.startswith(word) for one in own) for word in LEGEND}
    text = ", ".join(f"{LEGEND[word]} in {count}" for word, count in counts.items() if count)
    row: dict[Any, str] = {"Method": method.marked, "Verdicts": f"**{text}**" if counts[FOUND] == len(own) else text}
    if mean is None:
        return row
    return {
        **row,
        ("Position", "mean"): plus_minus(mean.mean, digits=2),
        ("Position", "over clients"): _interval(*mean.over_clients),
        ("Position", "over runs"): _interval(*mean.over_runs),
        ("Deviation", "clients"): plus_minus(mean.between, digits=2),
        ("Deviation", "runs"): plus_minus(mean.within, digits=2),
    }


def _interval(low: float, high: float) -> str:
    return "–" if isnan(low) else f"{plus_minus(low, digits=2)} to {plus_minus(high, digits=2)}"


def _each(entry: Entry, method: Method, verdicts: Verdicts, cells: Cells) -> dict[Any, str]:
    """Return a row with the verdict and the mean position in each scenario, and how many models did not diverge."""
    row: dict[Any, str] = {"Method": method.marked}
    labels = [scenario.label for scenario in entry.scenarios]
    for scenario in entry.scenarios:
        key, text = (scenario.name, method.name), verdicts[scenario.name, method.name]
        if key in cells:
            unlearned, retrained = cells[key]
            fewer = f" ({len(unlearned)} models)" if len(unlearned) < len(entry.seeds) else ""
            text += f", {plus_minus(unlearned.mean() - retrained.mean(), digits=2)}{fewer}"
        unique = labels.count(scenario.label) == 1
        row[scenario.label if unique else f"{scenario.label} ({scenario.name})"] = text
    return row


def _picture(entry: Entry, rows: pd.DataFrame, means: Mapping[str, Crossed | None]) -> Figure:
    """Draw each method's position in every scenario, filled where it is found, and both intervals."""
    methods = tested(entry)
    size = rcParams["figure.figsize"][0], (0.15 + 0.07 * len(entry.scenarios)) * len(methods) + 1
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    offsets = {one.name: (k + 1) / (len(entry.scenarios) + 1) - 0.5 for k, one in enumerate(entry.scenarios)}
    for place, method in enumerate(methods):
        mean = means[method.name]
        if mean is not None:
            axis.hlines(place, *mean.over_clients, **INTERVALS["95% over clients"])
            axis.hlines(place, *mean.over_runs, **INTERVALS["95% over runs"])
        for row in rows[(rows["method"] == method.name) & rows["position"].notna()].to_dict("records"):
            axis.plot(row["position"], place + offsets[row["scenario"]], **_sign(row["verdict"] == FOUND))
    places = [", ".join(f"{short} {value}" for short, value in one.at.items()) for one in entry.scenarios]
    alone = entry.heading_of(entry.scenarios[0].label)
    labels = [method.marked for method in methods]
    margin = PAD + max(width(label, rcParams["ytick.labelsize"]) for label in labels)
    drawing.head(axis, f"From top to bottom: {'; '.join(places)}" if len(places) > 1 else alone, margin=margin)
    for at in (0, 1):
        axis.axvline(at, color="0.4", linewidth=0.6, zorder=0)
    axis.set_yticks(range(len(methods)), labels)
    axis.set_ylim(len(methods) - 0.5, -0.5)
    axis.set_xlabel("position from retrained (0) to original models (1)")
    signs = {"found": _sign(True), "not found": _sign(False)}
    several = rows["client"].nunique() > 1
    styles = {**signs, **{label: style for label, style in INTERVALS.items() if several or "runs" in label}}
    drawing.legend(figure, drawing.signs(styles, styles))
    return figure


def _sign(found: bool) -> dict[str, Any]:
    return BLACK if found else {**BLACK, "markerfacecolor": "white"}
