"""Cost of reaching retraining's final level of a metric (Shao et al. 2024, Table 1): rounds, time steps, seconds.

The first metric is an accuracy, the others are counts, of which the first says who is faster. What counts is the first
round after which the accuracy is at most half a point below what retraining of the same seed has in the end; retraining
gets there before its end, too. Who never does, or diverges, takes infinitely long: claims count it, means leave it out.
Where the original model is already accurate enough (at once), a seed says nothing about the method: claims and mean
ratios leave it out. Each point of a grid is a row. Seconds are those of the run, in
proportion to its rounds; they lie outside the promise of equal bytes.
"""

from math import inf, nan
from typing import Any

import pandas as pd

from fu.artefacts import notes
from fu.artefacts.drawing import point
from fu.artefacts.entry import Entry, Scenario
from fu.artefacts.panels import OURS, grid
from fu.artefacts.result import Result, of_table
from fu.artefacts.statistics import printed, summaries, unfinished
from fu.artefacts.words import plus_minus

INPUTS = ("traces", "costs")
TABLE = True
RETRAINS = True  # one of its methods must
POINTS = True  # each point of a grid is a row
PUBLISHED = {"metrics": ("faster", "faster_std")}
BY_SEED = ("faster", "rounds")
NEAR = 0.005  # half a point
ROUNDS, FASTER, AT_ONCE = "Rounds", "Faster, ×", "at once"
KEYS = ["scenario", "method", "trial", "metric"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return rounds, time steps and seconds, and how many times fewer time steps than retraining, over seeds."""
    each = _by_seed(frame, entry)
    at_once = each["metric"].eq("faster") & each["rounds"].eq(0)
    found = summaries(each[(each["rounds"] < inf) & ~at_once], KEYS)
    theirs = printed(frame, entry)
    theirs = theirs[theirs["metric"] == "faster"][["scenario", "method", "metric", "value"]]
    theirs.columns = pd.Index(["scenario", "trial", "metric", "published"])
    theirs = theirs.assign(method=[trial.partition("+")[0] for trial in theirs["trial"]])
    found = found.merge(theirs, on=KEYS, how="outer", sort=False).fillna({"n": 0})
    whole = found["n"] == found.groupby(KEYS[:-1])["n"].transform("max")  # else the fastest seeds have no ratio
    found["difference"] = (found["mean"] - found["published"]).where(whole)
    shown = [(scenario.label, _panel(entry, found, scenario)) for scenario in entry.scenarios]
    devices = sorted(set(frame[frame["metric"] == "seconds"]["device"]))
    text = notes.joined(
        entry,
        f"Until {entry.metrics[0].label} is at most half a point below retraining's last; retraining itself gets there "
        f"before its end. Seconds, in proportion to rounds: {'; '.join(devices)}.",
        f"Faster: retraining's {entry.metrics[1].label.lower()} over the method's, of the same seed; {AT_ONCE}: the "
        "original model is already that accurate; claims leave such seeds out.",
        notes.deviations(entry),
        notes.comparison(entry),
    )
    return of_table(found, shown, text)


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return how many rounds each trial takes on each seed, and how many times faster than retraining it is.

    Seeds in which the original model is already accurate enough are left out.
    """
    found = _by_seed(frame, entry)
    return found[found["metric"].isin(BY_SEED) & found["rounds"].ne(0)].assign(stage="unlearned")


def _by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return the numbers of each trial on each seed; the column `rounds` says how many rounds it takes."""
    ours = frame[~frame["published"]]
    return pd.DataFrame(_rows(ours[~unfinished(entry, ours)], entry), columns=[*KEYS, "seed", "value", "rounds"])


def reached(values: "pd.Series[float]", level: float) -> float:
    """Return the first round (the index) in which a metric is at most `NEAR` below a level; NaN: it never is."""
    near = values[(values - (level - NEAR)).round(9) >= 0]
    return float(near.index.min()) if len(near) else nan


def _rows(frame: pd.DataFrame, entry: Entry) -> list[tuple[Any, ...]]:
    """Return what each trial takes on each seed: scenario, method, trial, metric, seed, value, rounds."""
    again, (metric, *counts) = entry.retraining, [metric.name for metric in entry.metrics]
    assert again is not None
    runs = {
        (scenario, method, trial, seed): part.pivot_table("value", "round", "metric")
        for (scenario, method, trial, seed), part in frame[frame["stage"] == "unlearned"].groupby(
            ["scenario", "method", "trial", "seed"]
        )
    }
    found = []
    for scenario in entry.scenarios:
        [first, *_] = entry.trials(scenario.name, again)
        for seed in entry.seeds:
            reference = runs.get((scenario.name, again.name, first.name, seed))
            if reference is None:
                continue
            level = float(reference[metric].dropna().iloc[-1])
            base = reference[counts[0]].get(reached(reference[metric], level), nan)
            for method in entry.methods:
                for trial in entry.trials(scenario.name, method):
                    run = runs.get((scenario.name, method.name, trial.name, seed))
                    round = nan if run is None else reached(run[metric], level)
                    if run is None or pd.isna(round):
                        numbers = {"rounds": inf, "faster": 0.0}
                    else:
                        seconds = run["seconds"].dropna().iloc[-1] * round / max(run.index.max(), 1)
                        numbers = {"rounds": round, **{name: run[name][round] for name in counts}, "seconds": seconds}
                        numbers["faster"] = base / numbers[counts[0]] if round else nan
                    run_key = (scenario.name, method.name, trial.name)
                    found += [(*run_key, name, seed, value, numbers["rounds"]) for name, value in numbers.items()]
    return found


def _panel(entry: Entry, found: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    rows = []
    for method in entry.methods:
        for trial in entry.trials(scenario.name, method):
            here = found[(found["scenario"] == scenario.name) & (found["trial"] == trial.name)].set_index("metric")
            row: dict[Any, str] = {"Method": ", ".join(filter(None, [method.marked, point(trial.values)]))}
            never = len(entry.seeds) - int(here["n"].get("rounds", 0))
            faster, rest = _mean(here, "faster", 2), int(here["n"].get("rounds", 0) - here["n"].get("faster", 0))
            if here["mean"].get("rounds") == 0:
                faster = AT_ONCE
            elif faster != "–" and rest:
                faster += f" ({AT_ONCE} on {rest} seed{'s' if rest > 1 else ''})"
            if not entry.compares:
                row[FASTER] = faster
            else:
                diff = here["difference"].get("faster", nan)
                row[FASTER, OURS] = faster
                row[FASTER, "paper"] = plus_minus(here["published"].get("faster", nan), digits=2)
                row[FASTER, "diff"] = "–" if pd.isna(diff) else f"{diff:+.2f}"
            row[ROUNDS] = _mean(here, "rounds", 1)
            row[ROUNDS] += f" (never on {never} seed{'s' if never > 1 else ''})" if never else ""
            row |= {metric.label: _mean(here, metric.name, 0) for metric in entry.metrics[1:]}
            rows.append({**row, "Seconds": _mean(here, "seconds", 1)})
    return grid(rows)


def _mean(here: pd.DataFrame, metric: str, digits: int) -> str:
    return plus_minus(here["mean"].get(metric, nan), here["std"].get(metric, nan), digits)
