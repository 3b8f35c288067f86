"""Samples at risk: the forgotten samples that the original models expose most, beside those they expose least.

Each as it was trained on, a backdoor included, with its label and its mean margin under original, retrained and one
method's models: where an unlearned model's lies near the original's, the sample is still exposed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fu.artefacts import drawing, notes
from fu.artefacts.entry import Entry, Method
from fu.artefacts.escaping import paragraph
from fu.artefacts.panels import markdown, plain
from fu.artefacts.result import Result
from fu.artefacts.wrapping import fit

INPUTS = ("exposed",)
NEEDS = ("against",)
COLUMNS = ["scenario", "method", "exposed", "place", "of", "sample", "label", "original", "retrained", "unlearned"]
LABELS = 1.0  # inches left of the pictures
GROUPS = {"most": "Most exposed", "least": "Least exposed"}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show the samples, and the margins below them on one axis."""
    found = frame.reindex(columns=COLUMNS)
    method = next(one for one in entry.methods if one.name not in entry.against)
    names = {"original": "Original", "retrained": "Retrained", "unlearned": method.marked}
    of = {one.name: found[found["scenario"] == one.name] for one in entry.scenarios}
    shown = [(one.label, _table(of[one.name], names)) for one in entry.scenarios]
    words = [in_words(of[one.name], method) for one in entry.scenarios]
    said = " ".join(
        [
            "Margin: log p - log(1 - p) of the sample's own label, mean over repeats. Exposed: by how far original and "
            "retrained models' margins are apart, in units of their spread.",
            *notes.marks(entry),
        ]
    )
    body = f"{markdown(shown, words)}\n{paragraph(said)}\n"
    return Result(found, body, _picture(frame, entry, method, names), shown, said, words, beside=True)


def in_words(here: pd.DataFrame, method: Method) -> list[str]:
    """Say to how many of the most exposed the method's models are nearer to original than to retrained ones."""
    if here.empty:
        return ["Too few models are left that did not diverge."]
    most = here[here["exposed"] == "most"]
    away = [(most["unlearned"] - most[kind]).abs() for kind in ("original", "retrained")]
    count = int((away[0] < away[1]).sum())
    return [
        f"On {count} of the {len(most)} most exposed of {most['of'].iloc[0]} samples the margin of {method.label} is "
        "nearer to that of original models than to that of retrained ones."
    ]


def _table(here: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    rows = [
        {
            **{"Exposed": GROUPS[row["exposed"]], "Place": str(row["place"])},
            **{"Sample": str(row["sample"]), "Label": str(row["label"])},
            **{name: f"{row[kind]:.2f}" for kind, name in names.items()},
        }
        for row in here.to_dict("records")
    ]
    return plain(rows or [{"Exposed": "–"}])


def _picture(frame: pd.DataFrame, entry: Entry, method: Method, names: Mapping[str, str]) -> Figure:
    wide = rcParams["figure.figsize"][0]
    lines = [(scenario, group) for scenario in entry.scenarios for group in GROUPS]
    most = max((len(part) for _, part in frame.groupby(["scenario", "exposed"])), default=1) if len(frame) else 1
    size = (wide - LABELS) / most
    figure = Figure(figsize=(wide, (size + 0.42) * len(lines)), layout="constrained")
    axes = figure.subplots(2 * len(lines), most, squeeze=False, height_ratios=[size, 0.22] * len(lines))
    black: dict[str, Any] = {"color": "0.25", "markersize": 4, "linestyle": "none"}
    marks: dict[str, dict[str, Any]] = {
        "original": {"marker": "s", **black},
        "retrained": {"marker": "o", "markerfacecolor": "white", **black},
        "unlearned": drawing.looks([method])[method.name].point(markersize=4),
    }
    limits = _limits(frame)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for k, (scenario, group) in enumerate(lines):
        _head(axes[2 * k][0], entry.heading_of(scenario.label), group)
        here = frame[(frame["scenario"] == scenario.name) & (frame["exposed"] == group)] if len(frame) else frame
        for column, row in enumerate(here.to_dict("records")):
            image, strip = axes[2 * k][column], axes[2 * k + 1][column]
            pixels = row["pixels"]
            image.imshow(pixels if pixels.shape[2] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
            image.set_title(f"label {row['label']}", pad=2, weight="normal", fontsize=rcParams["xtick.labelsize"])
            strip.axhline(0, color="0.8", linewidth=0.8)
            for kind, style in marks.items():
                strip.plot(row[kind], 0, clip_on=False, **style)
            strip.set(xlim=limits, ylim=(-1, 1))
            if 2 * k + 2 == len(axes):
                strip.set_xticks(limits, [f"{limit:g}" for limit in limits])
                strip.spines["bottom"].set_visible(True)
    for row in axes[1::2]:
        row[0].set_ylabel("margin", rotation=0, ha="right", va="center", fontsize=rcParams["xtick.labelsize"])
    drawing.legend(figure, [Line2D([], [], label=names[kind], **style) for kind, style in marks.items()])
    return figure


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the whole numbers between which all margins lie."""
    if frame.empty:
        return -1, 1
    values = frame[["original", "retrained", "unlearned"]].to_numpy(float)
    return float(np.floor(values.min())), float(np.ceil(values.max()))


def _head(axis: Axes, scenario: str, group: str) -> None:
    shown = fit(f"{GROUPS[group]}\n{scenario}", 72 * LABELS, rcParams["axes.labelsize"])
    axis.set_ylabel(shown, rotation=0, ha="right", va="center")
