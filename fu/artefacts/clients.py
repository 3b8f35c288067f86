"""Audits of several forgotten clients: what holds for further clients, and what for further runs of these alone.

`x` names the coordinate of scenarios that says which client is forgotten; scenarios of one client differ in their
partition. Positions on the line from retrained (0) to original models (1) are those of `line`, on one probe for all:
triggered test images of others, or the forgotten samples where there is no backdoor.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure

from fu.artefacts import drawing, notes
from fu.artefacts.audit import BLACK, LEGEND
from fu.artefacts.auditing import FOUND, LINE, audits, family, remaining, tested, verdict
from fu.artefacts.entry import Entry, Method
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.words import plus_minus
from fu.audits.crossed import Cell, Crossed, crossed
from fu.audits.models import FORGOTTEN, TRIGGERED

INPUTS = ("audits",)
NEEDS = ("against", "x")
COLUMNS = ["scenario", "client", "method", "verdict", "models", "position", "deviation"]
READ = (
    "Verdicts: in how many scenarios, corrected for the {number} tests of this table (Holm). Position: from retrained "
    "(0) to original models (1), mean over clients and partitions. Over clients: {clients}. Over runs: 95% interval "
    "for these very clients and partitions, were all models trained again. Deviations: of the clients' means, and of "
    "the runs of one client on one partition."
)
SEVERAL = "95% interval for the mean over further clients, Student's t over the means of {number}"
ALONE = "nothing, as one client says nothing of others"
Cells = Mapping[tuple[str, str], Cell]  # by scenario and method


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return verdicts and positions of every method over clients, and a picture of each client's mean."""
    said, cells = _said(frame, entry), positions(frame, entry)
    shown = [metric.name for metric in entry.metrics]
    values = frame[frame["run"].isna() & frame["metric"].isin(shown)]
    keys = [*zip(values["scenario"], values["method"], strict=True)]
    each = pd.DataFrame([_row(entry, key, said, cells) for key in keys], columns=COLUMNS)
    rows = each.assign(metric=[*values["metric"]], value=[*values["value"]])
    found = {method.name: over_clients(entry, method, cells) for method in tested(entry)}
    table = grid(_line(entry, method, said, found[method.name]) for method in tested(entry))
    number = len({scenario.at[str(entry.x)] for scenario in entry.scenarios})
    clients = SEVERAL.format(number=number) if number > 1 else ALONE
    text = notes.joined(entry, READ.format(number=len(family(frame, entry)), clients=clients))
    single = grid(_each(entry, method, said, cells) for method in tested(entry))
    tables = [("Over clients", table), ("Each client: verdict, position", single)]
    return of_table(rows, tables, text, names=("over", "each"), figure=_picture(entry, each.drop_duplicates(), found))


def positions(frame: pd.DataFrame, entry: Entry) -> Cells:
    """Return the positions of unlearned and retrained models; none where original models lie among retrained ones."""
    lines = frame[frame["metric"].astype(str).str.startswith(f"{LINE}: ") & frame["run"].notna()]
    places = {key: part["value"].to_numpy() for key, part in lines.groupby(["scenario", "method", "metric"])}
    found = {}
    for scenario in entry.scenarios:
        for method in tested(entry):
            for probe in (TRIGGERED, FORGOTTEN):
                keys = [f"{LINE}: {probe}, {kind}" for kind in ("unlearned", "retrained", "original")]
                of = [places.get((scenario.name, method.name, key)) for key in keys]
                unlearned, retrained, original = of
                if unlearned is None or retrained is None or original is None:
                    continue
                if min(len(unlearned), len(retrained)) > 1 and original.min() > retrained.max():
                    found[scenario.name, method.name] = unlearned / original.mean(), retrained / original.mean()
                break
    return found


def over_clients(entry: Entry, method: Method, cells: Cells) -> Crossed | None:
    """Return the inference over clients; None where a scenario gives no positions."""
    groups: dict[Any, list[Cell]] = {}
    for scenario in entry.scenarios:
        if (scenario.name, method.name) not in cells:
            return None
        groups.setdefault(scenario.at[str(entry.x)], []).append(cells[scenario.name, method.name])
    return crossed([*groups.values()])


