"""Examples of the backdoor: images of a forgotten client without and with the trigger (FedOSD Figure 7)."""

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fu.artefacts import notes
from fu.artefacts.drawing import colour
from fu.artefacts.entry import Entry
from fu.artefacts.escaping import paragraph
from fu.artefacts.result import Result
from fu.artefacts.wrapping import fit

INPUTS = ("examples",)
COLUMNS = ["scenario", "dataset", "client", "sample", "label", "label_with_trigger", "changed_pixels"]
SIZE, LABELS = 0.85, 1.9  # inches: an image at most, and what stands left of them
ROWS = {"clean": ("label", "without trigger"), "marked": ("label_with_trigger", "with trigger")}


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show samples of each scenario's first forgotten client, as the models see them."""
    used = {scenario.name: scenario.dataset for scenario in entry.scenarios}
    numbers = frame.assign(dataset=frame["scenario"].map(used))[COLUMNS]
    said = " ".join(notes.marks(entry))
    body = f"{numbers.to_markdown(index=False)}\n" + (f"\n{paragraph(said)}\n" if said else "")
    return Result(numbers, body, _picture(frame, entry), notes=said)


def _picture(frame: pd.DataFrame, entry: Entry) -> Figure:
    most = int(frame.groupby("scenario").size().max())
    lines = [(scenario, image) for scenario in entry.scenarios for image in ROWS]
    wide = rcParams["figure.figsize"][0]
    size = min(SIZE, (wide - LABELS) / most)
    figure = Figure(figsize=(size * most + LABELS, (size + 0.2) * len(lines)), layout="compressed")
    axes = figure.subplots(len(lines), most, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    for line, (scenario, image) in zip(axes, lines, strict=True):
        label, said = ROWS[image]
        line[0].set_ylabel(
            fit(f"{entry.heading_of(scenario.label)}\n{said}", 72 * LABELS, rcParams["axes.labelsize"]),
            rotation=0,
            ha="right",
            va="center",
        )
        for axis, row in zip(line, frame[frame["scenario"] == scenario.name].to_dict("records"), strict=False):
            pixels = row[image]
            axis.imshow(pixels if pixels.shape[2] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
            for y, x in np.argwhere(row["changed"]) if image == "marked" else ():
                axis.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, color=colour(3), linewidth=0.7))
            axis.spines[:].set(visible=True, color="0.6", linewidth=0.5)
            axis.set_title(f"label {row[label]}" if size > SIZE / 2 else row[label], pad=2, weight="normal")
    return figure
