"""Unlearning time of FATS against a coordinate of scenarios, from the sampling history alone (FATS Figures 2, 3, 6).

Every point is the mean over requests that are drawn through `fu.federation.sampling`; beside it the exact mean (of
several samples at once none is known), the paper's bounds, and FRS, which trains for T time steps again.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fu.artefacts import notes
from fu.artefacts.drawing import Look, head, legend, looks, number, panels
from fu.artefacts.entry import HELD, Entry, Method, Scenario
from fu.artefacts.groups import axis_name
from fu.artefacts.result import Result
from fu.artefacts.words import in_a_row
from fu.errors import UserError
from fu.federation.exact import Requests
from fu.federation.request_times import LOOKED_UP, request_times, standard_error
from fu.federation.sampling import Shape
from fu.seeds import derive_integer

READS = "nothing"
REQUESTS = True
NEEDS = ("scenarios", "x")
FRS: dict[str, Any] = {"color": "0.35", "linestyle": (0, (4, 2)), "linewidth": 1}
EXACT = 0.7  # points: the width of a line
TERMS = (
    "time: time steps computed again, the mean over all requests. spared: the share of requests that compute nothing "
    "again, of which the paper says that it is at least 1 - wρ; re-computed: the others, at most wρ by Theorem 1; "
    "section 5.3 says that they are at most 4wρ re-computations (w targets at once). exact: the mean over all draws."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Draw `entry.draws` requests for every scenario in which rho is at most 1, where the paper's lines end."""
    rows = []
    for scenario in entry.scenarios:
        requests = asked(frame, entry, scenario)
        if requests.rho <= 1:
            rows.append({**_place(entry, scenario), **_numbers(requests, drawn(requests, entry, scenario))})
    if not rows:
        raise UserError(f"{entry.artefact}: rho exceeds 1 in every scenario; name smaller systems.")
    found = pd.DataFrame(rows)
    said = _notes(entry, found)
    return Result(found, f"{_tables(entry, found)}\n{TERMS} {said}\n", _picture(entry, found), notes=said)


def asked(frame: pd.DataFrame, entry: Entry, scenario: Scenario) -> Requests:
    """Return the requests of a scenario; `UserError` where it does not say what is drawn or asked for."""
    drawn, request = scenario.sampling, scenario.asked
    if drawn is None or request is None:
        raise UserError(
            f"{entry.artefact}: {scenario.name!r} needs training.clients_per_round, training.local_steps and "
            "data.forget."
        )
    shape = Shape(drawn.clients_per_round, drawn.rounds, drawn.steps, drawn.batch_size)
    held = frame[(frame["scenario"] == scenario.name) & (frame["metric"] == HELD)]["value"]
    sizes = tuple(held.astype(int)) if request.level == "sample" else None
    return Requests(shape, drawn.clients, sizes, request.number)


def drawn(requests: Requests, entry: Entry, scenario: Scenario) -> np.ndarray[Any, Any]:
    """Return the unlearning times of `entry.draws` requests."""
    source = np.random.default_rng(derive_integer(*entry.seeds, entry.paper, scenario.name, "requests"))
    return request_times(requests, entry.draws, source)


def _place(entry: Entry, scenario: Scenario) -> dict[str, Any]:
    """Return panel, line and x of a scenario: a panel for each level and value of `entry.panels`."""
    assert scenario.asked is not None
    several = {other.asked.number for other in entry.scenarios if other.asked} != {1}
    own = [f"{short} = {number(scenario.at[short])}" for short in entry.panels if short in scenario.at]
    targets = f"{scenario.asked.level}s" if several else f"a {scenario.asked.level}"
    panel = ", ".join([f"{scenario.family or scenario.label}: {targets} to forget", *own])
    line = ", ".join(f"{short} = {number(scenario.at[short])}" for short in entry.lines if short in scenario.at)
    return {"panel": panel, "line": line, "x": scenario.at[str(entry.x)], "scenario": scenario.name}


def _numbers(requests: Requests, times: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "rho": requests.rho,
        "targets": requests.targets,
        "n": times.size,
        "spared": float((times == 0).mean()),
        "spared_exact": 1 - requests.probability,
        "spared_bound": 1 - requests.probability_bound,
        "probability_bound": requests.probability_bound,
        "number_bound": requests.number_bound,
        "time": float(times.mean()),
        "error": standard_error(times),
        "time_exact": requests.mean_time,
        "frs": requests.shape.time,
    }


