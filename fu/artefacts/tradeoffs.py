"""V, S and Q of models, paired by seed with two optima (Shao et al. 2024, section 4; Figures 1, 5 and 7, Table 2).

`against` names the optima: w*, a training of all clients, and w_r*, one of the retained clients. What a client loses is
what it has less of at a model than at an optimum, in points of accuracy, or how much higher its loss is. Weights are
numbers of training samples.
"""

from collections.abc import Iterator
from itertools import product
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fu.artefacts import lines, notes
from fu.artefacts.changes import gap, spread
from fu.artefacts.drawing import NONE, ascending, head, legend, looks, panels, point, share_y
from fu.artefacts.entry import ORIGINAL, Entry, Metric, Scenario, Trial
from fu.artefacts.groups import axis_name, group
from fu.artefacts.panels import OURS, Panels, grid
from fu.artefacts.result import Result, of_figure, of_table
from fu.artefacts.statistics import MODEL, evaluated, printed, summaries
from fu.artefacts.words import plus_minus

INPUTS = ("evaluations",)
TABLE = True  # unless `marks` says otherwise
CLIENTS = True  # it shows numbers of single clients
OPTIMA = True  # `against` has a training and a method that retrains, of as many rounds as any other model
POINTS = True  # each point of a grid is a row
NEEDS = ("against",)
ALSO = ("client_samples", "client_forgotten", "all_moved", "retained_moved")
MARKS = {"lines": ("original", "unlearned"), "clients": ("original", "unlearned")}
PUBLISHED = {"metrics": ("V", "S", "V + S", "Q", "harm")}
BY_SEED = ("V", "S", "V + S", "Q", "harm")  # of the first metric
QUANTITIES = {
    "V": "mean loss of accuracy of the retained clients against w_r*, their own optimum",
    "S": "mean loss of accuracy of all clients against w*, their optimum",
    "V + S": "their sum",
    "Q": "mean distance of the retained clients' losses against w* from their mean",
    "harm": "the largest loss of a retained client, against ω⁰",
}
DRAWN = ("V", "S", "V + S")
KEYS = ["scenario", "method", "trial", "stage", "metric", "quantity"]
WIDTH = 0.8  # of the bars of a client, together


class Shown(NamedTuple):
    """A row of a panel: a trial at its last stage. `optimum`: w* or w_r*, where it is one."""

    method: str
    label: str
    trial: Trial
    stage: str
    optimum: str = ""


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return V, S, Q and the greatest harm, mean and deviation over seeds, or the losses of each client."""
    each = changes(frame, entry)
    found = collect(frame, entry, each)
    shown: Panels = [(scenario.label, _panel(entry, found, scenario)) for scenario in entry.scenarios]
    text = _notes(frame, entry, found)
    if entry.marks == "clients":
        return of_figure(each, shown, text, _bars(entry, each))
    return (
        of_figure(found, shown, text, _lines(entry, found)) if entry.marks == "lines" else of_table(found, shown, text)
    )


def rows(entry: Entry, scenario: Scenario) -> list[Shown]:
    """Return the models of a scenario: the original one, the optima, then all others."""
    found = [Shown(ORIGINAL, "ω⁰", scenario.original, ORIGINAL)] if scenario.original else []
    for method in sorted(entry.methods, key=lambda method: method.name not in entry.against):
        trials = entry.trials(scenario.name, method)
        for trial in trials:
            label = ", ".join(filter(None, [method.marked, point(trial.values)]))
            optimum = ("w*" if method.trains else "w_r*") if method.name in entry.against else ""
            found.append(Shown(method.name, label, trial, [*trial.models][-1], optimum))
    return found


def changes(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return what each client loses at each model, seed by seed: against w*, w_r* and ω⁰.

    Points of accuracy, nats of a loss. Seeds in which a model or an optimum diverged are left out.
    """
    kept = evaluated(frame).rows
    kept = kept[kept["client"].notna()].astype({"client": int})
    scales = {m.name: (100 if m.unit == "fraction" else 1) * (1 if m.better == "higher" else -1) for m in entry.metrics}
    at = [*MODEL, "seed", "client"]
    wide = kept.pivot_table("value", at, "metric").reset_index()
    wide = wide.rename(columns={"client_samples": "samples", "client_forgotten": "forgotten"})
    parts: list[pd.DataFrame] = []
    for scenario in entry.scenarios:
        here = wide[wide["scenario"] == scenario.name]
        models = {(s.method, s.trial.name, s.stage): s for s in rows(entry, scenario)}
        named = [models.get(key) for key in here[MODEL[1:]].itertuples(index=False, name=None)]
        here = here[[model is not None for model in named]]
        optima = {model.optimum: key for key, model in models.items() if model.optimum}
        optima["ω⁰"] = next((key for key in models if key[0] == ORIGINAL), ("", "", ""))
        for metric, scale in scales.items():
            own = here[[*at, metric, "samples", "forgotten"]].rename(columns={metric: "value"})
            for reference, key in optima.items():
                there = own["method"].eq(key[0]) & own["trial"].eq(key[1]) & own["stage"].eq(key[2])
                best = own[there][["seed", "client", "value"]]
                joined = own.merge(best, on=["seed", "client"], suffixes=("", "_there"))
                joined = joined.rename(columns={"value_there": "best"})
                lost = scale * (joined["best"] - joined["value"])
                parts.append(joined.assign(metric=metric, against=reference, lost=lost))
    columns = [*MODEL, "metric", "seed", "client", "value", "samples", "forgotten", "against", "best", "lost"]
    return pd.concat(parts)[columns]


