"""What figures share: their size on paper, the look of each method, the words on axes and panels."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from math import ceil, inf
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import rc_context, rcParams, rcParamsDefault
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D

from fu.artefacts.entry import Method
from fu.artefacts.style import Figures, parameters
from fu.artefacts.wrapping import fit

LOOKS: dict[str, tuple[int | str, Any]] = {  # of a method or training in all papers: colour of the palette, marker
    "fedosd": (0, "o"),
    "mode": (1, "s"),
    "ewcsga": (2, "D"),
    "fupga": (3, "^"),
    "fedrecovery": (4, "v"),
    "federaser": (5, "P"),
    "sfu": (9, "<"),
    "fats": (10, "h"),
    "fr2": (11, ">"),
    "stability": (12, "d"),
    "fairness": (13, "*"),
    "fedquit": (6, "^"),
    "puf": (8, "o"),
    "fedau": ("#b35806", "P"),
    "fused": ("#542788", "h"),
    "not": ("#1b7837", "<"),
    "retraining": (7, "p"),
    "finetuning": ("0.5", ">"),
    "ascent": ("0.5", "v"),
    "partly": ("0.25", "8"),
    "mixed": ("0.25", "H"),
    "untouched": ("0.25", (4, 1, 0)),
    "random": ("0.25", (3, 1, 0)),
    "cheat": ("0.25", "X"),
    "lottery": ("0.25", "D"),
    "stego": ("0.25", "s"),
    "noise": ("0.25", "P"),
    "fedavg": (5, "s"),
    "server_sgd": (1, "v"),
    "safari": (0, "^"),
}
DASHES: list[Any] = ["-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))]
MARKERS = "osD^vP<>p*"
COLOURS = 10  # of the palette that also fill areas: those after them are dark
ROW = 1.75  # a line of a legend, in its letters' size
MARGIN, NONE = 45, 8  # points of a panel's width that the labels of its axis take, and where it has none
BESIDE = 3  # panels of one metric that stand side by side at most
NARROW = 1.4  # inches: the least that a panel needs
HIGH = 0.8  # above it, shares are shown on an axis of their own range
SPAN = 0.1  # the least range of an axis of shares
POINT = 5.5  # size of a single marker
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
rcParams.update({name: value for name, value in rcParamsDefault.items() if name != "backend"})  # not a matplotlibrc's
rcParams.update(parameters(Figures()))  # type: ignore[call-arg]


def styled(figures: Figures) -> AbstractContextManager[None]:
    """Return a context in which figures are made, and written, as a style says."""
    return rc_context(parameters(figures))


class Look(NamedTuple):
    """How a method's lines are drawn: later ones are thinner, so that one that lies on another leaves it visible."""

    colour: Any
    dash: Any
    marker: Any
    width: float
    turn: float

    def line(self, points: int, first: int = 0) -> dict[str, Any]:
        """Return the options of `plot` for a line of so many points, with markers that take turns among methods."""
        every = max(ceil(points / FEW), 1)
        at = [k for k in range(int(self.turn * every), points, every) if k >= first]
        style = {"color": self.colour, "linestyle": self.dash, "linewidth": self.width, "gapcolor": "white"}
        style["zorder"] = 2.5 - self.width / 10  # the wide ones below
        return {**style, "marker": self.marker, "markersize": 2 + 1.5 * self.width, "markevery": at, "mew": 0}

    def point(self, filled: bool = True, **style: Any) -> dict[str, Any]:
        """Return the options of `plot` for a point, filled or hollow."""
        face = {} if filled else {"markerfacecolor": "white"}
        return {"color": self.colour, "marker": self.marker, "markersize": POINT, "linestyle": "none", **face, **style}


def colour(k: int | str) -> Any:
    """Return a colour of the palette, which starts again where it ends, or the colour of this name."""
    return k if isinstance(k, str) else _palette()[k % len(_palette())]


def _palette() -> list[Any]:
    return [*rcParams["axes.prop_cycle"].by_key()["color"]]


def looks(methods: Sequence[Method], shaded: bool = False, own: str = "") -> dict[str, Look]:
    """Return each method's look: variants (`fedosd.m5`) have their method's colour and marker, and dashes of their own.

    Where `shaded`, shades tell variants apart in place of dashes, and markers too where all are of one method.
    `own`: the method that the paper proposes, whose lines are the widest, and below those of the others.
    """
    families = {method.name: method.name.partition(".")[0] for method in methods}
    known = {family: LOOKS[family] for family in families.values() if family in LOOKS}
    taken = [*zip(*known.values(), strict=True)] or [(), ()]
    free = [k for k in range(len(_palette())) if k not in taken[0]] or [0]
    signs = [marker for marker in MARKERS if marker not in taken[1]] or [*MARKERS]
    strange = [family for family in dict.fromkeys(families.values()) if family not in known]
    styles = known | {family: (free[k % len(free)], signs[k % len(signs)]) for k, family in enumerate(strange)}
    alone = shaded and len(styles) == 1
    order = sorted(families, key=lambda name: name.partition(".")[0] != own)  # widest first
    found: dict[str, Look] = {}
    for k, (name, family) in enumerate(families.items()):
        before, count = ([*several].count(family) for several in ([*families.values()][:k], families.values()))
        which, marker = styles[family]
        shade = colour(which)
        found[name] = Look(
            shades(shade, count)[before] if shaded else shade,
            DASHES[0 if shaded else before % len(DASHES)],
            MARKERS[k % len(MARKERS)] if alone else marker,
            2.2 - 1.2 * order.index(name) / max(len(families) - 1, 1),
            k / len(families),
        )
    return found


