"""The rows behind an artefact, seed by seed: what people analyse further, and what claims are judged by.

A kind whose numbers are made of several rows (a gain, a share) defines `by_seed(frame, entry)`, which returns them with
the columns scenario, method, trial, stage, metric, seed and value.
"""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd

from fu.artefacts.entry import Entry
from fu.artefacts.statistics import MODEL, unfinished

COLUMNS = ["scenario", "method", "point", "stage", "seed", "round", "client", "metric", "published", "value"]
FORMULAS = "formulas"  # in place of a scenario, where numbers need none
BySeed = Callable[[pd.DataFrame, Entry], pd.DataFrame]


def rows(frame: pd.DataFrame, entry: Entry, by_seed: BySeed | None) -> pd.DataFrame:
    """Return `COLUMNS` and a column for each coordinate and each setting of a grid; `published`: 1 for the paper's own.

    Where a model diverged, a metric that is better higher is -inf, one that is better lower inf. Means and curves leave
    out all of that seed: an unlearned model whose post-training alone diverged counts here only. Seed and round are -1
    where a row has none. Of audits also all that their verdicts rest on, with a column `run`: numbers of single models.
    """
    parts = []
    if {"evaluations", "traces"}.intersection(entry.reads) and not entry.audits:
        names = {metric.name for metric in (*entry.metrics, *entry.spreads)}
        ours, gone = _evaluated(frame) if "evaluations" in entry.reads else _traced(frame, entry)
        parts = [ours[ours["metric"].isin(names)], _worst(gone, entry), frame[frame["published"]]]
    if audited := bool(entry.audits) and not entry.firsts and "run" in frame:
        shown = frame["metric"].isin({metric.name for metric in entry.metrics})
        parts = [frame[frame["first"].notna() & (frame["run"].notna() | ~shown)]]
    if by_seed:
        parts.append(by_seed(frame, entry))
    found = pd.concat([part for part in parts if len(part)] or [pd.DataFrame(columns=["trial"])], ignore_index=True)
    trials = _trials(entry)
    named = found["trial"].fillna(found["method"]) if len(found) else found["trial"]
    found["point"] = named
    found["method"] = [trials.get(name, (name, {}))[0] for name in named]
    places = {scenario.name: scenario.at for scenario in entry.scenarios}
    at = [
        {**places.get(scenario, {}), **trials.get(name, ("", {}))[1]}
        for scenario, name in zip(found.get("scenario", []), named, strict=True)
    ]
    found = found.reindex(columns=[*COLUMNS, *(["run"] if audited else [])])
    found["published"] = (found["published"] == True).astype(int)  # noqa: E712 (NaN where a kind made the row)
    found[["seed", "round"]] = found[["seed", "round"]].fillna(-1).astype(int)
    for key in dict.fromkeys(key for values in at for key in values):
        found[key] = [values.get(key) for values in at]
    return found


def write(found: pd.DataFrame, path: Path) -> None:
    """Write rows as CSV; equal numbers give equal bytes."""
    found.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")


def _evaluated(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all evaluations, and the models that diverged, which have none, seed by seed."""
    ours = frame[~frame["published"]]
    return ours, ours.loc[ours["metric"] == "diverged_round", [*MODEL, "seed"]].drop_duplicates()


def _traced(frame: pd.DataFrame, entry: Entry) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the traces of complete runs, and the models of incomplete ones, seed by seed."""
    ours = frame[~frame["published"]]
    off = unfinished(entry, ours)
    return ours[~off], ours.loc[off, [*MODEL, "seed"]].drop_duplicates()


def _worst(gone: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return infinitely bad values for models that diverged, in each metric with a direction."""
    bad = {"higher": -inf, "lower": inf}
    found = [
        gone.assign(metric=metric.name, value=bad[metric.better], published=False)
        for metric in entry.metrics
        if metric.better in bad and metric.per == "model"
    ]
    return pd.concat(found, ignore_index=True) if found else gone.iloc[:0]


def _trials(entry: Entry) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the method of each trial by name, and what its grid sets there."""
    several: dict[str, tuple[str, dict[str, Any]]] = {}
    for method in entry.methods:
        for scenario in method.trials:
            several |= {trial.name: (method.name, trial.values) for trial in entry.trials(scenario, method)}
    return several