def _tables(entry: Entry, found: pd.DataFrame) -> str:
    text = []
    for panel, part in found.groupby("panel", sort=False):
        table = pd.DataFrame([_cells(entry, row) for row in part.to_dict("records")])
        text.append(f"## {panel}\n\n{table.to_markdown(index=False, disable_numparse=True)}\n")
    return "\n".join(text)


def _cells(entry: Entry, row: dict[Hashable, Any]) -> dict[str, str]:
    return {
        **({"line": str(row["line"])} if row["line"] else {}),
        str(entry.x): number(row["x"]),
        "ρ": f"{row['rho']:.3f}",
        "spared": f"{row['spared']:.3f}",
        "spared, exact": known(row["spared_exact"], 3),
        "spared, paper ≥": f"{row['spared_bound']:.3f}",
        "re-computed": f"{1 - row['spared']:.3f}",
        "Theorem 1 ≤": f"{row['probability_bound']:.3f}",
        "section 5.3 ≤": f"{row['number_bound']:.3f}",
        "time": with_error(row["time"], row["error"], 0),
        "time, exact": known(row["time_exact"], 0),
        "of FRS": f"{row['time'] / row['frs']:.3f}",
        "of FRS, exact": known(row["time_exact"] / row["frs"], 3),
    }


def known(value: float, digits: int) -> str:
    """Return a number in so many digits; a dash where there is none."""
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def with_error(mean: float, error: float, digits: int) -> str:
    """Return a mean with its standard error, if there is one."""
    return f"{mean:.{digits}f}" + ("" if pd.isna(error) else f" ±{error:.{digits}f}")


def counted(entry: Entry, found: pd.DataFrame) -> str:
    """Say how many requests a mean rests on, and out of what they are drawn."""
    error = ", with their standard error" if found["error"].notna().any() else ""
    text = f"means over {found['n'].iloc[0]} requests, {LOOKED_UP} in each sampling history{error}."
    if any(scenario.asked and scenario.asked.level == "sample" for scenario in entry.scenarios):
        text += (
            " A sample is drawn out of all training samples, a client's as often as it is large; sizes are those of "
            f"seed {entry.seeds[0]}'s partition."
        )
    return text


def _notes(entry: Entry, found: pd.DataFrame) -> str:
    share = (found["time"] / found["frs"]).map("{:.3f}".format).astype(float)  # as printed
    most, beyond = found.iloc[int(share.argmax())], len(entry.scenarios) - len(found)
    where = ", ".join(filter(None, [most["panel"], most["line"], f"{entry.x} = {number(most['x'])}"]))
    said = [
        f"FRS: retraining from scratch, {in_a_row([f'{steps}' for steps in found['frs'].unique()])} time steps.",
        *(["Lines: exact means."] if found["time_exact"].notna().any() else []),
        f"Markers: {counted(entry, found)} The largest mean is {share.max():.3f} of FRS ({where}); "
        f"{(share < 0.5).sum()} of {len(found)} points are below half of FRS.",
        *([f"Lines end where ρ reaches 1; points beyond, which are left out: {beyond}."] if beyond else []),
        *([entry.note] if entry.note else []),
        *notes.marks(entry),
    ]
    return " ".join(said)


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    heads = list(found["panel"].unique())
    figure, axes = panels(len(heads), 1, 2.5)
    lines = [_line(line) for line in found["line"].unique()]
    styles = looks(lines)
    for [axis], panel in zip(axes, heads, strict=True):
        head(axis, panel)
        part = found[found["panel"] == panel]
        for line in lines:
            own, look = part[part["line"] == line.label].sort_values("x"), styles[line.name]
            axis.plot(own["x"], own["time_exact"], color=look.colour, linewidth=EXACT)
            axis.errorbar(own["x"], own["time"], own["error"], **_marks(look))
        for steps in part["frs"].unique():
            axis.axhline(steps, **FRS)
        axis.set(xlabel=axis_name(entry, str(entry.x)), ylabel="unlearning time (time steps)")
        axis.set_ylim(0, 1.06 * part["frs"].max())
        axis.set_xticks(sorted(part["x"].unique()))
    shown = [
        Line2D([], [], label=line.label or "FATS", linewidth=EXACT, **_marks(styles[line.name]) | {"linestyle": "-"})
        for line in lines
    ]
    legend(figure, [*shown, Line2D([], [], label="FRS", **FRS)])
    return figure


def _line(label: str) -> Method:
    """Return a line in place of a method."""
    return Method(name=f"fats.{label}", label=label, in_paper=True, post_training="none", trials={})


def _marks(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "marker": look.marker, "markersize": 3.5, "mew": 0, "linestyle": "none"}