def _said(frame: pd.DataFrame, entry: Entry) -> dict[tuple[str, str], str]:
    said: dict[tuple[str, str], str] = {}
    for scenario in entry.scenarios:
        judged, left = audits(frame, entry, scenario), remaining(frame, entry, scenario)
        said |= {(scenario.name, method.name): verdict(entry, method, judged, left) for method in tested(entry)}
    return said


def _row(entry: Entry, key: tuple[str, str], said: Mapping[tuple[str, str], str], cells: Cells) -> dict[str, Any]:
    scenario, method = key
    client = next(one.at[str(entry.x)] for one in entry.scenarios if one.name == scenario)
    row = {"scenario": scenario, "client": client, "method": method, "verdict": said[key]}
    if key in cells:
        unlearned, retrained = cells[key]
        row |= {"models": len(unlearned), "position": unlearned.mean() - retrained.mean()}
        row |= {"deviation": unlearned.std(ddof=1)}
    return row


def _line(entry: Entry, method: Method, said: Mapping[tuple[str, str], str], found: Crossed | None) -> dict[Any, str]:
    own = [said[scenario.name, method.name] for scenario in entry.scenarios]
    counts = {word: sum(one.startswith(word) for one in own) for word in LEGEND}
    text = ", ".join(f"{LEGEND[word]} in {count}" for word, count in counts.items() if count)
    row: dict[Any, str] = {"Method": method.marked, "Verdicts": f"**{text}**" if counts[FOUND] == len(own) else text}
    if found is None:
        return row
    ends = {"over clients": found.over_clients, "over runs": found.over_runs}
    intervals = {("Position", head): " to ".join(plus_minus(end, digits=2) for end in of) for head, of in ends.items()}
    deviations = {"clients": found.between, "runs": found.within}
    return (
        row
        | {("Position", "mean"): plus_minus(found.mean, digits=2)}
        | {key: "–" if "–" in text else text for key, text in intervals.items()}
        | {("Deviation", head): plus_minus(value, digits=2) for head, value in deviations.items()}
    )


def _each(entry: Entry, method: Method, said: Mapping[tuple[str, str], str], cells: Cells) -> dict[Any, str]:
    row: dict[Any, str] = {"Method": method.marked}
    for scenario in entry.scenarios:
        key = scenario.name, method.name
        place = plus_minus(cells[key][0].mean() - cells[key][1].mean(), digits=2) if key in cells else "–"
        row[scenario.label] = f"{said[key]}, {place}"
    return row


def _picture(entry: Entry, rows: pd.DataFrame, found: Mapping[str, Crossed | None]) -> Figure:
    """Return a line for each method: its position in every scenario, filled where it is found, and both intervals."""
    methods = tested(entry)
    size = rcParams["figure.figsize"][0], (0.15 + 0.07 * len(entry.scenarios)) * len(methods) + 1
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    offsets = {one.name: (k + 1) / (len(entry.scenarios) + 1) - 0.5 for k, one in enumerate(entry.scenarios)}
    for place, method in enumerate(methods):
        of = found[method.name]
        if of is not None:
            axis.hlines(place, *of.over_clients, color="0.75", linewidth=4)
            axis.hlines(place, *of.over_runs, color="0.25", linewidth=1)
        for row in rows[(rows["method"] == method.name) & rows["position"].notna()].to_dict("records"):
            axis.plot(row["position"], place + offsets[row["scenario"]], **_sign(row["verdict"] == FOUND))
    labels = [entry.heading_of(scenario.label) for scenario in entry.scenarios]
    drawing.head(axis, "; ".join(labels) + (", from top to bottom" if len(labels) > 1 else ""))
    for at in (0, 1):
        axis.axvline(at, color="0.4", linewidth=0.6, zorder=0)
    axis.set_yticks(range(len(methods)), [method.marked for method in methods])
    axis.set_ylim(len(methods) - 0.5, -0.5)
    axis.set_xlabel("position from retrained (0) to original models (1)")
    signs = {"found": _sign(True), "not found": _sign(False)}
    lines: dict[str, dict[str, Any]] = {
        "95% over runs": {"color": "0.25", "linewidth": 1},
        "95% over clients": {"color": "0.75", "linewidth": 4},
    }
    lines = lines if rows["client"].nunique() > 1 else {"95% over runs": lines["95% over runs"]}
    drawing.legend(figure, drawing.signs({*signs, *lines}, {**signs, **lines}))
    return figure


def _sign(found: bool) -> dict[str, Any]:
    return BLACK if found else {**BLACK, "markerfacecolor": "white"}
