"""Metrics over the values of one setting: all trials of the methods' grids, none chosen."""

from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from fu.artefacts import notes
from fu.artefacts.drawing import (
    CROSS,
    DIVERGED,
    FEW,
    NARROW,
    WIDE,
    ascending,
    draw_diverged,
    draw_means,
    handles,
    head,
    legend,
    looks,
    number,
    panels,
    setting_name,
    show_shares,
    title,
)
from fu.artefacts.entry import Entry, Method
from fu.artefacts.result import Result
from fu.artefacts.statistics import evaluated, summaries
from fu.errors import UserError

READS = "evaluations"
TRIALS = "all"
SETTINGS = 1  # how many of them vary
BEFORE = "before post-training"
BREAK = "//"
SIGNS: dict[str, dict[str, Any]] = {
    BEFORE: {"color": "0.35", "marker": "o", "markerfacecolor": "white", "linestyle": ":"},
    DIVERGED: {"color": "0.35", **CROSS},
}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds after post-training (or unlearning, where nothing follows)."""
    setting = varied(entry)
    for method in entry.methods:
        if any(setting not in trial.values for trials in method.trials.values() for trial in trials):
            raise UserError(
                f"{entry.artefact}: a sweep needs {setting} in the grid of every method; {method.name!r} has none."
            )
    trials = {t.name: t for method in entry.methods for found in method.trials.values() for t in found}
    seeds = evaluated(frame)
    rows = seeds.rows[seeds.rows["trial"].isin(trials)]
    rows = rows.assign(
        x=[trials[name].values[setting] for name in rows["trial"]],
        last=[list(trials[name].models)[-1] == stage for name, stage in zip(rows["trial"], rows["stage"], strict=True)],
    )
    lost = pd.DataFrame(
        [
            (scenario, method, trials[trial].models[stage], seed, trials[trial].values[setting])
            for (scenario, method, trial, stage), gone in seeds.diverged.items()
            for seed in (gone if trial in trials else ())
        ],
        columns=["scenario", "method", "model", "seed", "x"],
    )
    long = rows.astype({"last": bool})[rows["metric"].isin([metric.name for metric in entry.metrics])]
    keys = ["scenario", "method", "x", "stage", "metric", "last"]
    means = summaries(long, keys)
    means.insert(2, "setting", setting)
    said = _notes(
        entry,
        notes.evaluated(frame[~frame["published"]]),
        setting,
        len(lost.drop_duplicates(["scenario", "model", "seed"])),
    )
    body = f"{_tables(entry, means, setting)}\n{said}\n"
    return Result(means, body, _picture(entry, means, setting, lost), notes=said)


def varied(entry: Entry) -> str:
    """Return the one setting that differs between trials; `UserError` where there is none, or more than one."""
    several = sorted({key for method in entry.methods for key in _varied_by(method)})
    if len(several) != 1:
        raise UserError(
            f"{entry.artefact}: a sweep needs methods whose grids vary one setting, got {several or 'none'}."
        )
    return several[0]


def _varied_by(method: Method) -> set[str]:
    found: set[str] = set()
    for trials in method.trials.values():
        for key in {key for trial in trials for key in trial.values}:
            if len({trial.values[key] for trial in trials if key in trial.values}) > 1:
                found.add(key)
    return found


def _before(method: Method, scenario: str, part: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers before post-training where all trials begin from one unlearned model: at most one row."""
    shared = len({trial.unlearned for trial in method.trials[scenario]}) == 1
    return part[~part["last"]].head(1) if shared else part.iloc[:0]


def _tables(entry: Entry, means: pd.DataFrame, setting: str) -> str:
    text = []
    for scenario in entry.scenarios:
        for metric in entry.metrics:
            here = means[(means["scenario"] == scenario.name) & (means["metric"] == metric.name)]
            rows = []
            for method in entry.methods:
                part = here[here["method"] == method.name]
                before, shown = notes.texts(_before(method, scenario.name, part)), part[part["last"]]
                row = {"Method": method.marked, "before": before[0] if before else "–"}
                row |= {number(x): "–" for x in means["x"].unique()}
                row |= dict(zip(map(number, shown["x"]), notes.texts(shown), strict=True))
                rows.append(row)
            table = pd.DataFrame(rows).fillna("–").to_markdown(index=False, disable_numparse=True)
            text.append(f"## {title(scenario)}: {metric.label}\n\nColumns: {setting_name(setting)}.\n\n{table}\n")
    return "\n".join(text)


