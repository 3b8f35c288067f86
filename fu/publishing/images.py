"""Examples of the backdoor: a forgotten client's images without and with the trigger (FedOSD Figure 7)."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from fu.data import clients
from fu.data.dataset import about
from fu.publishing.result import Result

READS = "data"
EXAMPLES = 4


def make(spec: dict[str, Any], root: Path) -> Result:
    """Show the first samples of each scenario's first forgotten client, as the models see them."""
    rows, pictures = [], []
    for scenario, shown in spec["scenarios"].items():
        run = root / spec["paper"] / scenario / f"seed{spec['seeds'][0]}"
        data = clients.load(
            root / "data" / f"{shown['dataset']}.npz",
            run / "partition.npz",
            shown["dataset"],
            torch.device("cpu"),
            "all",
        )
        client = data.partition.forgotten[0]
        index = data.partition.train[client][:EXAMPLES]
        clean, labels = data.x[index], data.y[index]
        marked, flipped = data.trigger(clean, labels)
        for k in range(len(index)):
            rows.append(
                {
                    "scenario": scenario,
                    "client": client,
                    "sample": int(index[k]),
                    "label": int(labels[k]),
                    "label_with_trigger": int(flipped[k]),
                    "changed_pixels": int((clean[k] != marked[k]).any(-1).sum()),
                }
            )
            pictures.append((shown, labels[k], clean[k], flipped[k], marked[k]))
    frame = pd.DataFrame(rows)
    table = frame.to_markdown(index=False)
    return Result(frame, f"{table}\n", _picture(len(spec["scenarios"]), pictures))


def _picture(scenarios: int, pictures: list[tuple[Any, ...]]) -> Figure:
    figure = Figure(figsize=(1.7 * EXAMPLES, 3.6 * scenarios), layout="constrained")
    axes = figure.subplots(2 * scenarios, EXAMPLES, squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for place, (shown, label, clean, flipped, marked) in enumerate(pictures):
        block, column = divmod(place, EXAMPLES)
        dataset = about(shown["dataset"])
        for line, (image, text) in enumerate(((clean, f"label {label}"), (marked, f"with trigger: {flipped}"))):
            axis = axes[2 * block + line, column]
            pixels = (image * torch.tensor(dataset.std) + torch.tensor(dataset.mean)).clamp(0, 1)
            axis.imshow(pixels if dataset.shape[2] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
            axis.set_title(text, fontsize=8)
    return figure
