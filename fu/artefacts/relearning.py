"""Relearning time: how soon further training restores what a model forgot, compared with a retrained model.

After Siddiqui et al. 2025 (arXiv 2505.22310): what comes back sooner than after retraining was not gone. It is back in
the first round after which the ASR (without a backdoor, the accuracy on forgotten samples that no attack trains on) is
at least .95 of the original model's. Rounds of a method and of the retraining of its training are compared by a
permutation of ranks (Mann-Whitney, on one side), of four models at least: of three no p is below .05. P-values are
corrected by Holm over all methods, attacks and scenarios of a table, those of controls likewise by themselves. Each
attack is judged by controls first, as an audit is; a method whose training no control shares is not judged.
"""

from collections.abc import Mapping
from itertools import product
from math import comb, inf, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fu.artefacts import notes
from fu.artefacts.auditing import corrected, marked, silent, tested, uncontrolled, unfit
from fu.artefacts.drawing import draw_band, handles, head, legend, looks, panels, show_shares
from fu.artefacts.entry import FORGET_SET, ORIGINAL, Entry, Scenario
from fu.artefacts.panels import LIKE, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import summaries
from fu.artefacts.words import plus_minus, took_hold

INPUTS = ("relearning",)
NEEDS = ("against",)
BY_SEED = ("rounds_retained", "rounds_forgotten")
ATTACKS = {"retained": "retained clients train", "forgotten": "the forgotten client trains"}
SHARE = 0.95  # of the original model's level, where something is back
LEVEL = 0.05
LEAST = 4  # models of each kind: 70 labellings, of three only 20
SEES = ("untouched",)  # plug-ins of the controls that an attack must find
RESAMPLES, SEED = 19_999, 0  # exact up to eight repeats, which have 12,870 labellings
CONTROL: dict[str, Any] = {"linewidth": 3.2, "zorder": 1.5}
GREYS = ("0.15", "0.6")  # of the retrainings
LEVELS: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "zorder": 0.5}
CURVE = ["scenario", "method", "attack", "metric", "round"]


READ = (
    f"Rounds: until the ASR, or without a backdoor the forget-set accuracy, is at least {SHARE:g} of the original "
    "model's, mean over models; 0: already before training; >: some models never are, and count as if they were after "
    "the last round; a run of a method that diverges counts as 0; without seeds in which the backdoor did not take "
    f"hold in ω⁰. {LIKE}, grey: not significantly sooner than with retraining (corrected for the "
    "{number} tests of methods; those of controls separately); in a heading: the attack fails its own controls, so it "
    "judges no method. The other columns: before the attack → after it; of ω⁰ before "
    "it."
)


class Judged(NamedTuple):
    """An attack in one scenario: each method's rounds by repeat (inf: never), corrected p-values, and by reference why
    it judges nobody.
    """

    rounds: Mapping[str, list[float]]
    p: Mapping[str, float]
    fails: Mapping[str, str]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return the curves, mean and deviation over repeats; the table says how soon what was forgotten is back."""
    found, times = summaries(frame, CURVE), until(frame, entry)
    judged, number = judge(entry, times)
    shown = [(one.label, _panel(entry, one, found, judged[one.name])) for one in entry.scenarios]
    words = [
        [
            text
            for attack, one in several.items()
            for text in silent(entry, f"The attack in which {ATTACKS[attack]}", one.fails)
        ]
        for several in judged.values()
    ]
    how = [
        f"{one.repeats} models per method continue training for {one.rounds} rounds at the rates of post-training: all "
        f"retained clients, or the forgotten client on {one.samples} of its samples, which are the same for all models "
        "and are not measured on."
        for one in (scenario.relearning for scenario in entry.scenarios)
        if one
    ]
    text = notes.joined(
        entry, *dict.fromkeys(how), READ.format(number=number), notes.deviations(entry, "Bands"), entry.note
    )
    return of_table(found, shown, text, words, figure=_picture(entry, found))


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return after how many rounds what was forgotten is back; never counts as one round more than there are."""
    times = until(frame, entry)
    late = times["scenario"].map({one.name: one.relearning.rounds + 1.0 for one in entry.scenarios if one.relearning})
    stages = {
        (one.name, method.name): [*entry.trial(one.name, method).models][-1]
        for one in entry.scenarios
        for method in entry.methods
    }
    return times.assign(
        value=times["rounds"].where(times["rounds"] < inf, late),
        metric="rounds_" + times["attack"],
        stage=[stages[key] for key in zip(times["scenario"], times["method"], strict=True)],
    )


