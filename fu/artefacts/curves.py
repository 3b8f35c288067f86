"""Metrics over rounds: through unlearning and post-training (as FedOSD Figures 5, 8, 9), or of trainings.

They may begin with the training that a method starts from, and say how soon it is where it was before the request (as
FATS Figures 1, 5 and 8).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fu.artefacts import drawing, notes
from fu.artefacts.entry import ORIGINAL, Entry, Metric, Scenario
from fu.artefacts.groups import choices, group, grouped, of_spots, regrouped
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_figure
from fu.artefacts.statistics import Levels, Starts, begins, broken, by_round, divergence, once, original, paths
from fu.evaluation.trace import TIMES

INPUTS = ("traces", "costs")
ELSEWHERE = "start other than ω⁰"
LEVEL = "ω⁰"
REQUEST = "request"
TURN = "post-training starts"
BACK = "back after"
TIME = {"time_steps": "time steps", "replayed": "replayed"}
SIGNS: dict[str, dict[str, Any]] = {
    ELSEWHERE: {"color": "0.35", "marker": "o", "markersize": 4.5, "markerfacecolor": "white", "linestyle": "none"},
    LEVEL: {"color": "0.35", "linestyle": "--", "linewidth": 0.8},
    REQUEST: {"color": "0.2", "linestyle": ":", "linewidth": 1.4},
    TURN: {"color": "0.6", "linestyle": ":", "linewidth": 1},
    drawing.DIVERGED: {"color": "0.35", **drawing.CROSS},
}
NEAR = 0.01  # a metric is back that is at most so much worse than before the request
NEVER = "never"
FROM = "Before the request a curve is the training that its method starts from."
BACK_MEANS = (
    f"{BACK.capitalize()}: rounds until the mean stays at most {NEAR} worse than before the request; 0: it never is "
    f"worse. {TIME['time_steps'].capitalize()}: computed since the request, in each round those of the slowest client; "
    f"{TIME['replayed']}: only to rebuild an earlier model. Consecutive requests have one number each."
)
FAR = 10  # values without bounds that differ by more are drawn on a logarithmic axis


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return metric by round, mean and standard deviation over seeds, with a panel per scenario and metric.

    Where the entry names panels or lines, these stand in place of scenarios and methods.
    """
    groups = group(entry)
    chosen = choices(entry, groups)
    if own := grouped(entry):
        frame = of_spots(frame, groups).assign(scenario=lambda rows: rows["panel"], method=lambda rows: rows["line"])
        entry = regrouped(entry, groups)
    rows, lost = once(frame), broken(entry, frame)
    names = [metric.name for metric in entry.metrics] + [*(TIMES if entry.from_training else ())]
    long = rows[rows["metric"].isin(names)]
    found, starts = by_round(long, lost), begins(rows)
    levels = original(rows, starts) if _of_one_training(entry) else {}
    picture = _picture(entry, found, paths(long, lost), starts, levels)
    tables = [(one.label, _summary(entry, one, found, lost, starts)) for one in entry.scenarios]
    words = [*([] for _ in tables[1:]), [f"{_moments(entry)}.", BACK_MEANS if _requested(entry) else ""]]
    shown = found.rename(columns={"scenario": "panel", "method": "line"}) if own else found
    return of_figure(shown, tables, _notes(entry, found, lost, levels, chosen), picture, words)


def _summary(entry: Entry, scenario: Scenario, found: pd.DataFrame, lost: pd.DataFrame, starts: Starts) -> pd.DataFrame:
    """Return the values at the start, after unlearning and at the end."""
    rows = []
    for method in entry.methods:
        here = found[(found["scenario"] == scenario.name) & (found["method"] == method.name)]
        note = divergence(entry, lost, scenario.name, method.name)
        away = starts.get((scenario.name, method.name))
        row = {"Method": method.marked}
        if starts:
            row["starts"] = "–" if away is None else f"{away:.3g} from ω⁰" if away else "at ω⁰"
        for metric in entry.metrics:
            values = here[here["metric"] == metric.name].sort_values("round")
            if values.empty:
                row[metric.label] = note or "–"
            elif note.startswith("diverged"):
                row[metric.label] = f"{values['mean'].iloc[0]:.3f} → {note}"
            else:
                ends = " → ".join(f"{value:.3f}" for value in _ends(values, method.trains))
                row[metric.label] = ends + (f" ({note})" if note else "")
        ran = here.iloc[:0] if note.startswith("diverged") else here
        rows.append(row | (_since(entry, scenario, ran) if _requested(entry) else {}))
    return grid(rows)


def _requested(entry: Entry) -> bool:
    """Whether a curve shows training and what comes after the request."""
    return entry.from_training and not all(method.trains for method in entry.methods)


