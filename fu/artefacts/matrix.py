"""All methods on all metrics, against the spread of retraining: final models are rows, metrics columns.

`against` names repeats of retraining, which differ in their draws alone: those that share a training are one row, and
the noise floor (`floor.py`) that says which numbers of the methods that start from it are like retraining's. Costs are
those of unlearning and post-training together, and are not tested.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import isnan, nan
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import rcParams
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb
from matplotlib.figure import Figure

from fu.artefacts import changes, drawing, notes
from fu.artefacts.entry import ORIGINAL, SECONDS, Entry, Metric, Scenario, Trial
from fu.artefacts.floor import LEVEL, Floor, gap, noise_floor
from fu.artefacts.panels import LIKE, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.spending import SPENT, spent
from fu.artefacts.statistics import Evaluated, evaluated
from fu.artefacts.words import plus_minus
from fu.evaluation.trace import COUNTS

INPUTS = ("evaluations", "agreement", "costs")
FIDELITY = True  # it shows what each method was implemented from
REPEATS = 3  # that `against` names at least, of each training
NEEDS = ("against",)
ALSO = ("client_accuracy", "client_samples", "client_forgotten", "seconds")
AGAIN = "repeats of retraining"  # the row of the first floor, which is no single method
STEPS = (1, 2, 5, 10)  # half-widths at which the colours of the picture change
GREY = "0.82"
SMALL, FAR = 1e-12, 100.0  # half-width and distance where repeats do not differ, and a model does


class Repeats(NamedTuple):
    """Repeats of the retraining of one training: the row in which they stand, its label, and their names."""

    row: str
    label: str
    names: list[str]


NONE = Repeats("", "", [])


def _own(name: str, label: str, unit: str, formula: str, source: str) -> Metric:
    return Metric(name=name, label=label, unit=unit, better="lower", formula=formula, source=source)


SHAO = "Shao et al. 2024, Definitions 4.1 to 4.3"
PROBED = "our choice: parameters do not show what a model predicts"
TIMED = "our choice: what forgetting costs whoever computes it"
PAIRWISE = ("disagreement_", "variation_")  # of metrics that compare a model with each repeat
OWN = (  # columns that are shown wherever the frame has what they need
    _own("V", "V", "points", "mean accuracy that retained clients lose against the repeats", SHAO),
    _own("S", "S", "points", "mean accuracy that all clients lose against ω⁰", SHAO),
    _own("Q", "Q", "points", "mean distance of the retained clients' losses, against ω⁰, from their mean", SHAO),
    *(
        _own(f"{name}_{which}", f"{label}, {which}", "fraction", f"{formula}, on {which} samples", PROBED)
        for which in ("forgotten", "retained")
        for name, label, formula in (
            ("disagreement", "Disagreement", "share of predictions other than a repeat's"),
            ("variation", "Variation", "total variation between predicted probabilities and a repeat's"),
        )
    ),
    _own(SECONDS, "Seconds", "seconds", "computation of clients and server, no evaluation", TIMED),
)


FLOOR = (
    "Final models. Retraining: mean of the repeats, which differ in their draws alone, ± s, their deviation within a "
    f"seed. {LIKE}, grey: like retraining, as the difference from the repeats of the same seed, mean over S seeds, is "
    f"at most t s sqrt((1 + 1/n) / S), n repeats, t with S(n - 1) degrees of freedom: {100 * LEVEL:g}% of further "
    "repeats are. Nothing is tested where no seed has two repeats. None is bold: methods like retraining are tied. "
    "Standard deviations over seeds are in the csv."
)
WRITTEN = (
    "Implemented from: the paper, the authors' code or both; second-hand: from an abstract, others' descriptions or "
    "unofficial copies; ours: no paper (docs/plugins/methods.md). Grid: number of settings from which the method's "
    "were chosen{rule}."
)
UNTOLD = f"A column with {LIKE} in its heading is uninformative: both controls are like retraining there."
OPTIMUM = (
    "The optimum w_r* of V is approximated by each client's mean accuracy over the repeats, w* of S and Q by ω⁰; "
    "clients are weighted by training samples."
)
JACKKNIFE = (
    "Disagreement and variation are means over the repeats, of a repeat over the others. As two repeats share each "
    "pair, s is (n - 1) / (n - 2) times the deviation of these means (the jackknife's), and seeds with fewer than "
    "three repeats do not count."
)
BEFOREHAND = (
    "They leave out what clients do for a method during the original training (FedAU: those that may be forgotten, "
    "who must be known beforehand, train twice per round)."
)
COSTS = (
    "Costs are sums over unlearning and post-training (bytes stored: the larger of the two); they are not tested. "
    f"{BEFOREHAND}"
)
COLOURS = (
    "Picture: red is higher than retraining, blue lower, grey like it or in an uninformative column; costs are not "
    "shown."
)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the final models' means over seeds, what is like retraining, and a picture of how far the rest lies."""
    known = evaluated(frame)
    found = collect(known, entry)
    shown = [(scenario.label, _panel(entry, found, known, scenario)) for scenario in entry.scenarios]
    return of_table(found, shown, _notes(entry, frame, found), figure=_picture(entry, found))