def shades(colour: Any, count: int) -> list[Any]:
    """Return so many shades of a colour, from light to dark."""
    parts = to_rgb(colour)
    light, dark = ([(1 - share) * part + share * end for part in parts] for share, end in ((0.55, 1), (0.45, 0)))
    return [colour] if count == 1 else [*sns.blend_palette([light, colour, dark], count)]


def handles(methods: Sequence[Method], shaded: bool = False, own: str = "") -> list[Artist]:
    """Return what stands in a legend for each method."""
    styles = looks(methods, shaded, own)
    return [Line2D([], [], label=method.marked, **styles[method.name].line(1)) for method in methods]


def panels(
    count: int, metrics: int, height: float, beside: int = BESIDE, widest: float = inf
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and the axes of each of so many panels, metric by metric.

    It is as wide as the style says, or less where no panel needs more than `widest` inches. So many panels of one
    metric as `beside` says stand side by side, of four two. Panels of several metrics have a row each, or more where
    the figure is too narrow. Each is `height` inches high.
    """
    wide = rcParams["figure.figsize"][0]
    room = max(1, int(wide / NARROW))
    columns = min(room, metrics if metrics > 1 else min(2 if count == 4 else count, beside))
    lines = count * ceil(metrics / columns) if metrics > 1 else ceil(count / columns)
    figure = Figure(figsize=(min(wide, columns * widest), height * lines), layout="constrained")
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


def draw_band(axis: Axes, x: str, part: pd.DataFrame, colour: Any, alpha: float = 0.15) -> None:
    """Draw the deviation over seeds around a mean, where there are several."""
    if part["n"].max() > 1:
        low, high = part["mean"] - part["std"], part["mean"] + part["std"]
        axis.fill_between(part[x], low, high, color=colour, alpha=alpha, linewidth=0)


def draw_image(axis: Axes, pixels: Any, title: str) -> None:
    """Draw a picture of a sample, in colours or grey, with values in [0, 1]."""
    axis.imshow(pixels if pixels.shape[2] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
    axis.set_title(title, pad=2, weight="normal", fontsize=rcParams["xtick.labelsize"])


def head_beside(axis: Axes, text: str, room: float) -> None:
    """Write the heading of a row of pictures to its left; `room`: the space in inches."""
    axis.set_ylabel(fit(text, 72 * room, rcParams["axes.labelsize"]), rotation=0, ha="right", va="center")


def draw_diverged(axis: Axes, at: float, k: int, look: Look) -> None:
    """Draw a cross at the top, each line's a little lower, where no seed is left."""
    style = {**CROSS, "color": look.colour}
    axis.plot([at], [0.98 - 0.05 * k], **style, transform=axis.get_xaxis_transform())


def signs(used: Collection[str], styles: Mapping[str, Mapping[str, Any]]) -> list[Artist]:
    """Return the legend entries of the signs that are used."""
    return [Line2D([], [], label=label, **style) for label, style in styles.items() if label in used]


def show_shares(axes: Sequence[Axes]) -> None:
    """Show shares from 0 to 1; where all that is drawn lies above `HIGH`, only what is drawn, but `SPAN` at least."""
    low = min((axis.dataLim.y0 for axis in axes if np.isfinite(axis.dataLim.y0)), default=0.0)
    high = max((axis.dataLim.y1 for axis in axes if np.isfinite(axis.dataLim.y1)), default=1.0)
    own = low > HIGH
    low = min(low, max(HIGH, min((low + high - SPAN) / 2, 1 - SPAN)))
    high = max(high, low + SPAN)
    pad = 0.06 * (high - low)
    for axis in axes:
        axis.set_ylim((low - pad, high + pad) if own else (-0.03, 1.03))


def share_y(axes: Sequence[Axes]) -> None:
    """Give panels that stand beside each other one y axis, whose labels stand at the first of a row."""
    ends = [axis.get_ylim() for axis in axes]
    for axis in axes:
        axis.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        place = axis.get_subplotspec()
        if place and not place.is_first_col():
            axis.set_ylabel("")
            axis.tick_params(labelleft=False)


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


def head(axis: Axes, text: str, columns: int = 1, margin: float = MARGIN) -> None:
    """Write the heading of a panel, or of so many beside each other, in as many lines as keep it off its neighbour.

    `margin`: points of a panel's width that the labels of its axis take.
    """
    place = axis.get_subplotspec()
    assert place is not None
    room = axis.figure.get_figwidth() * 72 / place.get_gridspec().ncols * columns - margin  # type: ignore[union-attr]
    axis.set_title(fit(text, room, float(axis.title.get_fontsize())), loc="left")


def setting_name(setting: str) -> str:
    """Return what a person calls a setting of a grid."""
    return SETTINGS.get(setting, setting)


def point(values: Mapping[str, Any]) -> str:
    """Return the label of a point of a grid, such as λ = 1."""
    return ", ".join(f"{setting_name(key)} = {number(value)}" for key, value in values.items())


def number(value: Any) -> str:
    """Return the value of a setting as it is written: 1e-6, 0.025, uce."""
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, int | float) else str(value)
