"""What figures share: their size on paper, the look of each method, the words on axes and panels."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import ceil
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import rc_context, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D

from fu.artefacts.entry import Method
from fu.artefacts.style import Figures, parameters
from fu.artefacts.wrapping import fit

LOOKS = {  # a method or training has one colour of the palette and one marker in all papers; others take what is left
    "fedosd": (0, "o"),
    "mode": (1, "s"),
    "ewcsga": (2, "D"),
    "fupga": (3, "^"),
    "fedrecovery": (4, "v"),
    "federaser": (5, "P"),
    "retraining": (7, "p"),
    "sfu": (9, "<"),
    "fats": (0, "D"),
    "fr2": (3, ">"),
    "safari": (0, "^"),
    "server_sgd": (1, "v"),
    "fedavg": (7, "s"),
}
DASHES: list[Any] = ["-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))]
MARKERS = "osD^vP<>p*"
COLOURS = 10  # of the palette
ROW = 1.75  # a line of a legend, in its letters' size
MARGIN = 45  # points of a panel's width that the labels of its axis take
BESIDE = 3  # panels of one metric that stand side by side at most
NARROW = 1.4  # inches: the least that a panel needs
HIGH = 0.8  # above it, shares are shown on an axis of their own range
FEW = 6  # markers on a line of many points, about
DIVERGED = "diverged"
CROSS: dict[str, Any] = {"marker": "X", "markersize": 8, "markeredgecolor": "white", "linestyle": "none"}
SETTINGS = {
    "unlearning.lr": "unlearning rate",
    "unlearning.rounds": "rounds of unlearning",
    "recovery.lr": "post-training rate",
    "training.lr": "training rate",
    "trained.training.lr": "training rate",
    "params.lambda": "λ",
    "params.smoothness": "L",
    "params.epsilon": "ε",
    "params.bound": "Λ",
    "params.clip": "gradient clip",
    "params.q": "q",
    "params.server_lr": "server's rate",
}


matplotlib.use("Agg")
rcParams.update(parameters(Figures()))  # type: ignore[call-arg]


def styled(figures: Figures) -> AbstractContextManager[None]:
    """Return a context in which figures are made, and written, as a style says."""
    return rc_context(parameters(figures))


class Look(NamedTuple):
    """How a method's lines are drawn: later ones are thinner, so that one that lies on another leaves it visible."""

    colour: Any
    dash: Any
    marker: str
    width: float
    turn: float

    def line(self, points: int, first: int = 0) -> dict[str, Any]:
        """Return the options of `plot` for a line of so many points, with markers that take turns among methods."""
        every = max(ceil(points / FEW), 1)
        at = [k for k in range(int(self.turn * every), points, every) if k >= first]
        style = {"color": self.colour, "linestyle": self.dash, "linewidth": self.width, "gapcolor": "white"}
        style["zorder"] = 2.5 - self.width / 10  # the wide ones below
        return {**style, "marker": self.marker, "markersize": 2 + 1.5 * self.width, "markevery": at, "mew": 0}


def colour(k: int) -> Any:
    """Return a colour of the palette, which starts again where it ends."""
    palette = rcParams["axes.prop_cycle"].by_key()["color"]
    return palette[k % len(palette)]


def looks(methods: Sequence[Method], shaded: bool = False, own: str = "") -> dict[str, Look]:
    """Return each method's look; variants (`fedosd.m5`) have their method's colour and marker, and dashes of their own.

    Where all are variants of one method, colours tell them apart; where `shaded`, shades of it in place of dashes.
    `own`: the method that the paper proposes, whose lines are the widest, and below those of the others.
    """
    families = {method.name: method.name.partition(".")[0] for method in methods}
    if len(families) > 1 and len(set(families.values())) == 1:
        families = {name: name for name in families}
    known = {family: LOOKS[family] for family in families.values() if family in LOOKS}
    free = [k for k in range(COLOURS) if k not in {taken for taken, _ in known.values()}] or [0]
    signs = [marker for marker in MARKERS if marker not in {taken for _, taken in known.values()}] or [*MARKERS]
    strange = [family for family in dict.fromkeys(families.values()) if family not in known]
    styles = known | {family: (free[k % len(free)], signs[k % len(signs)]) for k, family in enumerate(strange)}
    order = sorted(families, key=lambda name: name.partition(".")[0] != own)  # widest first
    found: dict[str, Look] = {}
    for k, (name, family) in enumerate(families.items()):
        before, count = ([*several].count(family) for several in ([*families.values()][:k], families.values()))
        shade, marker = colour(styles[family][0]), styles[family][1]
        found[name] = Look(
            _shades(shade, count)[before] if shaded else shade,
            DASHES[0 if shaded else before % len(DASHES)],
            marker,
            2.2 - 1.2 * order.index(name) / max(len(families) - 1, 1),
            k / len(families),
        )
    return found