def _of_one_training(entry: Entry) -> bool:
    """Whether in each scenario all that unlearns starts from the same model; else there is not one that is ω⁰."""
    unlearns = [method for method in entry.methods if not method.trains]
    begun = ({trial.trained for m in unlearns for trial in m.trials[s.name]} for s in entry.scenarios)
    return not entry.from_training or all(len(trainings) <= 1 for trainings in begun)


def _since(entry: Entry, scenario: Scenario, here: pd.DataFrame) -> dict[str, str]:
    """Return after how many rounds a method is back where it was before each request, and what that took."""
    cells = {}
    better = [metric for metric in entry.metrics if metric.better != "neither"]
    for metric in better:
        name = BACK if len(better) == 1 else f"{metric.label} {BACK}"
        own = here[here["metric"] == metric.name].sort_values("round", kind="stable")
        cells[name] = ", ".join(map(str, back(own, scenario.request_rounds, metric))) or "–"
    for name in TIMES:
        spent = here[(here["metric"] == name) & (here["stage"] == "unlearned")].sort_values("round", kind="stable")
        ends = [spent[spent["round"] <= last]["mean"] for last in [*scenario.request_rounds[1:], spent["round"].max()]]
        counts = [0.0, *(found.iloc[-1] for found in ends if len(found))]
        cells[TIME[name]] = ", ".join(drawing.number(round(b - a, 1)) for a, b in pairwise(counts)) or "–"
    return cells


def back(values: pd.DataFrame, asked: Sequence[int], metric: Metric) -> list[int | str]:
    """Return, for each request, after how many rounds a curve stays at most `NEAR` worse than before it.

    0: it never was worse; `NEVER`: it still is when the next request comes, or at the end.
    """
    trained, after = values[values["stage"] == ORIGINAL], values[values["stage"] != ORIGINAL]
    if trained.empty or after.empty:
        return []
    sign = -1 if metric.better == "lower" else 1
    before, found = trained["mean"].iloc[-1], list[int | str]()
    for k, (first, last) in enumerate(zip(asked, [*asked[1:], after["round"].max()], strict=True)):
        own = after[(after["round"] > first - (k == 0)) & (after["round"] <= last)]
        if own.empty:
            break
        worse = (sign * (own["mean"] - before)).round(9) < -NEAR
        later = own["round"][own["round"] > own["round"][worse].max()]
        found.append(0 if not worse.any() else int(later.iloc[0]) - first if len(later) else NEVER)
        before = own["mean"].iloc[-1]
    return found


def _ends(values: pd.DataFrame, trains: bool) -> list[float]:
    """Return the values at the moments that `_moments` names."""
    trained, unlearned, after = (values[values["stage"] == s]["mean"] for s in (ORIGINAL, "unlearned", "recovered"))
    if trains:
        return [*trained.iloc[[0, -1]]]
    return [
        *trained.iloc[[0, -1] if len(trained) else []],
        *(unlearned.iloc[[0, -1]] if len(unlearned) else ()),
        *after.iloc[-1:],
    ]


def _moments(entry: Entry) -> str:
    trains = {method.trains for method in entry.methods}
    first = "Before training → before the request → at" if entry.from_training else "At"
    shown = (trial for method in entry.methods for name in method.trials for trial in entry.trials(name, method))
    recovers = any(trial.recovered for trial in shown)
    last = " → at the end" if recovers or not entry.from_training else ""
    said = [f"{first} the start of the method → after unlearning{last}"] if False in trains else []
    said += ["Before the first round of training → after the last"] if True in trains else []
    return "; of a training: ".join([said[0], *(text[:1].lower() + text[1:] for text in said[1:])])


def _notes(entry: Entry, found: pd.DataFrame, lost: pd.DataFrame, levels: Levels, chosen: list[str]) -> str:
    wholes = [(one, _of(found, scenario.name, one.name)) for scenario in entry.scenarios for one in entry.metrics]
    masked = any(logarithmic(metric, whole) and (whole["mean"] <= 0).any() for metric, whole in wholes)
    return notes.joined(
        entry,
        notes.no_backdoor(entry, {scenario: level for (scenario, metric), level in levels.items() if metric == "asr"}),
        notes.rates(entry),
        *chosen,
        "A logarithmic axis has no 0, so a curve that starts there is drawn from its next round on." if masked else "",
        FROM if _requested(entry) and not _of_one_training(entry) else "",
        notes.deviations(entry, "Bands"),
        notes.seeds(entry, len(lost)),
        entry.note,
        "The paper prints no numbers for its curves." if entry.in_paper else "",
    )


