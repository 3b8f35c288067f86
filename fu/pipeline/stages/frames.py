"""The tidy data frame behind a table or figure: the rows of its sources, with their labels.

Columns: scenario, method, trial, model, seed, stage, round, metric, client, value, device, published, first, run. Rows
with `published` are the paper's own numbers. Seed and round are -1 where a row has none, client is NaN; `device` is
given with the seconds of a run, `first` (how many of the first repeats were audited) with audit results, `run` where an
audit says something of a single model.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fu.artefacts.entry import ORIGINAL, SECONDS, Entry
from fu.data import archives
from fu.errors import UserError
from fu.evaluation.trace import COUNTS, TIMES
from fu.pipeline.provenance.paths import SEED, at
from fu.pipeline.stages.evidence import evidence

COLUMNS = [
    *("scenario", "method", "trial", "model", "seed", "stage", "round"),
    *("metric", "client", "value", "device", "published", "first", "run"),
]
LABELS = ["round", "stage", "model", "scenario", "method", "trial"]
CHOICE, COSTS = "selection", "costs"
TABLES = ("evaluations", "agreement", "holdings", "audits", "traces")  # kinds of CSV whose rows are put together


class Source(NamedTuple):
    """A file behind a table or figure, and the labels of its rows.

    `kind`: one of `Input`, or a selection. `path`: relative to the folder of the preset, with `SEED` for the seed's
    folder if each seed has its own file. `role`: of the model, if the file does not state it, as traces do not.
    `trial`: for the rows of another table or figure, its name.
    """

    kind: str
    path: str
    scenario: str = ""
    method: str = ""
    trial: str = ""
    role: str = ""


class File(NamedTuple):
    """A file of a source; `seed`: -1 if it is not of a single seed."""

    source: Source
    seed: int
    path: Path

    @property
    def kind(self) -> str:
        """The kind of its source."""
        return self.source.kind


def located(sources: Iterable[Source], seeds: Sequence[int], root: Path) -> Iterator[File]:
    """Yield all files, ordered by trial, then by seed."""
    for _, several in groupby(sources, lambda one: one[2:5]):
        of_trial = [*several]
        for k, seed in enumerate(seeds):
            for source in of_trial:
                if SEED in source.path:
                    yield File(source, seed, root / at(source.path, seed))
                elif k == 0:
                    yield File(source, -1, root / source.path)


def behind(sources: Iterable[Source], seeds: Sequence[int], root: Path) -> dict[str, list[Path]]:
    """Return all files without duplicates: `results`, and `costs`, which provenance and run times need."""
    paths: dict[str, dict[Path, None]] = {"results": {}, "costs": {}}
    for file in located(sources, seeds, root):
        paths["costs" if file.kind == COSTS else "results"][file.path] = None
    return {role: [*unique] for role, unique in paths.items()}


def with_choice(entry: Entry, sources: Iterable[Source], root: Path) -> Entry:
    """Return the entry with the chosen trials filled in."""
    chosen: dict[str, dict[str, str]] = {}
    points = {(scenario, m.name): trial.points for m in entry.methods for scenario, trial in m.chosen.items()}
    for source in (one for one in sources if one.kind == CHOICE):
        try:
            selected = json.loads((root / source.path).read_text())["selected"]
            chosen.setdefault(source.scenario, {})[source.method] = points[source.scenario, source.method][selected]
        except (OSError, json.JSONDecodeError, KeyError):
            raise _damaged(root / source.path) from None
    return entry.model_copy(update={"chosen": chosen})


def read(entry: Entry, sources: Iterable[Source], root: Path, published: Path | None) -> pd.DataFrame:
    """Return the frame of an entry with its chosen trials."""
    files = [file for file in located(sources, entry.seeds, root) if file.kind != CHOICE]
    if "artefacts" in entry.reads:
        return evidence(entry, {file.source.trial: _csv(file.path) for file in files})
    readers = {"exposed": _pictures, "examples": _pictures, "relearning": _csv}  # of frames with columns of their own
    readers |= {"holdings": _classes} if "holdings" in entry.reads else {}
    parts = [_labelled(entry, file, readers[file.kind](file.path)) for file in files if file.kind in readers]
    if parts:
        return pd.concat(parts, ignore_index=True)
    for (*_, seed), several in groupby(files, lambda file: (*file.source[2:5], file.seed)):
        parts += [part.assign(seed=seed) for part in _rows(entry, [*several])]
    if published:
        parts.append(_csv(published).assign(published=True, seed=-1))
    frame = pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS) if parts else pd.DataFrame(columns=COLUMNS)
    frame["published"] = frame["published"] == True  # noqa: E712 (NaN in our own rows)
    frame["round"] = frame["round"].fillna(-1)
    return frame.astype({"seed": int, "round": int, "value": float})


def _rows(entry: Entry, files: Sequence[File]) -> Iterator[pd.DataFrame]:
    """Yield the rows of one trial and seed, or those that are not of a single seed."""
    tables = {kind: [_table(entry, file) for file in files if file.kind == kind] for kind in TABLES}
    if evaluations := tables["evaluations"]:
        rows = pd.concat(evaluations, ignore_index=True)
        shown = [*(metric.name for metric in entry.metrics), *entry.also]
        rows = rows[rows["client"].isna() | rows["metric"].isin(shown)]
        yield rows.drop_duplicates(["stage", "metric", "client"])  # each evaluation reports a divergence
    yield from tables["agreement"]
    yield from (rows[rows["label"].isna()] for rows in tables["holdings"])
    if audits := tables["audits"]:
        rows = pd.concat(audits, ignore_index=True).drop_duplicates(["first", "metric", "run"])
        yield from (rows[rows["first"] == first] for first in entry.firsts or (len(entry.seeds),))
    spent = [_spent(entry, file) for file in files if file.kind == COSTS and COSTS in entry.reads]
    if "traces" not in entry.reads or entry.audits:
        yield from (_last(entry, trace) for trace in tables["traces"])
        yield from spent
    elif tables["traces"]:
        yield _rounds(entry, tables["traces"])
        ends = {trace["stage"].iloc[0]: trace["round"].iloc[-1] for trace in tables["traces"] if len(trace)}
        yield from (row.assign(round=row["stage"].map(ends).fillna(-1)) for row in spent)


def _table(entry: Entry, file: File) -> pd.DataFrame:
    """Return a labelled CSV file; if curves begin with training, rounds after the request continue its count."""
    rows = _labelled(entry, file, _csv(file.path))
    if file.kind == "traces" and entry.from_training and file.source.role != ORIGINAL:
        rows["round"] += entry.scenario(file.source.scenario).rounds[0]
    return rows


def _labelled(entry: Entry, file: File, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the labels that the source has: scenario, method, trial, stage and model."""
    source = file.source
    rows = rows.rename(columns={"role": "stage"})
    labels = {"scenario": source.scenario, "method": source.method, "trial": source.trial, "stage": source.role}
    if source.method and source.method != ORIGINAL:
        labels["trial"] = entry.chosen.get(source.scenario, {}).get(source.method, source.trial)
    labels = {name: label for name, label in labels.items() if label}
    rows = rows.assign(**labels)[[*labels, *(name for name in rows if name not in labels)]]
    return rows.assign(model=rows["stage"].map(_models(entry, source))) if "stage" in rows else rows


