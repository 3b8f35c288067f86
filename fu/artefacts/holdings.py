"""Classes held by each client, with the number of training samples of each (Shao et al. 2024, Figure 6)."""

import pandas as pd
import seaborn as sns
from matplotlib import rcParams
from matplotlib.figure import Figure

from fu.artefacts import notes
from fu.artefacts.drawing import head, panels
from fu.artefacts.entry import Entry
from fu.artefacts.panels import grid
from fu.artefacts.result import Result, of_figure

INPUTS = ("holdings",)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Show a matrix of clients (counted from 1) and classes for each scenario, on the first seed."""
    held = {scenario.label: _held(frame, scenario.name) for scenario in entry.scenarios}
    tables = {label: one.assign(all=one.sum(axis=1)).rename_axis("Client").reset_index() for label, one in held.items()}
    shown = [(label, grid(table.to_dict("records"))) for label, table in tables.items()]
    return of_figure(frame, shown, notes.joined(entry, "Clients count from 1."), _picture(frame, entry))


def _held(frame: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """Return training samples by client, counted from 1, and class."""
    here = frame[frame["scenario"] == scenario]
    held = here.pivot_table("train", "client", "label", aggfunc="sum", fill_value=0).astype(int)
    return held.set_axis(held.index + 1).rename_axis(None, axis=1)


def _picture(frame: pd.DataFrame, entry: Entry) -> Figure:
    figure, axes = panels(len(entry.scenarios), 1, 2.4, beside=2)
    for [axis], scenario in zip(axes, entry.scenarios, strict=True):
        held = _held(frame, scenario.name)
        share = held / held.sum().max()
        size = rcParams["xtick.labelsize"]
        words = held.astype(str).where(held > 0, "")
        sns.heatmap(
            share, ax=axis, annot=words, fmt="", cmap="Blues", cbar=False, linewidths=0.5, annot_kws={"fontsize": size}
        )
        axis.set(xlabel="class", ylabel="client")
        axis.tick_params(length=0)
        head(axis, entry.heading_of(scenario.label))
    return figure
