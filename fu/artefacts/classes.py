"""Effect of the backdoor: classes predicted for the forgotten clients' triggered images, over rounds."""

from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fu.artefacts import notes
from fu.artefacts.drawing import COLOURS, FEW, colour, head, legend, panels
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_figure
from fu.artefacts.statistics import begins, broken, by_round, divergence, once, original, paths
from fu.errors import UserError

INPUTS = ("traces", "costs")
TRACED = ("predicted_classes",)  # what the scenarios must have measured per round
SHARE = "predicted_"  # metric of a class: the share of images that it gets
NAMED = 3  # classes in a cell of the summary
OTHERS = "0.85"
LINES: list[Any] = ["-", "--", ":", "-."]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return each class's share and the metrics named by round, means over seeds, a panel per scenario and method."""
    rows, lost = once(frame), broken(entry, frame)
    shares = rows["metric"].str.fullmatch(rf"{SHARE}\d+")
    if not shares.any():
        raise UserError(f"{entry.artefact}: kind classes needs traces with {SHARE}0, {SHARE}1, ...; there are none.")
    long = rows[shares | rows["metric"].isin([metric.name for metric in entry.metrics])]
    found = by_round(long, lost)
    tables = [(one.label, _summary(entry, one, found, rows[shares], lost)) for one in entry.scenarios]
    words = [*([] for _ in tables[1:]), ["Class: share of the triggered images."]]
    asr = {scenario: level for (scenario, metric), level in original(rows, begins(rows)).items() if metric == "asr"}
    text = notes.joined(entry, notes.no_backdoor(entry, asr), notes.rates(entry), notes.seeds(entry, len(lost)))
    return of_figure(found, tables, text, _picture(entry, found, lost), words)


def by_class(rows: pd.DataFrame, index: str | list[str]) -> pd.DataFrame:
    """Return shares with a column for each class, in order."""
    part = rows[rows["metric"].str.startswith(SHARE)]
    value = "mean" if "mean" in part else "value"
    classes = part["metric"].str.removeprefix(SHARE).astype(int)
    return part.assign(image=classes).pivot(index=index, columns="image", values=value).sort_index(axis=1).fillna(0.0)


def _part(rows: pd.DataFrame, scenario: str, method: str) -> pd.DataFrame:
    return rows[(rows["scenario"] == scenario) & (rows["method"] == method)]


def _summary(
    entry: Entry, scenario: Scenario, found: pd.DataFrame, shares: pd.DataFrame, lost: pd.DataFrame
) -> pd.DataFrame:
    rows = []
    for method in entry.methods:
        here = _part(found, scenario.name, method.name)
        note = divergence(entry, lost, scenario.name, method.name)
        unlearning, after = (here[here["stage"] == stage]["round"] for stage in ("unlearned", "recovered"))
        whole, ends = not note.startswith("diverged"), dict[str, int]()
        if len(unlearning):
            ends["at the start"] = unlearning.min()
        if whole and len(unlearning):
            ends["after unlearning"] = unlearning.max()
        if whole and len(after):
            ends["at the end"] = after.max()
        row = {"Method": method.marked + (f" ({note})" if note else "")}
        row |= {when: _largest(here[here["round"] == round], "round", NAMED) for when, round in ends.items()}
        if "after unlearning" in ends and len(entry.seeds) > 1:
            own = _part(shares, scenario.name, method.name)
            kept = own.drop(paths(own, lost).index)
            row["after unlearning, largest by seed"] = _largest(
                kept[kept["round"] == ends["after unlearning"]], "seed", 1
            )
        rows.append(row)
    return grid(rows)


def _largest(rows: pd.DataFrame, index: str, count: int) -> str:
    """Return so many classes with the largest shares, for each round or seed."""
    each = [
        shares.sort_values(ascending=False, kind="stable").head(count) for _, shares in by_class(rows, index).iterrows()
    ]
    return ", ".join(f"{image}: {share:.3f}" for shares in each for image, share in shares.items())


def _picture(entry: Entry, found: pd.DataFrame, lost: pd.DataFrame) -> Figure:
    figure, lines = panels(len(entry.scenarios), len(entry.methods), 2.2)
    peaks = by_class(found, ["scenario", "method", "round"]).max()
    kept = sorted(peaks.sort_values(ascending=False, kind="stable").index[:COLOURS])
    colours = {image: colour(k) for k, image in enumerate(kept)}
    for line, scenario in zip(lines, entry.scenarios, strict=True):
        for axis, method in zip(line, entry.methods, strict=True):
            here = _part(found, scenario.name, method.name)
            head(axis, entry.heading_of(f"{scenario.label}: {method.marked}"))
            axis.set(xlabel="round", ylim=(0, 1))
            if len(here):
                _draw(axis, here, entry, colours)
            else:
                note = divergence(entry, lost, scenario.name, method.name)
                axis.text(0.5, 0.5, note, ha="center", transform=axis.transAxes)
        line[0].set_ylabel("share of triggered images")
    handles: list[Any] = [Patch(color=fill, label=f"class {image}") for image, fill in colours.items()]
    if len(peaks) > len(kept):
        handles.append(Patch(color=OTHERS, label="other classes"))
    handles += [Line2D([], [], **_line(k), label=metric.label) for k, metric in enumerate(_drawn(entry))]
    if (found["stage"] == "recovered").any():
        handles.append(Line2D([], [], color="black", linestyle=":", linewidth=1, label="post-training starts"))
    legend(figure, handles)
    return figure


def _drawn(entry: Entry) -> list[Any]:
    """Return the metrics that are drawn as lines over the areas."""
    return [metric for metric in entry.metrics if not metric.name.startswith(SHARE)]


def _line(k: int) -> dict[str, Any]:
    """Return the look of a metric's line: its markers tell it from the border of two areas."""
    marker = {"marker": "o", "markersize": 4, "markerfacecolor": "white", "markeredgecolor": "black"}
    return {"color": "black", "linestyle": LINES[k % len(LINES)], "linewidth": 1.5, **marker}


def _draw(axis: Axes, here: pd.DataFrame, entry: Entry, colours: dict[int, Any]) -> None:
    shares = by_class(here, "round")
    named = shares.reindex(columns=[*colours], fill_value=0.0)
    stack = np.array([*named.to_numpy().T, shares.sum(axis=1).to_numpy() - named.sum(axis=1).to_numpy()])
    rounds = shares.index.to_numpy()
    axis.stackplot(rounds, *stack, colors=[*colours.values(), OTHERS], linewidth=0)
    for k, metric in enumerate(_drawn(entry)):
        part = here[here["metric"] == metric.name].sort_values("round")
        at, mean = part["round"].to_numpy(), part["mean"].to_numpy()
        axis.plot(at, mean, color="white", linewidth=3.5)
        axis.plot(at, mean, **_line(k), markevery=ceil(len(part) / FEW))
    if (here["stage"] == "recovered").any():
        axis.axvline(here[here["stage"] == "unlearned"]["round"].max(), color="black", linestyle=":", linewidth=1)
    axis.set_xlim(rounds.min(), rounds.max() or 1)
