"""Examples of the backdoor: a forgotten client's images without and with the trigger (FedOSD Figure 7)."""

import pandas as pd
from matplotlib.figure import Figure

from fu.artefacts.entry import Entry
from fu.artefacts.result import Result

READS = "data"
COLUMNS = ["scenario", "client", "sample", "label", "label_with_trigger", "changed_pixels"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show samples of each scenario's first forgotten client, as the models see them."""
    numbers = frame[COLUMNS]
    return Result(numbers, f"{numbers.to_markdown(index=False)}\n", _picture(frame))


def _picture(frame: pd.DataFrame) -> Figure:
    scenarios = list(frame.groupby("scenario", sort=False))
    most = max(len(rows) for _, rows in scenarios)
    figure = Figure(figsize=(1.7 * most, 3.6 * len(scenarios)), layout="constrained")
    axes = figure.subplots(2 * len(scenarios), most, squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for block, (_, rows) in enumerate(scenarios):
        for column, row in enumerate(rows.to_dict("records")):
            pair = (
                (row["clean"], f"label {row['label']}"),
                (row["marked"], f"with trigger: {row['label_with_trigger']}"),
            )
            for line, (image, text) in enumerate(pair):
                axis = axes[2 * block + line, column]
                axis.imshow(image if image.shape[2] == 3 else image[..., 0], cmap="gray", vmin=0, vmax=1)
                axis.set_title(text, fontsize=8)
    return figure
