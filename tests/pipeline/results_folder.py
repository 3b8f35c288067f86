"""A folder of results as stages leave it, with numbers that are known by name."""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fu.artefacts.entry import ORIGINAL, Entry, Trial
from fu.evaluation.trace import COUNTS
from fu.pipeline.stages.frames import Source
from tests.artefacts.factories import CHOSEN, DEVICE, EVALUATIONS, RATES, ROUNDS, SEEDS, make_across, make_entry, number
from tests.factories import CLASSES, make_partition

IMAGES: Any = np.random.default_rng(0).integers(0, 256, (43, 20, 20, 1), dtype=np.uint8)
LABELS: Any = np.random.default_rng(1).integers(0, CLASSES, 43, dtype=np.uint8)
PART = make_partition((7, 12, 9))
MEASURED = ("asr", "r_acc", "r_acc_std", "r_acc_worst", "r_acc_best", "distance", "conflicts")
TRACE = ("round", *MEASURED, *COUNTS)
HERE = "toy/small/seed{}"  # of any seed
EVALUATED = ("role", "metric", "client", "value")


def rows_to(path: Path, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def make_results(folder: Path) -> Path:
    """Write everything that an artefact may read: `ours` with three trials and the chosen one, and `scratch`."""
    (folder / "data").mkdir(parents=True)
    split = {"x_train": IMAGES[:40], "y_train": LABELS[:40], "x_test": IMAGES[40:], "y_test": LABELS[40:]}
    np.savez(folder / "data/digits.npz", **split)
    trials = {"original": ["original"], "scratch": ["unlearned"]}
    trials |= {f"ours+lr{rate}": ["unlearned", "recovered"] for rate in RATES}
    for seed in SEEDS:
        here = folder / f"toy/small/seed{seed}"
        here.mkdir(parents=True)
        (here / "original.trained.cost.json").write_text(json.dumps({"seconds": 1.0, **DEVICE}))
        np.savez(here / "partition.npz", **PART.arrays())  # type: ignore[arg-type]
        for trial, roles in trials.items():
            for evaluation, metrics in EVALUATIONS.items():
                rows = [(role, metric, "", number(trial, role, metric, seed)) for role in roles for metric in metrics]
                rows_to(here / f"{trial}.{evaluation}.csv", EVALUATED, rows)
            for role in roles if trial != "original" else ():
                model = f"{trial}.{role}"
                steps = [(k, *(number(model, metric, seed, k) for metric in TRACE[1:])) for k in ROUNDS[role]]
                rows_to(here / f"{model}.csv", TRACE, steps)
                cost = {"seconds": 10 * number(model, "seconds", seed), **DEVICE}
                (here / f"{model}.cost.json").write_text(json.dumps(cost))
    choose(folder, CHOSEN)
    return folder


def choose(results: Path, trial: str) -> None:
    """Select a trial of `ours`, whose files become those of the chosen one."""
    content = {"selected": trial, "rule": "", "scores": {}}
    (results / "toy/small/ours.selected.json").write_text(json.dumps(content))
    for file in list(results.glob(f"toy/small/seed*/{trial}.*")):
        shutil.copy(file, file.with_name(file.name.replace(trial, "ours+chosen")))


def plain_entry(kind: str, **changes: Any) -> Entry:
    """Return an entry in which chosen trials have their own files; `across` shows all."""
    return make_across(**changes) if kind == "across" else make_entry(kind, **changes)


def entry_of(kind: str, **changes: Any) -> Entry:
    """Return an entry as the plan makes it: it knows where the files of what will be chosen lie."""
    entry = plain_entry(kind, **changes)
    if not plain_entry(kind).chosen:
        return entry
    scratch, ours = entry.methods
    chosen = Trial(
        name="ours+chosen",
        rate=None,
        values={},
        points={trial.name: trial.name for trial in ours.trials["small"]},
        trained="small/original",
        unlearned="small/ours+chosen",
        recovered="small/ours+chosen",
    )
    return entry.model_copy(update={"methods": (scratch, ours.model_copy(update={"chosen": {"small": chosen}}))})


def sources_of(entry: Entry) -> tuple[Source, ...]:
    """Return the files behind an entry of evaluations or traces, as the plan names them."""
    sources = []
    for method, trial in _shown(entry):
        labels = "small", method, trial.name
        if trial.points:
            sources.append(Source("selection", f"toy/small/{method}.selected.json", *labels))
        models = trial.models
        if "evaluations" in entry.reads:
            sources += [Source("evaluations", f"{HERE}/{trial.name}.{name}.csv", *labels) for name in EVALUATIONS]
        elif entry.from_training and method != ORIGINAL:
            models = {ORIGINAL: f"{trial.trained}.trained", **models}
        files = {role: f"{HERE}/{model.rpartition('/')[2]}" for role, model in models.items()}
        if "traces" in entry.reads and method != ORIGINAL:
            sources += [Source("traces", f"{file}.csv", *labels, role) for role, file in files.items()]
        sources += [Source("costs", f"{file}.cost.json", *labels, role) for role, file in files.items()]
    return tuple(sources)


def _shown(entry: Entry) -> Iterator[tuple[str, Trial]]:
    [scenario] = entry.scenarios
    if scenario.original:
        yield ORIGINAL, scenario.original
    for method in entry.methods:
        several = method.trials["small"] if not entry.chooses else (entry.trial("small", method),)
        for trial in (method.chosen["small"],) if method.chosen else several:
            yield method.name, trial