def models(entry: Entry, scenario: Scenario) -> Iterator[tuple[str, Trial]]:
    """Yield the original model and the trial of every training and method, repeats included."""
    if scenario.original:
        yield ORIGINAL, scenario.original
    for method in entry.methods:
        yield method.name, entry.trial(scenario.name, method)


def repeats(entry: Entry, scenario: Scenario) -> dict[str, Repeats]:
    """Return the repeats of retraining by the trained model that the methods compared with them start from."""
    found: dict[str, Repeats] = {}
    for method in (one for one in entry.methods if one.name in entry.against):
        row, label = (f"repeats of {method.name}", method.label) if found else (AGAIN, "Retraining")
        trained = entry.trial(scenario.name, method).trained
        found.setdefault(trained, Repeats(row, label, [])).names.append(method.name)
    return found


def columns(entry: Entry, found: pd.DataFrame) -> list[Metric]:
    """Return the metrics that are named and the kind's own ones that are known, costs last."""
    named = {metric.name for metric in entry.metrics}
    own = [metric for metric in OWN if (found["metric"] == metric.name).any() and metric.name not in named]
    return sorted([*entry.metrics, *own], key=lambda metric: metric.name in SPENT)


def final(rows: pd.DataFrame, trial: Trial) -> pd.DataFrame:
    """Return metric, seed, client and value of a trial's last model, from the rows of all; costs are of all phases."""
    last = rows[rows["stage"] == [*trial.models][-1]]
    phases = spent(rows[rows["seed"].isin(last["seed"])])
    return pd.concat([last[~last["metric"].isin(SPENT)], phases])[["metric", "seed", "client", "value"]]