def _of(found: pd.DataFrame, scenario: str, metric: str) -> pd.DataFrame:
    here = found[(found["scenario"] == scenario) & (found["metric"] == metric)]
    return here.sort_values("round", kind="stable")  # the round of a request ends the training, then starts a method


def turns(found: pd.DataFrame, scenario: str) -> dict[int, list[str]]:
    """Return the rounds after which post-training starts, that of most methods first, and whose it is."""
    here = found[found["scenario"] == scenario]
    recovers = here["method"].isin(here[here["stage"] == "recovered"]["method"])
    each = here[recovers & (here["stage"] == "unlearned")].groupby("method", sort=False)["round"].max()
    found_turns: dict[int, list[str]] = {}
    for method, turn in each.items():
        found_turns.setdefault(int(turn), []).append(str(method))
    return dict(sorted(found_turns.items(), key=lambda item: -len(item[1])))


def _picture(entry: Entry, found: pd.DataFrame, cut: pd.DataFrame, starts: Starts, levels: Levels) -> Figure:
    shaded = grouped(entry)
    figure, lines = drawing.panels(len(entry.scenarios), len(entry.metrics), 2.4)
    styles, used = drawing.looks(entry.methods, shaded, entry.paper), set[str]()
    for line, scenario in zip(lines, entry.scenarios, strict=True):
        drawing.head(line[0], entry.heading_of(scenario.label), len(line))
        for axis, metric in zip(line, entry.metrics, strict=True):
            whole, broke = (_of(rows, scenario.name, metric.name) for rows in (found, cut))
            for name, look in styles.items():
                used |= _draw(axis, whole[whole["method"] == name], look, starts.get((scenario.name, name), 0) > 0)
                used |= _break_off(axis, broke[broke["method"] == name], look)
            for asked in scenario.request_rounds if _requested(entry) else ():
                axis.axvline(asked, **SIGNS[REQUEST])
                used.add(REQUEST)
            for k, (turn, own) in enumerate(turns(found, scenario.name).items()):
                axis.axvline(turn, **SIGNS[TURN] | ({"color": styles[own[0]].colour} if k and len(own) == 1 else {}))
                used.add(TURN)
            if (scenario.name, metric.name) in levels and metric.name != "distance":
                axis.axhline(levels[scenario.name, metric.name], **SIGNS[LEVEL], zorder=0.5)
                used.add(LEVEL)
            axis.set(xlabel="round", ylabel=metric.label)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            _scale(axis, metric, whole)
    for k in (k for k, metric in enumerate(entry.metrics) if metric.unit == "fraction"):
        drawing.show_shares([line[k] for line in lines])
    drawing.legend(figure, [*drawing.handles(entry.methods, shaded, entry.paper), *drawing.signs(used, SIGNS)])
    return figure


def _draw(axis: Axes, part: pd.DataFrame, look: drawing.Look, elsewhere: bool) -> set[str]:
    """Draw one method's curve with the deviation over seeds; a first point other than ω⁰ is hollow."""
    if part.empty:
        return set()
    first = int((part["stage"] == ORIGINAL).sum())
    axis.plot(part["round"], part["mean"], **look.line(len(part), first=int(elsewhere and not first)))
    drawing.draw_band(axis, "round", part, look.colour)
    if elsewhere:
        start = part.iloc[first : first + 1]
        axis.plot(start["round"], start["mean"], **SIGNS[ELSEWHERE] | {"color": look.colour}, zorder=3)
    return {ELSEWHERE} if elsewhere else set()


def _break_off(axis: Axes, part: pd.DataFrame, look: drawing.Look) -> set[str]:
    """Draw the runs that diverged as far as they got."""
    for _, run in part.groupby("seed"):
        axis.plot(run["round"], run["value"], color=look.colour, linewidth=0.7, zorder=3)
        end = run.tail(1)
        axis.plot(end["round"], end["value"], **drawing.CROSS | {"color": look.colour}, zorder=4)
    return {drawing.DIVERGED} if len(part) else set()


def logarithmic(metric: Metric, found: pd.DataFrame) -> bool:
    """Whether values without bounds end so far apart that some would lie at the bottom of a linear axis."""
    ends = found.sort_values("round").groupby("method")["mean"].last()
    ends = ends[ends > 0]
    return metric.unit != "fraction" and len(ends) > 0 and ends.max() > FAR * ends.min()


def _scale(axis: Axes, metric: Metric, found: pd.DataFrame) -> None:
    """Show also the small ones of values without bounds."""
    if logarithmic(metric, found):
        axis.set_yscale("log", nonpositive="mask")
        axis.set_ylabel(f"{metric.label} (log)")
        axis.yaxis.set_major_locator(LogLocator(subs=(1,)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: drawing.number(value)))
        axis.yaxis.set_minor_formatter(NullFormatter())