def _notes(entry: Entry, asr: dict[str, float], setting: str, diverged: int) -> str:
    said = [
        *notes.no_backdoor(entry, asr),
        *notes.rates(entry, setting),
        "before: after unlearning.",
        *notes.averages(entry),
        *notes.spread(entry, "Error bars"),
        *([f"{diverged} models diverged and are left out."] if diverged else []),
        *notes.marks(entry),
    ]
    return " ".join(said)


def _picture(entry: Entry, means: pd.DataFrame, setting: str, lost: pd.DataFrame) -> Figure:
    room = int(rcParams["figure.figsize"][0] / NARROW)
    across = len(entry.metrics) < len(entry.scenarios) <= room  # scenarios side by side, metrics below each other
    rows, columns = len(entry.scenarios), len(entry.metrics)
    figure, lines = panels(*((columns, rows, 2.0) if across else (rows, columns, 2.3)))
    lines = [list(line) for line in zip(*lines, strict=True)] if across else lines
    styles, used = looks(entry.methods, own=entry.paper), set()
    for line, scenario in zip(lines, entry.scenarios, strict=True):
        values = sorted(
            {trial.values[setting] for m in entry.methods for trial in m.trials[scenario.name]}, key=ascending
        )
        for axis, metric in zip(line, entry.metrics, strict=True):
            here = means[(means["scenario"] == scenario.name) & (means["metric"] == metric.name)]
            at, begun = _places(axis, values, even=across), False
            if not across:
                head(axis, f"{title(scenario)}: {metric.label}")
            elif metric is entry.metrics[0]:
                head(axis, title(scenario))
            for k, method in enumerate(entry.methods):
                look, part = styles[method.name], here[here["method"] == method.name]
                shown = part[part["last"]].assign(at=part["x"].map(at)).sort_values("at")
                before = _before(method, scenario.name, part).assign(at=at[BEFORE])
                draw_means(axis, shown, look)
                if len(before):
                    first = pd.concat([before, shown.head(1)])
                    axis.plot(first["at"], first["mean"], color=look.colour, linestyle=":", linewidth=0.8)
                    draw_means(axis, before, look, markerfacecolor="white", mew=1)
                    begun = True
                gone = lost[(lost["scenario"] == scenario.name) & (lost["method"] == method.name)]
                for x in set(gone["x"]) - set(shown["x"]):
                    draw_diverged(axis, at[x], k, look)
                    used.add(DIVERGED)
            if begun:
                used.add(BEFORE)
                if not across:
                    _mark_break(axis, at)
            named = {x: place for x, place in at.items() if x != BEFORE or begun}
            axis.set_xticks(
                [*named.values()],
                ["before" if x == BEFORE else number(x) for x in named],
                rotation=60 if len(named) > FEW or (across and rows * len(named) > WIDE) else 0,
            )
            axis.set(xlabel=setting_name(setting), ylabel=metric.label)
    for k, metric in enumerate(entry.metrics):
        if metric.unit == "fraction":
            show_shares([line[k] for line in lines])
    signs = [Line2D([], [], label=label, **style) for label, style in SIGNS.items() if label in used]
    legend(figure, [*handles(entry.methods, own=entry.paper), *signs])
    return figure


def _places(axis: Axes, values: list[Any], even: bool) -> dict[Any, float]:
    """Choose the scale (`even`: equal steps); return where each value lies, and where what comes before them."""
    if even or any(isinstance(value, str) for value in values):
        at: dict[Any, float] = {value: k for k, value in enumerate(values)}
        first = -1.0
    elif values[0] > 0:
        axis.set_xscale("log")
        at = {value: value for value in values}
        first = values[0] * (values[0] / values[-1]) ** (1 / max(len(values), 4))
    else:
        at = {value: value for value in values}
        first = values[0] - (values[-1] - values[0]) / max(len(values), 4)
    axis.xaxis.set_minor_locator(NullLocator())
    return {**at, BEFORE: first}


def _mark_break(axis: Axes, at: dict[Any, float]) -> None:
    """Show that the scale of the axis does not reach what stands before its first value."""
    first = next(iter(at.values()))
    between = (at[BEFORE] * first) ** 0.5 if axis.get_xscale() == "log" else (at[BEFORE] + first) / 2
    gap = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axis.text(between, 0, BREAK, transform=axis.get_xaxis_transform(), ha="center", va="center", bbox=gap)