def quantities(losses: pd.DataFrame) -> dict[str, float]:
    """Return V, S, V + S, Q and harm of the losses of one model on one seed; none where an optimum has no numbers."""
    stay = losses[losses["forgotten"] == 0]
    by = {name: part.set_index("client") for name, part in losses.groupby("against")}
    those = {name: part.set_index("client") for name, part in stay.groupby("against")}
    if not {"w*", "w_r*"} <= by.keys():
        return {}
    v = gap(those["w_r*"]["lost"], those["w_r*"]["samples"])
    s = gap(by["w*"]["lost"], by["w*"]["samples"])
    q = spread(those["w*"]["lost"], those["w*"]["samples"])
    harm = {"harm": float(those["ω⁰"]["lost"].max())} if "ω⁰" in those else {}
    return {"V": v, "S": s, "V + S": v + s, "Q": q, **harm}


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return V, S, V + S, Q and harm, in the first metric, of each model and seed; inf where the model itself diverged.

    Other models have no value on a seed where an optimum diverged.
    """
    found = _by_seed(changes(frame, entry))
    found = found[found["metric"] == entry.metrics[0].name].drop(columns="metric")
    diverged = evaluated(frame).diverged
    gone = [
        (*model, quantity, seed, inf)
        for scenario in entry.scenarios
        for model in ((scenario.name, s.method, s.trial.name, s.stage) for s in rows(entry, scenario))
        for seed in sorted(diverged.get(model, ()))
        for quantity in QUANTITIES
        if quantity != "harm" or scenario.original
    ]
    lost = pd.DataFrame(gone, columns=found.columns)
    return pd.concat([part for part in (found, lost) if len(part)] or [found]).rename(columns={"quantity": "metric"})


def _by_seed(each: pd.DataFrame) -> pd.DataFrame:
    values = [
        {**dict(zip([*KEYS[:5], "seed"], key, strict=True)), "quantity": name, "value": value}
        for key, losses in each.groupby([*KEYS[:5], "seed"], sort=False)
        for name, value in quantities(losses).items()
    ]
    return pd.DataFrame(values, columns=[*KEYS, "seed", "value"])


def collect(frame: pd.DataFrame, entry: Entry, each: pd.DataFrame) -> pd.DataFrame:
    """Return mean, std and n over seeds of each model's quantities, beside the paper's."""
    diverged = evaluated(frame).diverged
    known = summaries(_by_seed(each), KEYS).set_index(KEYS)
    index = [
        (scenario.name, model.method, model.trial.name, model.stage, metric.name, quantity)
        for scenario in entry.scenarios
        for model in rows(entry, scenario)
        for metric in entry.metrics
        for quantity in QUANTITIES
    ]
    found = known.reindex(pd.MultiIndex.from_tuples(index, names=KEYS)).reset_index()
    found["n"] = found["n"].fillna(0).astype(int)
    lost = {(scenario, method, trial): len(seeds) for (scenario, method, trial, _), seeds in diverged.items()}
    found["diverged"] = [
        lost.get((str(row.scenario), str(row.method), str(row.trial)), 0) for row in found.itertuples()
    ]
    paper = printed(frame, entry).set_index(["scenario", "method", "metric"])["value"].to_dict()
    first = entry.metrics[0].name
    found["published"] = [
        paper.get((row.scenario, row.trial, row.quantity), nan) if row.metric == first else nan
        for row in found.itertuples()
    ]
    return found.assign(difference=found["mean"] - found["published"])


def _panel(entry: Entry, found: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    here = found[found["scenario"] == scenario.name]
    compared = set(here[here["published"].notna()][["metric", "quantity"]].itertuples(index=False, name=None))
    cells = here.set_index(["trial", "stage", "metric", "quantity"]).to_dict("index")
    shown = []
    for model in rows(entry, scenario):
        gone = cells[model.trial.name, model.stage, entry.metrics[0].name, "V"]["diverged"]
        row: dict[Any, str] = {"Model": model.label + (f" ({gone} of {len(entry.seeds)} diverged)" if gone else "")}
        for metric, quantity in product(entry.metrics, QUANTITIES):
            name = quantity if len(entry.metrics) == 1 else f"{quantity}, {_unit(metric)}"
            cell, paper = (
                cells[model.trial.name, model.stage, metric.name, quantity],
                (metric.name, quantity) in compared,
            )
            row[(name, OURS) if paper else name] = plus_minus(
                cell["mean"], cell["std"], 2 if metric.unit == "fraction" else 4
            )
            if paper:
                row[name, "paper"] = plus_minus(cell["published"], digits=2)
                row[name, "diff"] = "–" if pd.isna(cell["difference"]) else f"{cell['difference']:+.2f}"
        shown.append(row)
    return grid(shown)


def _unit(metric: Metric) -> str:
    return "points" if metric.unit == "fraction" else metric.unit


def _notes(frame: pd.DataFrame, entry: Entry, found: pd.DataFrame) -> str:
    units = ["points of accuracy" if metric.unit == "fraction" else metric.unit for metric in entry.metrics]
    terms = "; ".join(f"{name}: {text}" for name, text in QUANTITIES.items())
    return notes.joined(
        entry,
        f"In {' and '.join(dict.fromkeys(units))}; weighted by training samples: {terms}.",
        "Clients count from 1.",
        *_optima(frame, entry),
        notes.deviations(entry),
        "–: a model or an optimum diverged." if (found["n"] == 0).any() else "",
        notes.comparison(entry) if entry.compares else entry.note,
    )


def _optima(frame: pd.DataFrame, entry: Entry) -> Iterator[str]:
    """Say what stands for each optimum, and how much it moved in its last ten rounds."""
    for method in (method for method in entry.methods if method.name in entry.against):
        symbol, metric, what = ("w*", "all_moved", "S") if method.trains else ("w_r*", "retained_moved", "V")
        own = frame[(frame["method"] == method.name) & (frame["metric"] == metric)]["value"].dropna()
        moved = " to ".join(dict.fromkeys(f"{value:+.2f}" for value in (own.min(), own.max())))
        after = f"; its last ten rounds move {what} by {moved} points" if len(own) else ""
        yield f"{symbol} is approximated by {method.label!r}{after}."


def _lines(entry: Entry, found: pd.DataFrame) -> Figure:
    """Draw V, S and their sum over x, with what has no x as a horizontal line."""
    assert entry.x is not None
    metric = entry.metrics[0]
    drawn = tuple(
        Metric(name=name, label=f"{name}, {_unit(metric)}", unit=_unit(metric), better="lower", formula="")
        for name in DRAWN
    )
    others = tuple(method for method in entry.methods if method.name not in entry.against)
    shown = entry.model_copy(update={"metrics": drawn, "methods": others})
    groups = group(shown)
    known = found[found["metric"] == metric.name].drop(columns="metric").rename(columns={"quantity": "metric"})
    spots = [{**spot._asdict(), "trial": spot.trial.name, "stage": [*spot.trial.models][-1]} for spot in groups.spots]
    points = pd.DataFrame(spots).merge(known, on=["scenario", "method", "trial", "stage"])
    values = sorted({spot.x for spot in groups.spots if spot.x is not None}, key=ascending)
    return lines.picture(shown, groups, points, lines.scaled(values), axis_name(entry, entry.x), shaded=False)


def _bars(entry: Entry, each: pd.DataFrame) -> Figure:
    """Draw what each client gains or loses against w*, and all together; forgotten clients stand in grey."""
    metric = entry.metrics[0]
    models = {
        scenario.name: [m for m in rows(entry, scenario) if not m.optimum and m.stage in entry.stages]
        for scenario in entry.scenarios
    }
    labels = {f"{m.method}.{m.label}": m.label for several in models.values() for m in several}
    known = {method.name: method for method in entry.methods}
    styles = looks([known[name.partition(".")[0]].model_copy(update={"name": name}) for name in labels], shaded=True)
    figure, axes = panels(len(entry.scenarios), 1, 1.7)
    for [axis], scenario in zip(axes, entry.scenarios, strict=True):
        here = each[(each["scenario"] == scenario.name) & (each["against"] == "w*") & (each["metric"] == metric.name)]
        clients = sorted(here["client"].unique())
        width = WIDTH / len(models[scenario.name])
        for k, model in enumerate(models[scenario.name]):
            own = here[(here["trial"] == model.trial.name) & (here["stage"] == model.stage)]
            lost = own.groupby("client")["lost"].agg(["mean", "std"]).reindex(clients)
            sums = pd.Series([gap(part["lost"], part["samples"]) for _, part in own.groupby("seed")], dtype=float)
            heights = -np.array([*lost["mean"], sums.mean()])
            at = np.arange(len(heights)) + (k - (len(models[scenario.name]) - 1) / 2) * width
            axis.bar(at, heights, width, color=styles[f"{model.method}.{model.label}"].colour)
            if own["seed"].nunique() > 1:
                deviations = np.array([*lost["std"], sums.std()])
                axis.errorbar(at, heights, deviations, color="black", linestyle="none", linewidth=0.8)
        for client in here[here["forgotten"] == 1]["client"].unique():
            place = clients.index(client)
            axis.axvspan(place - 0.5, place + 0.5, color="0.9", zorder=0)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set_xticks(range(len(clients) + 1), [*(str(client + 1) for client in clients), "all"])
        axis.set(xlabel="client", ylabel=f"change, {_unit(metric)}")
        axis.margins(x=0.01)
        head(axis, entry.heading_of(scenario.label), margin=NONE)
    share_y([axis for [axis] in axes])
    marks = [Patch(color=styles[name].colour, label=label) for name, label in labels.items()]
    legend(figure, [*marks, Patch(color="0.9", label="forgotten")])
    return figure