def _models(entry: Entry, source: Source) -> dict[str, str]:
    """Return the models behind a source by role, including the one that the trial starts from."""
    trial = entry.scenario(source.scenario).original
    for method in entry.methods:
        if method.name == source.method:
            several = entry.trials(source.scenario, method)
            trial = next((one for one in several if one.name == source.trial), several[0])
    assert trial is not None
    return {ORIGINAL: f"{trial.trained}.trained", **trial.models}


def _rounds(entry: Entry, traces: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the traces of all models in long form: every measured metric, but only the counts that are shown.

    If curves begin with training, elapsed time is included.
    """
    names = [*dict.fromkeys([*(metric.name for metric in entry.metrics), *(TIMES if entry.from_training else ())])]
    joined = pd.concat([trace for trace in traces if len(trace)] or traces)
    names += [name for name in joined.columns if name not in (*LABELS, *COUNTS, *names)]
    return joined.melt(LABELS, names, "metric").dropna(subset="value")


def _last(entry: Entry, trace: pd.DataFrame) -> pd.DataFrame:
    """Return the total cost of a phase; if it diverged, up to that round."""
    names = [name for name in entry.also if name in trace]
    return trace.drop(columns="round").tail(1).melt([name for name in LABELS if name != "round"], names, "metric")


def _spent(entry: Entry, file: File) -> pd.DataFrame:
    """Return the row with the seconds spent on a model, and the device."""
    cost = json.loads(file.path.read_text())
    device = f"{cost['device']}, {cost['threads']} thread(s)"
    return _labelled(entry, file, pd.DataFrame([{"metric": SECONDS, "value": cost["seconds"], "device": device}]))


def _classes(path: Path) -> pd.DataFrame:
    """Return the number of training samples by client and class."""
    rows = _csv(path).dropna(subset="label").astype({"label": int})
    return rows.rename(columns={"value": "train"})[["client", "label", "train"]]


def _pictures(path: Path) -> pd.DataFrame:
    """Return a row for each sample, its pictures as arrays."""
    return pd.DataFrame({name: [*array] for name, array in archives.load_arrays(path).items()})


def _csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (FileNotFoundError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise _damaged(path) from None


def _damaged(path: Path) -> UserError:
    return UserError(f"{path}: the file is missing or damaged; delete it and start the run again.")