def _shades(colour: Any, count: int) -> list[Any]:
    """Return so many shades of a colour, from light to dark."""
    parts = to_rgb(colour)
    light, dark = ([(1 - share) * part + share * end for part in parts] for share, end in ((0.55, 1), (0.45, 0)))
    return [colour] if count == 1 else [*sns.blend_palette([light, colour, dark], count)]


def handles(methods: Sequence[Method], shaded: bool = False, own: str = "") -> list[Artist]:
    """Return what stands in a legend for each method."""
    styles = looks(methods, shaded, own)
    return [Line2D([], [], label=method.marked, **styles[method.name].line(1)) for method in methods]


def panels(count: int, metrics: int, height: float, beside: int = BESIDE) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure of the width that the style says, and the axes of each of so many panels, metric by metric.

    So many panels of one metric as `beside` says stand side by side, of four two. Panels of several metrics have a row
    each, or more where the figure is too narrow. Each is `height` inches high.
    """
    wide = rcParams["figure.figsize"][0]
    room = max(1, int(wide / NARROW))
    columns = min(room, metrics if metrics > 1 else min(2 if count == 4 else count, beside))
    lines = count * ceil(metrics / columns) if metrics > 1 else ceil(count / columns)
    figure = Figure(figsize=(wide, height * lines), layout="constrained")
    cells = figure.subplots(lines, columns, squeeze=False)
    axes = cells.reshape(count, -1) if metrics > 1 else cells.reshape(-1, 1)
    kept = [[*row[:metrics]] for row in axes[:count]]
    for empty in {*cells.flat} - {axis for row in kept for axis in row}:
        empty.remove()
    return figure, kept


def draw_means(axis: Axes, part: pd.DataFrame, look: Look, **style: Any) -> None:
    """Draw means at their places and, over several seeds, their deviation."""
    axis.plot(part["at"], part["mean"], **{**look.line(len(part)), "markevery": None, **style})
    several = part[part["n"] > 1]
    axis.errorbar(several["at"], several["mean"], several["std"], color=look.colour, linestyle="none", linewidth=0.8)


def draw_diverged(axis: Axes, at: float, k: int, look: Look) -> None:
    """Draw a cross at the top, each line's a little lower, where no seed is left."""
    style = {**CROSS, "color": look.colour}
    axis.plot([at], [0.98 - 0.05 * k], **style, transform=axis.get_xaxis_transform())


def show_shares(axes: Sequence[Axes]) -> None:
    """Show shares from 0 to 1; where all that is drawn lies above `HIGH`, only what is drawn."""
    low = min((axis.dataLim.y0 for axis in axes if np.isfinite(axis.dataLim.y0)), default=0.0)
    high = max((axis.dataLim.y1 for axis in axes if np.isfinite(axis.dataLim.y1)), default=1.0)
    pad = 0.06 * (high - low) or 0.01
    for axis in axes:
        axis.set_ylim((low - pad, high + pad) if low > HIGH else (-0.03, 1.03))


def ascending(value: Any) -> tuple[bool, Any]:
    """Order the values of a setting: numbers ascending, words as they come."""
    words = isinstance(value, str)
    return words, 0 if words else value


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Explain what is drawn once, below all panels, in as many columns as the figure has room for."""
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    wide, height = figure.get_size_inches()
    size = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points()
    columns = max(1, min(len(handles), int(wide * 112 / size / (longest + 7))))
    room = ROW * size / 72 * ceil(len(handles) / columns)
    figure.set_size_inches(wide, height + room)
    figure.set_layout_engine("constrained", rect=(0, room / (height + room), 1, height / (height + room)))
    place = {"bbox_to_anchor": (0.5, 0), "bbox_transform": figure.transFigure}  # also where margins are cut
    figure.legend(handles=handles, loc="lower center", ncols=columns, borderaxespad=0, **place)


def head(axis: Axes, text: str) -> None:
    """Write the heading of a panel, in as many lines as keep it off its neighbour's."""
    place = axis.get_subplotspec()
    assert place is not None
    room = rcParams["figure.figsize"][0] * 72 / place.get_gridspec().ncols - MARGIN
    axis.set_title(fit(text, room, float(axis.title.get_fontsize())), loc="left")


def setting_name(setting: str) -> str:
    """Return what a person calls a setting of a grid."""
    return SETTINGS.get(setting, setting)


def number(value: Any) -> str:
    """Return the value of a setting as it is written: 1e-6, 0.025, uce."""
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, int | float) else str(value)
