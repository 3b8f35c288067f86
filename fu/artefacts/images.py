"""Examples of the backdoor: images of a forgotten client without and with the trigger (FedOSD Figure 7)."""

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fu.artefacts import drawing, notes
from fu.artefacts.entry import Entry
from fu.artefacts.escaping import paragraph
from fu.artefacts.result import Result

INPUTS = ("examples",)
COLUMNS = ["scenario", "dataset", "client", "sample", "label", "label_with_trigger", "changed_pixels"]
SIZE, LABELS = 0.85, 1.9  # inches: an image at most, and what stands left of them
ROWS = {"clean": ("label", "without trigger"), "marked": ("label_with_trigger", "with trigger")}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show samples of each scenario's first forgotten client, as the models see them."""
    used = {scenario.name: scenario.dataset for scenario in entry.scenarios}
    numbers = frame.assign(dataset=frame["scenario"].map(used))[COLUMNS]
    text = notes.joined(entry)
    return Result(
        numbers, f"{numbers.to_markdown(index=False)}\n\n{paragraph(text)}\n", _picture(frame, entry), notes=text
    )


def _picture(frame: pd.DataFrame, entry: Entry) -> Figure:
    most = int(frame.groupby("scenario").size().max())
    lines = [(scenario, image) for scenario in entry.scenarios for image in ROWS]
    size = min(SIZE, (rcParams["figure.figsize"][0] - LABELS) / most)
    figure = Figure(figsize=(size * most + LABELS, (size + 0.2) * len(lines)), layout="compressed")
    axes = figure.subplots(len(lines), most, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for line, (scenario, image) in zip(axes, lines, strict=True):
        label, which = ROWS[image]
        drawing.head_beside(line[0], f"{entry.heading_of(scenario.label)}\n{which}", LABELS)
        for axis, row in zip(line, frame[frame["scenario"] == scenario.name].to_dict("records"), strict=False):
            drawing.draw_image(axis, row[image], f"label {row[label]}" if size > SIZE / 2 else str(row[label]))
            for y, x in np.argwhere(row["changed"]) if image == "marked" else ():
                edge = {"fill": False, "color": drawing.colour(3), "linewidth": 0.7}
                axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **edge))
            axis.spines[:].set(visible=True, color="0.6", linewidth=0.5)
    return figure