def lost(rows: pd.DataFrame, against: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yield V, S and Q in points, by method and seed, of the accuracies of clients (Shao et al. 2024, section 4).

    In place of the optima w_r* and w* stand the repeats that a method is compared with, of whose accuracies the mean is
    taken, and the original model.
    """
    wide = rows[rows["client"].notna()].pivot_table("value", ["seed", "method", "client"], "metric")
    if wide.empty:
        return
    for seed, here in wide.groupby(level="seed"):
        accuracy = 100 * here["client_accuracy"].droplevel("seed").unstack("client")
        clients = here[["client_samples", "client_forgotten"]].groupby(level="client").first()
        samples, stay = clients["client_samples"], clients["client_forgotten"] == 0
        for method in accuracy.index:
            own, again = accuracy.loc[method], accuracy[accuracy.index.isin(against[method])]
            values = {"V": changes.gap((again.mean() - own)[stay], samples[stay])} if len(again) else {}
            if ORIGINAL in accuracy.index:
                losses = accuracy.loc[ORIGINAL] - own
                values |= {"S": changes.gap(losses, samples), "Q": changes.spread(losses[stay], samples[stay])}
            yield from ({"method": method, "seed": seed, "metric": name, "value": v} for name, v in values.items())


def collect(known: Evaluated, entry: Entry) -> pd.DataFrame:
    """Return a row for each scenario, method and metric: mean, std and n over seeds, and how it lies to the floor.

    `floor`: the repeats' mean over the same seeds, `halfwidth`: how far from it a further repeat may lie, `inside`:
    whether the method does (None: not tested, as costs are), `told`: whether the column tells anything; it does not
    where both controls are inside. Of the repeats' own row `std` is s, n the number of all of them.
    """
    found: list[dict[str, Any]] = []
    controls = [method.name for method in entry.methods if method.control]
    for scenario in entry.scenarios:
        trials, several = dict(models(entry, scenario)), repeats(entry, scenario)
        own = {name: several.get(trial.trained, NONE) for name, trial in trials.items()}
        here = known.rows[known.rows["scenario"] == scenario.name]
        of = {name: here[(here["method"] == name) & (here["trial"] == trial.name)] for name, trial in trials.items()}
        long = pd.concat([final(of[name], trial).assign(method=name) for name, trial in trials.items()])
        losses = [*lost(long, {name: one.names for name, one in own.items()})]
        long = pd.concat([long, pd.DataFrame(losses, columns=long.columns).astype(long.dtypes)])
        long = long[long["client"].isna() & long["value"].notna()]
        for metric in columns(entry, long):
            by_method = long[long["metric"] == metric.name].groupby("method")
            values = {name: dict(zip(part["seed"], part["value"], strict=True)) for name, part in by_method}
            floors, rows = dict[str, Floor](), list[dict[str, Any]]()
            for one in [*several.values(), NONE]:
                again = [values[name] for name in one.names if name in values]
                of_seed = {seed: [of[seed] for of in again if seed in of] for seed in sorted({*chain(*again)})}
                floor = floors[one.row] = noise_floor(of_seed, metric.name.startswith(PAIRWISE))
                if floor.means:
                    mean = fmean(floor.means.values())
                    about = {"mean": mean, "std": floor.deviation, "n": sum(floor.numbers.values()), "floor": mean}
                    rows.append({"method": one.row, **about, "halfwidth": nan, "inside": None})
            for name in trials:
                if name not in entry.against:
                    rows.append({"method": name, **_of_model(floors[own[name].row], values.get(name, {}), metric)})
            within = [row["inside"] for row in rows if row["method"] in controls]
            told = len(within) < 2 or not all(inside is True for inside in within)
            found += [{"scenario": scenario.name, "metric": metric.name, **row, "told": told} for row in rows]
    names = ["scenario", "method", "metric", "mean", "std", "n", "floor", "halfwidth", "inside", "told"]
    return pd.DataFrame(found, columns=names).astype({"inside": object})


def _of_model(floor: Floor, values: dict[int, float], metric: Metric) -> dict[str, Any]:
    """Return the numbers of a model, over the seeds that have repeats, too, if any has."""
    paired = {seed: value for seed, value in values.items() if seed in floor.means}
    shown = [*(paired if floor.means else values).values()]
    about: dict[str, Any] = {"mean": fmean(shown) if shown else nan, "std": stdev(shown) if len(shown) > 1 else nan}
    about |= {"n": len(shown), "floor": nan, "halfwidth": nan, "inside": None}
    if paired:
        lies = gap(floor, paired)
        about["floor"] = lies.floor
        if metric.name not in SPENT and not isnan(lies.half_width):
            about |= {"halfwidth": lies.half_width, "inside": lies.inside}
    return about


def _rows(entry: Entry, scenario: Scenario) -> dict[str, tuple[str, list[str]]]:
    """Return label and models of each row: the original model, the repeats, then the methods in their order."""
    shown = {ORIGINAL: ("ω⁰", [ORIGINAL])} if scenario.original else {}
    for one in repeats(entry, scenario).values():
        number = f"{len(one.names)} repeats" if len(one.names) > 1 else "one repeat"
        shown[one.row] = f"{one.label}, {number}", one.names
    return shown | {one.name: (one.marked, [one.name]) for one in entry.methods if one.name not in entry.against}


def _panel(entry: Entry, found: pd.DataFrame, known: Evaluated, scenario: Scenario) -> pd.DataFrame:
    """Return a row for each model, marked where it is like retraining; a column that tells nothing is marked, too."""
    here = found[found["scenario"] == scenario.name]
    cells = {(row["method"], row["metric"]): row for row in here.to_dict("records")}
    trials, heads = dict(models(entry, scenario)), _heads(entry, here)
    written = {method.name: method.fidelity for method in entry.methods}
    grids = {one.name: len(one.trials[scenario.name]) for one in entry.methods if one.name not in entry.against}
    rows = []
    for name, (label, names) in _rows(entry, scenario).items():
        last = [(scenario.name, one, trials[one].name, [*trials[one].models][-1]) for one in names]
        diverged, of = sum(len(known.lost.get(model, {})) for model in last), len(entry.seeds) * len(names)
        row = {"Method": label + (f" ({diverged} of {of} diverged)" if 0 < diverged < of else "")}
        row["Implemented from"], row["Grid"] = written.get(name) or "–", str(grids.get(name, "–"))
        for metric, head in heads.items():
            cell = cells.get((name, metric.name), {"n": 0})
            row[head] = _number(metric, cell["mean"]) if cell["n"] else "–"
            if cell["n"] and name not in trials and not isnan(cell["std"]):
                row[head] += f" ±{_number(metric, cell['std'])}"
            row[head] += f" {LIKE}" if cell["n"] and cell["inside"] else ""
        rows.append(row | ({next(iter(heads.values())): drawing.DIVERGED} if diverged == of else {}))
    return grid(rows)


def _heads(entry: Entry, here: pd.DataFrame) -> dict[Metric, str]:
    """Return the heading of each column, marked if the column is uninformative."""
    untold = set(here[~here["told"]]["metric"])
    return {one: f"{one.label} {LIKE}" if one.name in untold else one.label for one in columns(entry, here)}


def _number(metric: Metric, value: float) -> str:
    count = abs(value) >= 100 or metric.name in COUNTS
    return f"{value:.4g}" if count else plus_minus(value, digits=3 if metric.unit == "fraction" else 2)


def _notes(entry: Entry, frame: pd.DataFrame, found: pd.DataFrame) -> str:
    """Explain rows, columns and marks."""
    metrics = columns(entry, found)
    names, devices = {metric.name for metric in metrics}, frame[frame["metric"] == SECONDS]["device"].dropna()
    several = len(repeats(entry, entry.scenarios[0])) > 1
    return notes.joined(
        entry,
        FLOOR,
        "A method is compared with the retraining of the training that it starts from." if several else "",
        WRITTEN.format(rule=f": {entry.rule}" if entry.rule else ""),
        UNTOLD if (~found["told"]).any() else "",
        OPTIMUM if "V" in names else "",
        JACKKNIFE if any(name.startswith(PAIRWISE) for name in names) else "",
        COSTS if names & {*SPENT} else "",
        f"Seconds: {'; '.join(sorted(set(devices)))}; they differ from run to run." if SECONDS in names else "",
        *(f"{metric.label}: {metric.formula} ({metric.source})." for metric in metrics if metric in OWN),
        notes.no_backdoor(entry, notes.original_asr(frame[frame["method"] == ORIGINAL])),
        COLOURS,
    )


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Draw how many half-widths of the floor each model lies from retraining: grey where it is like it."""
    size = rcParams["xtick.labelsize"]
    tall = 2.1 * size / 72 * (max(len(_rows(entry, scenario)) for scenario in entry.scenarios) + 6)
    figure, axes = drawing.panels(len(entry.scenarios), 1, tall, beside=1)
    colours = sns.color_palette("RdBu_r", 2 * len(STEPS) + 2)
    colours[len(STEPS) : len(STEPS) + 2] = [to_rgb(GREY)]
    edges = [*(-step for step in reversed(STEPS)), *STEPS]
    norm, palette = BoundaryNorm(edges, len(colours), extend="both"), ListedColormap(colours)
    for [axis], scenario in zip(axes, entry.scenarios, strict=True):
        own = found[found["scenario"] == scenario.name]
        here, heads = own[own["inside"].notna()], _heads(entry, own)
        trials = dict(models(entry, scenario))
        shown = [(name, label) for name, (label, _) in _rows(entry, scenario).items() if name in trials]
        away = (here["mean"] - here["floor"]) / here["halfwidth"].clip(lower=SMALL)
        away = away.where(~here["inside"].astype(bool) & here["told"], 0).clip(-FAR, FAR)
        metrics = [metric.name for metric in heads if metric.name not in SPENT]
        table = here.assign(away=away).pivot(index="method", columns="metric", values="away")
        table = table.reindex(index=[name for name, _ in shown], columns=metrics)
        axis.pcolormesh(table.to_numpy(float), cmap=palette, norm=norm, edgecolors="white", linewidth=0.5)
        axis.invert_yaxis()
        numbers = own.groupby("method")["n"].sum()
        for row in (row for row, (name, _) in enumerate(shown) if not numbers[name]):
            axis.text(0.1, row + 0.5, drawing.DIVERGED, va="center", fontsize=size)
        labels = [head for metric, head in heads.items() if metric.name not in SPENT]
        axis.set_xticks(np.arange(len(metrics)) + 0.5, labels, rotation=40, ha="right", rotation_mode="anchor")
        axis.set_yticks(np.arange(len(shown)) + 0.5, [label for _, label in shown])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        drawing.head(axis, scenario.label)
    bar = figure.colorbar(ScalarMappable(norm, palette), ax=[axis for [axis] in axes], ticks=edges, aspect=40)
    bar.set_label("half-widths of the noise floor from retraining")
    return figure