def until(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return scenario, method, trial, seed, attack and the first of the `rounds` after which it is back (inf: none).

    Seeds in which the backdoor did not take hold in the original model are left out. A run of a method that diverges
    counts as back at once: no method may pass because its models cannot be trained further.
    """
    keys = ["scenario", "method", "trial", "seed"]
    attacked = frame[frame["metric"] == "asr"]["scenario"].unique()
    here = frame[frame["metric"] == np.where(frame["scenario"].isin(attacked), "asr", FORGET_SET)]
    levels = here[here["attack"] == ORIGINAL].set_index(keys)["value"].rename("level")
    rows = here[here["attack"] != ORIGINAL].join(levels, on=keys)
    rows = rows[(rows["metric"] != "asr") | rows["level"].map(took_hold).astype(bool)]
    back = rows["value"].round(9) >= (SHARE * rows["level"]).round(9)
    last = rows.groupby([*keys, "attack"])["round"].transform("max")
    planned = rows["scenario"].map({one.name: one.relearning.rounds for one in entry.scenarios if one.relearning})
    diverged = (last < planned) & ~rows["method"].isin(entry.against)
    times = rows.assign(rounds=rows["round"].where(back, inf).astype(float).mask(diverged, 0))
    return times.groupby([*keys, "attack"], sort=False)["rounds"].min().reset_index()


def judge(entry: Entry, times: pd.DataFrame) -> tuple[dict[str, dict[str, Judged]], int]:
    """Return the verdict of each attack on every method with `LEAST` models or more, and the number of tests."""
    alone, p, judged = uncontrolled(entry), dict[tuple[str, str, str], float](), dict[str, dict[str, Judged]]()
    rounds = {
        place: {str(method): [*of["rounds"]] for method, of in part.groupby("method", sort=False)}
        for place, part in times.groupby(["scenario", "attack"], sort=False)
    }
    fit, lowest = [method for method in tested(entry) if method.name not in alone], 1.0
    for scenario, attack, method in product(entry.scenarios, ATTACKS, fit):
        known = rounds.get((scenario.name, attack), {})
        own, again = (known.get(name, []) for name in (method.name, method.reference))
        if min(len(own), len(again)) >= LEAST:
            p[scenario.name, method.name, attack] = p_value(own, again)
            lowest = min(lowest, 1 / comb(len(own) + len(again), len(own)))
    methods, controls = corrected(p, entry)
    few = dict.fromkeys(entry.against, f"of so few models no p, corrected for all tests, can be below {LEVEL:g}")
    can = max(len(methods), len(controls)) * lowest < LEVEL
    for scenario, attack in product(entry.scenarios, ATTACKS):
        here = {
            name: value
            for (place, name, how), value in (methods | controls).items()
            if (place, how) == (scenario.name, attack)
        }
        found = {method.name: here[method.name] < LEVEL if method.name in here else None for method in fit}
        fails = {name: why for name in entry.against if (why := unfit(entry, name, found, SEES))}
        known = rounds.get((scenario.name, attack), {})
        judged.setdefault(scenario.name, {})[attack] = Judged(known, here, fails if here and can else few)
    return judged, len(methods)


def p_value(rounds: list[float], control: list[float]) -> float:
    """Return the chance of ranks so low or lower, were both alike; equal rounds have their mean rank."""
    from scipy import stats  # a second that others need not pay

    ranks = stats.rankdata([*rounds, *control])
    tested = stats.permutation_test(
        (ranks[: len(rounds)], ranks[len(rounds) :]),
        lambda own, _, axis: own.sum(axis),
        vectorized=True,
        alternative="less",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(SEED),
    )
    return float(tested.pvalue)


def mean_rounds(rounds: list[float], last: int) -> str:
    """Return the mean; where some models never are back, that it is more than if they were after the last round."""
    if not rounds:
        return "–"
    return f"{'> ' if max(rounds) > last else ''}{np.minimum(rounds, last).mean():.1f}"


def _originals(entry: Entry) -> dict[str, str]:
    """Return the labels of the original models, by the retraining that has the same training."""
    again = [method for method in entry.methods if method.name in entry.against]
    return {method.name: f"ω⁰ before {method.label}" if len(again) > 1 else "ω⁰" for method in again}


def _panel(entry: Entry, scenario: Scenario, found: pd.DataFrame, judged: Mapping[str, Judged]) -> pd.DataFrame:
    """Return a row for each method, retraining first, the original models last; grey where nothing is sooner."""
    assert scenario.relearning
    here = found[found["scenario"] == scenario.name].set_index(CURVE[1:])["mean"]
    last, originals, rows = scenario.relearning.rounds, _originals(entry), []
    fit = any(len(one.fails) < len(entry.against) for one in judged.values())
    for method in sorted(entry.methods, key=lambda one: one.name not in entry.against):
        number = len(next(iter(judged.values())).rounds.get(method.name, []))
        fewer = f" ({number} models)" if number < scenario.relearning.repeats else ""
        row: dict[Any, str] = {"Method": marked(entry, method, fit and method.name not in entry.against) + fewer}
        for attack, one in judged.items():
            text = mean_rounds(one.rounds.get(method.name, []), last)
            grey = method.reference not in one.fails and one.p.get(method.name, 0) >= LEVEL
            head = f"rounds {LIKE}" if len(one.fails) == len(entry.against) else "rounds"
            row[ATTACKS[attack], head] = f"{text} {LIKE}" if grey else text
            for metric in entry.metrics:
                ends = [here.get((method.name, attack, metric.name, round), nan) for round in (0, last)]
                row[ATTACKS[attack], metric.label] = " → ".join(plus_minus(end) for end in ends)
        rows.append(row)
    for name, label in originals.items():
        levels = {one.label: plus_minus(here.get((name, ORIGINAL, one.name, 0), nan)) for one in entry.metrics}
        rows.append(
            {"Method": label, **{(where, one): text for where in ATTACKS.values() for one, text in levels.items()}}
        )
    return grid(rows)


def _picture(entry: Entry, found: pd.DataFrame) -> Figure:
    """Draw a panel for each scenario, attack and metric: a line for each method, thick ones for retraining."""
    originals, styles = _originals(entry), looks(tested(entry))
    greys = {name: {"color": GREYS[k % len(GREYS)], **CONTROL} for k, name in enumerate(originals)}
    levels = {name: {**LEVELS, "color": style["color"]} for name, style in greys.items()}
    places = [(scenario, attack) for scenario in entry.scenarios for attack in ATTACKS]
    figure, lines = panels(len(places), len(entry.metrics), 2.4)
    for line, (scenario, attack) in zip(lines, places, strict=True):
        head(line[0], entry.heading_of(f"{scenario.label}: {ATTACKS[attack]}"))
        for axis, metric in zip(line, entry.metrics, strict=True):
            here = found[(found["scenario"] == scenario.name) & (found["metric"] == metric.name)]
            before = here[here["attack"] == ORIGINAL].set_index("method")["mean"]
            own = here[here["attack"] == attack]
            for name, style in greys.items():
                part = own[own["method"] == name]
                axis.plot(part["round"], part["mean"], **style)
                if name in before:
                    axis.axhline(before[name], **levels[name])
            for name, look in styles.items():
                part = own[own["method"] == name]
                axis.plot(part["round"], part["mean"], **look.line(len(part)))
                draw_band(axis, "round", part, look.colour, 0.1)
            axis.set(xlabel="round", ylabel=metric.label)
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for k in range(len(entry.metrics)):
        show_shares([line[k] for line in lines])
    labels = {method.name: method.marked for method in entry.methods}
    again = [Line2D([], [], label=labels[name], **style) for name, style in greys.items()]
    again += [Line2D([], [], label=originals[name], **level) for name, level in levels.items()]
    legend(figure, [*handles(tested(entry)), *again])
    return figure
