"""Means over seeds, with their deviation and number, and what of it diverged; intervals of gains are in gains.py.

A run that diverged has no numbers, and its seed is left out of all that a mean is compared with: of an evaluation at
all stages of the method, of a trace in every round, of a gain in both models.
"""

from math import nan
from typing import NamedTuple

import pandas as pd

from fu.artefacts.entry import ORIGINAL, Entry

MODEL = ["scenario", "method", "trial", "stage"]
KEYS = ["scenario", "method", "stage", "metric"]  # of the paper's numbers
RUN = ["scenario", "method", "seed"]
ROUND = ["scenario", "method", "stage", "round", "metric"]
Key = tuple[str, str, str, str]
Starts = dict[tuple[str, str], float]
Levels = dict[tuple[str, str], float]


class Mean(NamedTuple):
    """A mean over seeds, its sample standard deviation (none of one seed), and how many seeds there are."""

    mean: float = nan
    std: float = nan
    n: int = 0


def summary(values: "pd.Series[float]") -> Mean:
    """Return the mean of what is known of these values."""
    return Mean(values.mean(), values.std(), int(values.count()))


def summaries(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return keys, mean, std and n of the column `value`, in the order of the rows."""
    found = rows.groupby(keys, sort=False)["value"].agg(mean="mean", std="std", n="count").reset_index()
    return found.reindex(columns=[*keys, "mean", "std", "n"])  # of no rows pandas returns no columns


Means = dict[tuple[str, ...], Mean]


def printed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return the paper's own numbers, if the entry compares with them, but for scenarios with other data."""
    replaced = [scenario.name for scenario in entry.scenarios if scenario.replaces]
    return frame[frame["published"] & ~frame["scenario"].isin(replaced) & entry.compares]


# ---- evaluations -----------------------------------------------------------------------------------------------------


class Evaluated(NamedTuple):
    """Rows of evaluations to average; by model the seeds left out, each with the round in which its trial diverged.

    `diverged`: by model the seeds in which it diverged itself.
    """

    rows: pd.DataFrame
    lost: dict[Key, dict[int, float]]
    diverged: dict[Key, set[int]]

    def means(self) -> Means:
        """Return the mean of each scenario, method, trial, stage and metric."""
        found = summaries(self.rows, [*MODEL, "metric"])
        return {row[:5]: Mean(*row[5:]) for row in found.itertuples(index=False, name=None)}


def evaluated(frame: pd.DataFrame) -> Evaluated:
    """Return the rows of evaluations without the seeds in which a trial diverged, at whatever stage.

    Where every seed diverged, now at this stage, now at that, a stage keeps the seeds that came so far.
    """
    rows = frame[~frame["published"]]
    kept: list[pd.DataFrame] = [rows.iloc[:0]]
    lost: dict[Key, dict[int, float]] = {}
    diverged: dict[Key, set[int]] = {}
    for trial, part in rows.groupby(MODEL[:3], sort=False):
        gone = part[part["metric"] == "diverged_round"]
        some = not part["seed"].isin(gone["seed"]).all()
        for stage, here in part.groupby("stage", sort=False):
            own = gone[gone["stage"] == stage]
            out = gone if some else own
            kept.append(here[~here["seed"].isin(out["seed"])])
            model: Key = (*map(str, trial), str(stage))  # type: ignore[assignment]
            lost[model], diverged[model] = dict(out.groupby("seed")["value"].min()), set(own["seed"])
    return Evaluated(pd.concat(kept), lost, diverged)


# ---- traces ----------------------------------------------------------------------------------------------------------


def once(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without the first of each post-training, which is the last round of unlearning once more."""
    first = frame.groupby([*RUN, "model"], sort=False)["round"].transform("min")
    return frame[~((frame["stage"] == "recovered") & (frame["round"] == first))]


def broken(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the last round of each run that breaks off before its end: there it diverged.

    A method with rounds of its own ends where the longest of its seeds does, a training before the request.
    """
    last = frame.groupby(RUN, sort=False)["round"].max().reset_index()
    longest = last.groupby(RUN[:2])["round"].transform("max")
    before = last["scenario"].map({scenario.name: scenario.rounds[0] for scenario in entry.scenarios})
    planned = last["scenario"].map({scenario.name: scenario.rounds[1] or 0 for scenario in entry.scenarios})
    planned += before if entry.from_training else 0
    after = last["method"].isin([method.name for method in entry.methods if method.post_training == "after"])
    trains = last["method"].isin([method.name for method in entry.methods if method.trains])
    return last[last["round"] < planned.where(after, longest).mask(trains, before)]


def unfinished(entry: Entry, frame: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows belong to incomplete runs; each grid point is checked separately."""
    parts = [of_runs(part, broken(entry, part)) for _, part in frame.groupby("trial", sort=False)]
    return pd.concat([pd.Series(dtype=bool), *parts]).reindex(frame.index)


def by_round(rows: pd.DataFrame, lost: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and number of seeds by round and metric, over the runs that did not break off.

    Where all did, over all of them, up to the first break: a mean is over the same seeds in every round.
    """
    gone = rows.assign(gone=of_runs(rows, lost))
    kept = rows[~gone["gone"] | gone.groupby(RUN[:2])["gone"].transform("all")]
    found = summaries(kept, ROUND)
    return found[found["n"] == found.groupby(["scenario", "method", "metric"])["n"].transform("max")]


def paths(rows: pd.DataFrame, lost: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the runs that broke off."""
    return rows[of_runs(rows, lost)]


def divergence(entry: Entry, lost: pd.DataFrame, scenario: str, method: str) -> str:
    """Return how many seeds diverged and when, if any did."""
    rounds = sorted(lost[(lost["scenario"] == scenario) & (lost["method"] == method)]["round"])
    if not rounds:
        return ""
    when = [f"round {round}" if round >= 0 else "no round" for round in rounds]
    count = "" if len(rounds) == len(entry.seeds) else f"{len(rounds)} of {len(entry.seeds)} seeds "
    return f"{count}diverged after {', '.join(when)}"


def begins(rows: pd.DataFrame) -> Starts:
    """Return how far from the original model each (scenario, method) begins, where the frame has the distance."""
    first = _first(rows)
    away = first[first["metric"] == "distance"].groupby(["scenario", "method"])["value"].mean().reset_index()
    return {(row[0], row[1]): row[2] for row in away.itertuples(index=False, name=None)}


def original(rows: pd.DataFrame, starts: Starts) -> Levels:
    """Return the original model's (scenario, metric), where a method begins: mean over seeds."""
    first = _first(rows)
    keys = first[["scenario", "method"]].itertuples(index=False, name=None)
    at = pd.Series([starts.get(key) == 0 for key in keys], first.index, dtype=bool)
    each = first[at].drop_duplicates(["scenario", "seed", "metric"])
    level = each.groupby(["scenario", "metric"])["value"].mean().reset_index()
    return {(row[0], row[1]): row[2] for row in level.itertuples(index=False, name=None)}


def _first(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what each method begins with after the request."""
    rows = rows[rows["stage"] != ORIGINAL]
    return rows[rows["round"] == rows.groupby(RUN, sort=False)["round"].transform("min")]


def of_runs(rows: pd.DataFrame, lost: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows belong to runs in `lost`."""
    runs = set(lost[RUN].itertuples(index=False, name=None))
    return pd.Series([run in runs for run in rows[RUN].itertuples(index=False, name=None)], rows.index, dtype=bool)
