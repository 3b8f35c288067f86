"""Accuracy and unlearning time of FATS against rho_S and rho_C (FATS Figures 4 and 7, section 6.2.4).

Accuracy is that of trained models. Time is that of requests that are drawn, with the exact mean and FRS. What a
scenario asks to be forgotten says whether its rho is rho_S or rho_C. Accuracy and time stand side by side.
"""

from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fu.artefacts import drawing, notes
from fu.artefacts.entry import Entry
from fu.artefacts.panels import grid
from fu.artefacts.requests import FRS, asked, counted, draw_retrained, draw_times, retrained, times
from fu.artefacts.result import Result, of_figure
from fu.artefacts.statistics import Mean, evaluated
from fu.artefacts.words import in_a_row, plus_minus

INPUTS = ("evaluations",)
REQUESTS = True
RHO = {"sample": "ρ_S", "client": "ρ_C"}
FORMULAS = {"sample": r"$\rho_S = b\,K\,T\,/\,(M N)$", "client": r"$\rho_C = K R\,/\,M$"}
TIME = "time"
SIGNS: dict[str, dict[str, Any]] = {
    "time, mean over requests": {"color": "0.15", "marker": "h", "markersize": 4, "linestyle": "none"},
    "time, exact mean": {"color": "0.15", "linewidth": 0.8},
    "FRS": FRS,
}
ABOUT = ("scenario", "level", "targets", "rho", "K", "b", "frs")


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return accuracy (mean and deviation over seeds) and time by rho, a row of panels for each name and level."""
    means = evaluated(frame).means()
    rows = []
    for scenario in entry.scenarios:
        spent = times(entry, scenario, asked(frame, entry, scenario))
        assert scenario.asked is not None
        number, level = scenario.asked.number, scenario.asked.level
        forgotten = f"{number} {level}s" if number > 1 else f"a {level}"
        about = {"panel": f"{scenario.family or scenario.label}, {forgotten} to forget"}
        about |= {name: spent[name] for name in ABOUT}
        for method, metric in product(entry.methods, entry.metrics):
            trial = entry.trial(scenario.name, method)
            model = scenario.name, method.name, trial.name, [*trial.models][-1]
            mean = means.get((*model, metric.name), Mean())
            rows.append({**about, "method": method.name, "metric": metric.name, **mean._asdict()})
        time = {name: spent[name] for name in ("mean", "n", "error", "exact")}
        rows.append({**about, "method": "", "metric": TIME, **time})
    found = pd.DataFrame(rows)
    shown = [(str(panel), _table(entry, part)) for panel, part in found.groupby("panel", sort=False)]
    return of_figure(found, shown, _notes(entry, found), _picture(entry, found))


def _table(entry: Entry, part: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for _, own in part.sort_values("rho", kind="stable").groupby("scenario", sort=False):
        first, time = own.iloc[0], own[own["metric"] == TIME].iloc[0]
        row = {RHO[first["level"]]: f"{first['rho']:.3f}", "K": first["K"], "b": first["b"]}
        for method, metric in product(entry.methods, entry.metrics):
            cell = own[(own["method"] == method.name) & (own["metric"] == metric.name)].iloc[0]
            name = metric.label if len(entry.methods) == 1 else f"{method.marked}, {metric.label}"
            row[name] = plus_minus(cell["mean"], cell["std"]) if cell["n"] else drawing.DIVERGED
        row |= {"time": plus_minus(time["mean"], time["error"], 1), "time, exact": plus_minus(time["exact"], digits=1)}
        rows.append({**row, "FRS": time["frs"], "of FRS, exact": plus_minus(time["exact"] / time["frs"])})
    return grid(rows)


def _notes(entry: Entry, found: pd.DataFrame) -> str:
    lost = found[(found["metric"] != TIME) & (found["n"] < len(entry.seeds))]
    return notes.joined(
        entry,
        f"Time: time steps computed again, 0 where nothing is; {counted(entry, found[found['metric'] == TIME])} "
        f"{retrained(found)}",
        notes.seeds(entry, 0),
        notes.deviations(entry, "± of time: that standard error; of all else"),
        f"Seeds that diverged are left out: {in_a_row([*lost['scenario'].unique()])}." if len(lost) else "",
        entry.note,
    )


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    groups = list(found.groupby("panel", sort=False))
    figure, axes = drawing.panels(len(groups), len(entry.metrics) + 1, 2.3)
    styles = drawing.looks(entry.methods, own=entry.paper)
    for row, (panel, part) in zip(axes, groups, strict=True):
        drawing.head(row[0], entry.heading_of(str(panel)), len(row))
        for axis, metric in zip(row, entry.metrics, strict=False):
            for k, method in enumerate(entry.methods):
                own = part[(part["method"] == method.name) & (part["metric"] == metric.name)].sort_values("rho")
                shown = own[own["n"] > 0].assign(at=lambda rows: rows["rho"])
                drawing.draw_means(axis, shown, styles[method.name])
                for at in own[own["n"] == 0]["rho"]:
                    drawing.draw_diverged(axis, at, k, styles[method.name])
            axis.set_ylabel(metric.label)
        drawn, exact, _ = SIGNS.values()
        draw_times(row[-1], part[part["metric"] == TIME], "rho", exact, drawn)
        draw_retrained(row[-1], part)
        for axis in row:
            axis.set_xlabel(FORMULAS[part["level"].iloc[0]], parse_math=True)
            axis.set_xlim(0, 1.04 * part["rho"].max())
    for k, metric in enumerate(entry.metrics):
        if metric.unit == "fraction":
            drawing.show_shares([row[k] for row in axes])
    drawing.legend(figure, [*drawing.handles(entry.methods, own=entry.paper), *drawing.signs(SIGNS, SIGNS)])
    return figure
