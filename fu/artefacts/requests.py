"""Unlearning times of FATS: requests drawn through `fu.federation.sampling`, beside exact means, bounds and FRS.

One row for each scenario. Of several samples at once no exact mean is known. FRS trains for T time steps again.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fu.artefacts.entry import HELD, Entry, Scenario
from fu.artefacts.words import in_a_row
from fu.errors import UserError
from fu.federation.exact import Requests
from fu.federation.request_times import LOOKED_UP, request_times, standard_error
from fu.federation.sampling import Shape
from fu.seeds import derive_integer

FRS: dict[str, Any] = {"color": "0.35", "linestyle": (0, (4, 2)), "linewidth": 1}


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


def times(entry: Entry, scenario: Scenario, requests: Requests) -> dict[str, Any]:
    """Return rho and the time steps that `entry.draws` requests compute again: mean, its error and the exact mean.

    `spared`: the share that computes nothing again; bounds are those of Theorem 1 and section 5.3.
    """
    source = np.random.default_rng(derive_integer(*entry.seeds, entry.paper, scenario.name, "requests"))
    drawn = request_times(requests, entry.draws, source)
    return {
        "scenario": scenario.name,
        "level": "client" if requests.sizes is None else "sample",
        "rho": requests.rho,
        "targets": requests.targets,
        "K": requests.shape.clients_per_round,
        "b": requests.shape.batch_size,
        "n": drawn.size,
        "spared": float((drawn == 0).mean()),
        "spared_exact": 1 - requests.probability,
        "spared_bound": 1 - requests.probability_bound,
        "probability_bound": requests.probability_bound,
        "number_bound": requests.number_bound,
        "mean": float(drawn.mean()),
        "error": standard_error(drawn),
        "exact": requests.mean_time,
        "frs": requests.shape.time,
    }


def counted(entry: Entry, found: pd.DataFrame) -> str:
    """Say how many requests a mean rests on, and out of what they are drawn."""
    each = f"{found['n'].iloc[0]} requests, {LOOKED_UP} in each sampling history, with their standard error"
    text = f"means over {each}."
    if any(scenario.asked and scenario.asked.level == "sample" for scenario in entry.scenarios):
        text += (
            " A sample is drawn from all training samples, so more often from larger clients; sizes are those of "
            f"seed {entry.seeds[0]}'s partition."
        )
    return text


def retrained(found: pd.DataFrame) -> str:
    """Say how many time steps FRS takes."""
    return f"FRS: retraining from scratch, {in_a_row([str(steps) for steps in found['frs'].unique()])} time steps."


def draw_times(axis: Axes, part: pd.DataFrame, x: str, exact: dict[str, Any], marks: dict[str, Any]) -> None:
    """Draw means with their errors, and the exact mean as a line."""
    part = part.sort_values(x)
    axis.plot(part[x], part["exact"], **exact)
    axis.errorbar(part[x], part["mean"], part["error"].fillna(0), elinewidth=0.8, **marks)


def draw_retrained(axis: Axes, part: pd.DataFrame) -> None:
    """Draw the time of FRS, from which the height of the axis follows."""
    for steps in part["frs"].unique():
        axis.axhline(steps, **FRS)
    axis.set(ylabel="unlearning time (time steps)", ylim=(0, 1.06 * part["frs"].max()))
