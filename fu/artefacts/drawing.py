"""What figures share: their size on paper, the look of each method, the words on axes and panels."""

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fu.artefacts.entry import Method, Scenario
from fu.artefacts.wrapping import fit

WIDTH = 7.0  # inches: the text of a page in two columns, so that a point in a figure is a point on paper
PALETTE: list[Any] = [*sns.color_palette("colorblind")]
COLOURS = {  # a method keeps its colour in all figures; others take what is left
    "fedosd": 0,
    "mode": 1,
    "ewcsga": 2,
    "fupga": 3,
    "fedrecovery": 4,
    "federaser": 5,
    "retraining": 7,
    "sfu": 9,
}
TRAININGS = {"safari": 0, "server_sgd": 1, "fedavg": 7}  # likewise, unless a method beside it has the colour
DASHES: list[Any] = ["-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))]
MARKERS = "osD^vPX<>p"
ROW = 0.17  # inches: a line of a legend
SIZE = 8  # points: a heading
MARGIN = 45  # points of a panel's width that the labels of its axis take
BESIDE = 3  # panels of one metric that have room side by side
DODGE = 0.1  # of a step of an axis, between two lines
FEW = 5  # values whose labels have room side by side below a panel
WIDE = 16  # and below a row of panels
MARKS = 6  # markers on a line of many points, about
DIVERGED = "diverged"
CROSS: dict[str, Any] = {"marker": "X", "markersize": 8, "markeredgecolor": "white", "linestyle": "none"}
SETTINGS = {
    "unlearning.lr": "unlearning rate",
    "unlearning.rounds": "rounds of unlearning",
    "recovery.lr": "post-training rate",
    "training.lr": "training rate",
    "trained.training.lr": "training rate",
    "params.lambda": "λ",
    "params.clip": "gradient clip",
    "params.q": "q",
    "params.server_lr": "server's rate",
}


class Look(NamedTuple):
    """How a method's lines are drawn: later ones are thinner, so that one that lies on another leaves it visible."""

    colour: Any
    dash: Any
    marker: str
    width: float
    turn: float

    def line(self, points: int, first: int = 0) -> dict[str, Any]:
        """Return the options of `plot` for a line of so many points, with markers that take turns among methods."""
        every = max(ceil(points / MARKS), 1)
        at = [k for k in range(int(self.turn * every), points, every) if k >= first]
        style = {"color": self.colour, "linestyle": self.dash, "linewidth": self.width, "gapcolor": "white"}
        return {**style, "marker": self.marker, "markersize": 2 + 1.5 * self.width, "markevery": at, "mew": 0}


def looks(methods: Sequence[Method], shaded: bool = False) -> dict[str, Look]:
    """Return each method's look; variants (`fedosd.m5`) have their method's colour, and dashes of their own.

    Where all are variants of one method, colours tell them apart; where `shaded`, shades of it in place of dashes.
    """
    families = {method.name: method.name.partition(".")[0] for method in methods}
    if len(set(families.values())) == 1:
        families = {name: name for name in families}
    known = {family: COLOURS[family] for family in families.values() if family in COLOURS}
    known |= {f: k for f, k in TRAININGS.items() if f in families.values() and k not in known.values()}
    free = [k for k in range(len(PALETTE)) if k not in known.values()] or [0]
    strange = [family for family in dict.fromkeys(families.values()) if family not in known]
    colours = known | {family: free[k % len(free)] for k, family in enumerate(strange)}
    found: dict[str, Look] = {}
    for k, (name, family) in enumerate(families.items()):
        before, count = ([*several].count(family) for several in ([*families.values()][:k], families.values()))
        colour = PALETTE[colours[family]]
        found[name] = Look(
            _shades(colour, count)[before] if shaded else colour,
            DASHES[0 if shaded else before % len(DASHES)],
            MARKERS[k % len(MARKERS)],
            2.2 - 1.2 * k / max(len(families) - 1, 1),
            k / len(families),
        )
    return found


def _shades(colour: Any, count: int) -> list[Any]:
    """Return so many shades of a colour, from light to dark."""
    light, dark = ([(1 - share) * part + share * end for part in colour] for share, end in ((0.55, 1), (0.45, 0)))
    return [colour] if count == 1 else [*sns.blend_palette([light, colour, dark], count)]


def handles(methods: Sequence[Method], shaded: bool = False) -> list[Artist]:
    """Return what stands in a legend for each method."""
    styles = looks(methods, shaded)
    return [Line2D([], [], label=method.marked, **styles[method.name].line(1)) for method in methods]


def panels(rows: int, columns: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure as wide as a page, and its panels, row by row, each `height` inches high."""
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def panels_of(count: int, metrics: int, height: float) -> tuple[Figure, list[list[Axes]], int]:
    """Return a figure, the axes of each of so many panels, metric by metric, and how many stand side by side.

    Panels of one metric fill rows, four of them two; panels of several metrics have a row each.
    """
    if metrics > 1:
        return *panels(count, metrics, height), metrics
    columns = 2 if count == 4 else min(count, BESIDE)
    figure, rows = panels(ceil(count / columns), columns, height)
    axes = [axis for row in rows for axis in row]
    for empty in axes[count:]:
        empty.remove()
    return figure, [[axis] for axis in axes[:count]], columns


def draw_means(axis: Axes, part: pd.DataFrame, look: Look, **style: Any) -> None:
    """Draw means at their places and, over several seeds, their deviation."""
    axis.plot(part["at"], part["mean"], **{**look.line(len(part)), "markevery": None, **style})
    several = part[part["n"] > 1]
    axis.errorbar(several["at"], several["mean"], several["std"], color=look.colour, linestyle="none", linewidth=0.8)


def draw_diverged(axis: Axes, at: float, k: int, look: Look) -> None:
    """Draw a cross at the top, each line's a little lower, where no seed is left."""
    style = {**CROSS, "color": look.colour}
    axis.plot([at], [0.98 - 0.05 * k], **style, transform=axis.get_xaxis_transform())


def aside(k: int, count: int) -> float:
    """Return by how much of a step the line `k` of so many stands beside the value, so that none covers another."""
    return DODGE * (k - (count - 1) / 2)


def ascending(value: Any) -> tuple[bool, Any]:
    """Order the values of a setting: numbers ascending, words as they come."""
    words = isinstance(value, str)
    return words, 0 if words else value


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Explain what is drawn once, below all panels, in as many columns as a page has room for."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    columns = max(1, min(len(handles), int(WIDTH * 16 / (longest + 7))))
    height, room = figure.get_size_inches()[1], ROW * ceil(len(handles) / columns)
    figure.set_size_inches(WIDTH, height + room)
    figure.set_layout_engine("constrained", rect=(0, room / (height + room), 1, height / (height + room)))
    place = {"bbox_to_anchor": (0.5, 0), "bbox_transform": figure.transFigure}  # also where margins are cut
    figure.legend(handles=handles, loc="lower center", ncols=columns, borderaxespad=0, **place)


def head(axis: Axes, text: str, columns: int) -> None:
    """Write the heading of a panel, in as many lines as keep it off its neighbour's in a row of so many."""
    axis.set_title(fit(text, WIDTH * 72 / columns - MARGIN, SIZE), fontsize=SIZE, loc="left", weight="bold")


def title(scenario: Scenario) -> str:
    """Return the heading of a scenario's panels, which names the data that were used."""
    return scenario.label


def setting_name(setting: str) -> str:
    """Return what a person calls a setting of a grid."""
    return SETTINGS.get(setting, setting)


def number(value: Any) -> str:
    """Return the value of a setting as it is written: 1e-6, 0.025, uce."""
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, int | float) else str(value)
