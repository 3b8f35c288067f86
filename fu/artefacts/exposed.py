"""Samples at risk: the forgotten samples that the original models expose most, beside those they expose least.

Each as it was trained on, a backdoor included, with its label and its mean margin under original, retrained and one
method's models: where an unlearned model's lies near the original's, the sample is still exposed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure

from fu.artefacts import drawing, notes
from fu.artefacts.entry import Entry, Method
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_table

INPUTS = ("exposed",)
NEEDS = ("against",)
COLUMNS = ["scenario", "method", "exposed", "place", "of", "sample", "label", "original", "retrained", "unlearned"]
LABELS = 1.0  # inches left of the pictures
BLACK: dict[str, Any] = {"color": "0.25", "markersize": 4, "linestyle": "none"}
REFERENCES = {"original": {"marker": "s", **BLACK}, "retrained": {"marker": "o", "markerfacecolor": "white", **BLACK}}
TOO_FEW = "Too few models are left that did not diverge."
MARGIN = (
    "Margin: log p - log(1 - p) of the sample's own label, mean over repeats. Exposed: by how far original and "
    "retrained models' margins are apart, in units of their spread."
)
GROUPS = {"most": "Most exposed", "least": "Least exposed"}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show the samples, and the margins below them on one axis."""
    found = frame.reindex(columns=COLUMNS)
    method = next(one for one in entry.methods if one.name not in entry.against)
    names = {"original": "Original", "retrained": "Retrained", "unlearned": method.marked}
    shown, words = [], []
    for scenario in entry.scenarios:
        rows = found[found["scenario"] == scenario.name].to_dict("records")
        table = grid(
            {
                **{"Exposed": GROUPS[row["exposed"]], "Place": f"{row['place']} of {row['of']}"},
                **{"Sample": row["sample"], "Label": row["label"]},
                **{name: f"{row[kind]:.2f}" for kind, name in names.items()},
            }
            for row in rows
        )
        shown.append((scenario.label, table))
        words.append([] if rows else [TOO_FEW])
    return of_table(found, shown, notes.joined(entry, MARGIN), words, figure=_picture(frame, entry, method, names))


def _picture(frame: pd.DataFrame, entry: Entry, method: Method, names: Mapping[str, str]) -> Figure:
    wide = rcParams["figure.figsize"][0]
    lines = [(scenario, group) for scenario in entry.scenarios for group in GROUPS]
    most = max((len(part) for _, part in frame.groupby(["scenario", "exposed"])), default=1) if len(frame) else 1
    size = (wide - LABELS) / most
    figure = Figure(figsize=(wide, (size + 0.42) * len(lines)), layout="constrained")
    axes = figure.subplots(2 * len(lines), most, squeeze=False, height_ratios=[size, 0.22] * len(lines))
    marks = {**REFERENCES, "unlearned": drawing.looks([method])[method.name].point(markersize=4)}
    margins = frame[["original", "retrained", "unlearned"]].to_numpy(float) if len(frame) else np.array([-1, 1])
    limits = float(np.floor(margins.min())), float(np.ceil(margins.max()))
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for images, strips, (scenario, group) in zip(axes[::2], axes[1::2], lines, strict=True):
        drawing.head_beside(images[0], f"{GROUPS[group]}\n{entry.heading_of(scenario.label)}", LABELS)
        strips[0].set_ylabel("margin", rotation=0, ha="right", va="center", fontsize=rcParams["xtick.labelsize"])
        here = frame[(frame["scenario"] == scenario.name) & (frame["exposed"] == group)] if len(frame) else frame
        for image, strip, row in zip(images, strips, here.to_dict("records"), strict=False):
            drawing.draw_image(image, row["pixels"], f"label {row['label']}")
            strip.axhline(0, color="0.8", linewidth=0.8)
            for kind, style in marks.items():
                strip.plot(row[kind], 0, clip_on=False, **style)
            strip.set(xlim=limits, ylim=(-1, 1))
            if strip in axes[-1]:
                strip.set_xticks(limits, [f"{limit:g}" for limit in limits])
                strip.spines["bottom"].set_visible(True)
    drawing.legend(figure, drawing.signs(names.values(), {names[kind]: style for kind, style in marks.items()}))
    return figure
