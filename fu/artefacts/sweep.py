"""Metrics over the values of one setting: all trials of the methods' grids, none chosen."""

from math import nan

import pandas as pd

from fu.artefacts import lines, notes
from fu.artefacts.drawing import ascending, setting_name
from fu.artefacts.entry import Entry
from fu.artefacts.groups import Groups
from fu.artefacts.result import Result
from fu.artefacts.statistics import Mean, evaluated

READS = "evaluations"
TRIALS = "all"
SETTINGS = 1  # how many of them vary
COLUMNS = ["scenario", "method", "setting", "x", "stage", "metric", "last", "mean", "std", "n"]


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Return mean and standard deviation over seeds after post-training (or unlearning, where nothing follows).

    Where all trials begin from one unlearned model, its numbers stand before the first value.
    """
    setting = varied(entry)
    seeds = evaluated(frame)
    means, rows, gone = seeds.means(), [], set()
    for scenario in entry.scenarios:
        for method in entry.methods:
            shared = len({trial.unlearned for trial in method.trials[scenario.name]}) == 1
            for number, trial in enumerate(method.trials[scenario.name]):
                for stage, model in trial.models.items():
                    key = scenario.name, method.name, trial.name, stage
                    lost, last = seeds.diverged.get(key, set()), stage == [*trial.models][-1]
                    gone |= {(scenario.name, model, seed) for seed in lost}
                    for metric in entry.metrics:
                        x, mean = trial.values[setting], means.get((*key, metric.name), Mean())
                        place = x if last else lines.BEFORE if shared and not number else None
                        about = (scenario.name, method.name, setting, x, stage, metric.name, last)
                        rows.append((*about, *mean, scenario.name, method.name, place, len(lost), nan))
    found = pd.DataFrame(rows, columns=[*COLUMNS, "panel", "line", "place", "diverged", "published"])
    points = found[found["place"].notna()].assign(x=lambda rows: rows["place"])
    name, groups = setting_name(setting), Groups(entry.scenarios, entry.methods, ())
    said = _notes(entry, notes.evaluated(frame[~frame["published"]]), setting, len(gone))
    text = lines.tables(entry, groups, points, [*dict.fromkeys(found["x"])], name, lines.BEFORE)
    figure = lines.picture(entry, groups, points, _places(entry, setting), name)
    return Result(found[found["n"] > 0][COLUMNS], f"{text}\n{said}\n", figure, notes=said)


def _places(entry: Entry, setting: str) -> dict[str, lines.Places]:
    """Return where the values of each scenario lie: in equal steps where several scenarios stand side by side."""
    several = len(entry.scenarios) > len(entry.metrics)
    found = {}
    for scenario in entry.scenarios:
        trials = (trial for method in entry.methods for trial in method.trials[scenario.name])
        values = sorted({trial.values[setting] for trial in trials}, key=ascending)
        found[scenario.name] = lines.even(values) if several else lines.scaled(values)
    return found


def varied(entry: Entry) -> str:
    """Return the one setting that differs between the trials of a method; that there is one, the plan has checked."""
    [found] = {
        key
        for method in entry.methods
        for trials in method.trials.values()
        for key in trials[0].values
        if len({trial.values[key] for trial in trials}) > 1
    }
    return found


def _notes(entry: Entry, asr: dict[str, float], setting: str, diverged: int) -> str:
    said = [
        *notes.no_backdoor(entry, asr),
        *notes.rates(entry, setting),
        "before: after unlearning.",
        *notes.averages(entry),
        *notes.spread(entry, "Error bars"),
        *([f"{diverged} models diverged and are left out."] if diverged else []),
        *notes.marks(entry),
    ]
    return " ".join(said)
